ALTER TABLE signing_keys DROP COLUMN seal_after;
