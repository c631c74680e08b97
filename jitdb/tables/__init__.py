"""A log as a table of other libraries: what they ask of rows becomes a question, as far as it can.

frame = scan_jitdb("logs/")
frame.filter(polars.col("level") == "error").group_by("service").len().collect()
"""

from jitdb.tables.polars_scan import scan_jitdb as scan_jitdb

__all__ = ["scan_jitdb"]
