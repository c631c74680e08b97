"""Does a part of one's own hold to what jitdb expects of it? Tests to subclass with pytest, a module a door.

codecs    another way of writing records: Codec
sources   another kind of log: ScanSource, LogSource, MaintainedSource
"""
