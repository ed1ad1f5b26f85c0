DROP TABLE invoice_collections, invoice_lines, invoiced_months, storage_days, account_plans;
