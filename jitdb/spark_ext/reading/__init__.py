"""A log as a table: its schema, what of it is read, and Arrow record batches of that."""
