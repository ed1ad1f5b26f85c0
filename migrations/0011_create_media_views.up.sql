-- Who watched. A view is one viewer of one thing in one hour, kept alive by the
-- player's own requests; viewers are known by a hash only.
CREATE TABLE media_views (
  owner    text NOT NULL,
  subject  text NOT NULL, -- id of a stream or an asset
  viewer   bytea NOT NULL,
  hour     timestamptz NOT NULL,
  first_at timestamptz NOT NULL,
  last_at  timestamptz NOT NULL,
  CONSTRAINT media_views_pkey PRIMARY KEY (subject, viewer, hour)
);
CREATE INDEX media_views_owner_idx ON media_views (owner, hour);
-- The number of viewers at this moment is taken whenever one joins.
CREATE INDEX media_views_now_idx ON media_views (subject, last_at);

-- At how many viewers at once the account is told; 0: never. Once per session.
ALTER TABLE media_streams ADD viewer_threshold integer NOT NULL DEFAULT 0
  CONSTRAINT media_streams_threshold_positive CHECK (viewer_threshold >= 0);
ALTER TABLE media_sessions ADD threshold_told boolean NOT NULL DEFAULT false;

-- Who hears of a stream, and whose limits hold, when nobody who calls the API is
-- there to ask: a viewer or a publisher has made something happen.
ALTER TABLE media_streams ADD account text NOT NULL DEFAULT '', ADD plan text NOT NULL DEFAULT '';
UPDATE media_streams SET account = owner WHERE owner LIKE 'acct\_%';
