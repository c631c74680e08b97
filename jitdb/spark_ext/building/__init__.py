"""Building a log's indexes on a cluster: what the driver does, what tasks do, and the ways between them."""
