"""How does a log look in a browser? One page, served on this machine only.

`open_page(db)` is the door: the command `jitdb explore` and notebooks have it. A request goes this way: server (one
thread a connection, a bounded number) -> handler (one request) -> guard (may this come in?) -> api (which question is
it?) -> a generator of parts, which go out as lines of JSON while the next one is asked.
"""
