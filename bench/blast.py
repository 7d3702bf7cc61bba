"""The generator's process: `python -m bench.blast LIBRARY INTERFACE SIZE SECONDS`.

It says "go" when it begins, for starting takes its time, and imports next to nothing.
"""

import ctypes
import os
import sys

FAILED = 2**64 - 1


def main(library: str, interface: str, size: str, seconds: str) -> int:
    """Send until the time is over."""
    load = ctypes.CDLL(library, use_errno=True)
    load.load_blast.restype = ctypes.c_uint64
    load.load_blast.argtypes = [ctypes.c_char_p, ctypes.c_uint32, ctypes.c_uint64]
    print("go", flush=True)
    if load.load_blast(interface.encode(), int(size), int(float(seconds) * 1e9)) == FAILED:
        print(f"cannot send: {os.strerror(ctypes.get_errno())}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
