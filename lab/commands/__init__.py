"""The command line's commands, one a file, named after it.

Each has a function ``command``, whose parameters are the command's own (see `options.py` for those
that several share), or a function ``main`` that takes the words as they are, because they are
another tool's flags. The first line of its docstring is what ``closlab --help`` says of it.
`lab.cli` imports a file when its command is called, not before.
"""
