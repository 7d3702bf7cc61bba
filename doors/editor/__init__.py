"""`closlab lsp`: an editor's door, by the Language Server Protocol.

    an editor ──JSON-RPC──► wire ──► server ──► session ──► desk ──► Reading ──► Program
                                       │
                                       └──► answers ──► hover, completion, outline, renaming

A `Program` is what the compiler's own passes make of a file and of all it includes: words, the
tree, what each name means, and everything that is wrong. The `Desk` has the files as the editor
has them, knows which programs include which file, and has one read again when its files change: a
`Reading` goes on from where they did.
"""
