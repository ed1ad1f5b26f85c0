-- What the operations of a product are: an OpenAPI document, as its owner imported
-- it. It is shown of operations that a route leads to.
CREATE TABLE product_descriptions (
  product    text PRIMARY KEY CONSTRAINT product_descriptions_product_length CHECK (octet_length(product) BETWEEN 1 AND 100),
  document   bytea NOT NULL CONSTRAINT product_descriptions_document_size CHECK (octet_length(document) BETWEEN 2 AND 4194304), -- JSON
  operations integer NOT NULL CONSTRAINT product_descriptions_operations_range CHECK (operations >= 0),
  revision   bigint GENERATED ALWAYS AS IDENTITY,
  author     text NOT NULL,
  updated_at timestamptz NOT NULL DEFAULT now()
);
