DROP TABLE webhook_recoveries, webhook_attempts, webhook_deliveries, webhook_subscriptions, account_events;
