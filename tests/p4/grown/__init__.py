"""Programs that grow: random, typed programs for v1model, and what each must do.

    python -m tests.p4.grown 17 out        writes program and packet test number 17
    python -m tests.p4.grown --help        runs many of them, on our switch, on BMv2, through p4c

A number gives a program (`program.py`): headers, a stack, a union, a parser with loops, functions,
actions, tables, registers, counters, hashes, checksums, clones at both ends, multicast, and packets
that are sent back at either end, with arithmetic of every width; entries for its tables; and
packets. With each piece of text grows a piece of Python that does what the language says the text
means (`parts.py`), on integers, with nothing of the compiler's or of the switch's. Run on the
packets, it tells what must come out, and the two make a packet test (.stf), which any compiler and
any switch can be held to.

Nothing that grows is left open by the specification: headers are read where they are known to be
valid, variables once they have a value, no divisor is zero, no index out of bounds. The Python
fails where it is asked for what the language does not define, so a slip of the grower shows.
"""
