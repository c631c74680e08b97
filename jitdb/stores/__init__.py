"""What can be built on it? Stores whose records are logs of jitdb, and whose answers come of its indexes.

hyperdb    a key/value store of several writers, each with a feed of its own
cable      the posts of a peer-to-peer chat
spool      the messages of groups, kept until everybody has them
"""
