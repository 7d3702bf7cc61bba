"""`closlab mcp`: an assistant's door, in the words of the Model Context Protocol.

    a client ──JSON-RPC, stdin and stdout──► server ──► tools ──► cell ──► a process of its own
                                                                             work, behind walls

What a tool does, it does in a process that has so much time and memory, and may open nothing but
what the lab itself needs and the one folder that was named. It ends with whoever asked.
"""
