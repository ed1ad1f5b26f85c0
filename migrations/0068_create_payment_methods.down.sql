DROP TABLE payment_methods, billing_customers;
