DROP TABLE media_migration_videos, media_migrations;
