"""How is it asked by an assistant, a program with a language model? By tools over the Model Context Protocol.

`jitdb mcp` is the command. A call goes this way: server (the protocol, on standard input and output) -> tools (which
question is it, of what?) -> texts (the answer, in few tokens).
"""
