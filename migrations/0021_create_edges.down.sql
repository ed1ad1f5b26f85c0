DROP TABLE edges;
