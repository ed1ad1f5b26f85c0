DROP TABLE config_versions, edge_records, edge_feed, scopes, account_limits, api_keys, signing_keys, sessions, users, accounts;
