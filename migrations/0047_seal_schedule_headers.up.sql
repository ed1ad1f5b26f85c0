-- Values of headers of webhooks, which are often tokens. Where they are sealed the
-- definition names the headers, with a mark that no header may have as its value.
ALTER TABLE schedules ADD COLUMN sealed_headers bytea; -- sealed

-- Processes of before cannot read what is sealed. Where there may be any, which is
-- where there are accounts, nothing is sealed for a day; then upkeep seals what
-- lies open, walking the schedules in the order of their ids once a day.
CREATE TABLE schedule_sealing (
  one        boolean PRIMARY KEY DEFAULT true CONSTRAINT schedule_sealing_one_row CHECK (one),
  seal_after timestamptz NOT NULL,
  walk_after timestamptz NOT NULL DEFAULT '-infinity', -- no walk begins before
  walked_to  text NOT NULL DEFAULT ''                  -- of the walk under way: the last id
);
INSERT INTO schedule_sealing (seal_after) SELECT CASE WHEN EXISTS (SELECT FROM accounts) THEN now() + interval '1 day' ELSE '-infinity' END;
