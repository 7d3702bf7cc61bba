"""A program for `closlab exec`: every rank sends to others over TCP and checks what it gets.

    python3 peers.py BYTES [ROUNDS] [incast]     knows nothing of closlab but its environment

With `incast` all send to rank 0 alone. What a byte is follows from who sends it, to whom and when.
"""

import hashlib
import os
import socket
import sys
import threading
import time

PORT = 5500
RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
HOSTS = os.environ["CLOSLAB_HOSTS"].split(",")


def data(src: int, dst: int, turn: int, size: int) -> bytes:
    return hashlib.shake_128(f"{src} {dst} {turn}".encode()).digest(size)


def take(line: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        part = line.recv(min(size, 1 << 16))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def meet() -> dict[int, socket.socket]:
    """A line to every other rank: the lower one listens."""
    listener = socket.create_server((HOSTS[RANK], PORT))
    lines = {}
    for peer in range(RANK):
        for _ in range(200):
            try:
                lines[peer] = socket.create_connection((HOSTS[peer], PORT))
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
        lines[peer].sendall(bytes([RANK]))
    for _ in range(RANK + 1, SIZE):
        line, _ = listener.accept()
        lines[take(line, 1)[0]] = line
    return lines


def main() -> None:
    size, rounds = int(sys.argv[1]), int((sys.argv[2:] or ["1"])[0])
    is_incast = "incast" in sys.argv
    lines = meet()
    began = time.monotonic()
    for turn in range(rounds):
        to = [peer for peer in lines if peer == 0 or not is_incast]
        sent = [
            threading.Thread(target=lines[peer].sendall, args=(data(RANK, peer, turn, size),))
            for peer in to
        ]
        for thread in sent:
            thread.start()
        for peer in lines if RANK == 0 or not is_incast else ():
            assert take(lines[peer], size) == data(peer, RANK, turn, size), (peer, turn)
        for thread in sent:
            thread.join()
    print(socket.gethostname(), "right", round(time.monotonic() - began, 3), flush=True)


if __name__ == "__main__":
    main()
