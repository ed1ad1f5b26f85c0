ALTER TABLE sign_in_attempts DROP COLUMN known_until;
