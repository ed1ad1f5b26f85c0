DROP TABLE product_descriptions;
