"""One emulated run on several machines: `lead.py` leads, a `member.py` on each has its part.

    closlab run --machines FILE                  leads, and reads FILE (`file.py`)
    ├─ closlab part                              on the first machine: a sandbox with its part
    ├─ ssh me@there closlab part                 on another, as FILE says how to start it
    └─ ...

A member is told over its standard input and tells over its standard output, a line of JSON each
(`line.py`). When either end of that is gone so is the member, and all that is of it in its sandbox.
What members have measured is put together (`merging.py`) as if one machine had.
"""
