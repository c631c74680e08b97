"""Which records have this value? Bitmaps, prefixes and columns over runs of records, and their files on disk."""
