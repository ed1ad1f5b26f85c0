DROP TABLE media_reservations;
