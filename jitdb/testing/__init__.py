"""Tests for parts of your own, to subclass with pytest:

codecs    another way of writing records: Codec
sources   another kind of log: ScanSource, LogSource, MaintainedSource
"""
