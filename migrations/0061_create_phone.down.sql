DROP TABLE phone_calls;
DROP TABLE phone_lines;
