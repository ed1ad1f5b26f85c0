-- Until when the e-mail address of a pair is known to sign in from the network of it:
-- strangers who fail elsewhere do not lock it out there.
ALTER TABLE sign_in_attempts ADD COLUMN known_until timestamptz;
