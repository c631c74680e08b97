"""HyperDB (DEP-0004): a distributed key/value store whose writers each append to a feed of their own."""
