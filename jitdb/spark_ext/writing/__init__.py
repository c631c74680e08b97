"""A table as a log: rows as records, and jobs that leave all of them or none."""
