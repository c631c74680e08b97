"""A log as a stream: where it stands, and what comes next."""
