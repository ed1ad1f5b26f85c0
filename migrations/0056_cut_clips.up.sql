-- A clip has a file of its own, which holds its part and nothing else. Clips of before
-- share their source's file and name their part of it. plan is that of the owner when
-- the asset was made: its limits hold while the clip is cut.
ALTER TABLE media_assets
  ADD COLUMN cut boolean NOT NULL DEFAULT false,
  ADD COLUMN precise boolean NOT NULL DEFAULT false,
  ADD COLUMN plan text NOT NULL DEFAULT '';
