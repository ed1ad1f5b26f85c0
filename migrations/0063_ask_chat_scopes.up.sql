-- Chat asks for chat:write, and lists of models for chat:read. Keys of before could
-- do both without: they keep that. Processes of before insert keys without this
-- column, so what it says of those is true; those of now say false.
ALTER TABLE api_keys ADD COLUMN chat_before boolean NOT NULL DEFAULT true;

-- Which migrations a process knows: the number of the last one. 0: it is of before.
ALTER TABLE processes ADD COLUMN knows integer NOT NULL DEFAULT 0;

-- Scopes that the document in force names are offered; others keep their bit.
ALTER TABLE scopes ADD COLUMN offered boolean NOT NULL DEFAULT true;

-- How far the scopes of chat are: the records of keys of before are sent to edges
-- again, and only when all edges have them do routes ask for those scopes.
CREATE TABLE chat_scopes (
  one           boolean PRIMARY KEY DEFAULT true CONSTRAINT chat_scopes_one CHECK (one),
  sent_to       text NOT NULL DEFAULT '', -- id of the last key whose record was sent
  sent_at       timestamptz,              -- null: not all are
  feed_position bigint NOT NULL DEFAULT 0, -- at which all are
  asked_at      timestamptz               -- null: routes do not ask yet
);
INSERT INTO chat_scopes (asked_at) SELECT CASE WHEN EXISTS (SELECT FROM api_keys) THEN NULL ELSE now() END;
