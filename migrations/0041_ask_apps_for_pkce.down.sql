ALTER TABLE oauth_apps DROP COLUMN without_pkce;
