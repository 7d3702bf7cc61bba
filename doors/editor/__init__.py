"""`closlab lsp`: an editor's door, by the Language Server Protocol.

    an editor ──JSON-RPC──► wire ──► server ──► desk ──► Program of each file that has a `main`
                                       │
                                       └──► hover, completion, outline, renaming

A `Program` is what the compiler's own passes make of a file and of all it includes: words, the
tree, what each name means, and everything that is wrong. The `Desk` has the files as the editor has
them, knows which programs include which file, and reads one again when its files change.
"""
