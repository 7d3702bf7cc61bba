"""pygnmi as a process of its own, as its messages and finsy's cannot be in one: lines of JSON."""

import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

from pygnmi.client import gNMIclient


def updates(subscription: Any, seconds: float) -> Iterator[Any]:
    """What a subscription brings within some time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            yield subscription.get_update(timeout=0.1)
        except TimeoutError:
            continue
    subscription.close()


def main(port: str) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # pygnmi prints what went wrong
    with gNMIclient(
        target=("127.0.0.1", int(port)), insecure=True, username="", password=""
    ) as client:
        for line in sys.stdin:
            method, words = json.loads(line)
            try:
                seconds = words.pop("seconds", None)
                found = getattr(client, method)(**words)
                if seconds is not None:
                    found = [*updates(found, seconds)]
                elif method == "subscribe2":
                    found = [*found]
                told = {"found": found}
            except (Exception, SystemExit) as error:
                told = {"error": str(error)}
            print(json.dumps(told), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
