"""pygnmi as a process of its own, as its messages and finsy's cannot be in one: lines of JSON."""

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

from pygnmi.client import gNMIclient


def until(subscription: Any, count: int, most_s: float) -> Iterator[Any]:
    """What a subscription brings, until so many values have come."""
    while count > 0:
        update = subscription.get_update(timeout=most_s)
        count -= len(update.get("update", {}).get("update", ()))
        yield update


def main(port: str, most_s: str, host: str = "127.0.0.1") -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # pygnmi prints what went wrong
    with gNMIclient(target=(host, int(port)), insecure=True, username="", password="") as client:
        open_ = None  # the subscription that goes on
        for line in sys.stdin:
            method, words = json.loads(line)
            try:
                if method == "more":  # what comes next of it, until so many values have come
                    found = [*until(open_, most_s=float(most_s), **words)]
                else:
                    found = getattr(client, method)(**words)
                if method == "subscribe2":
                    is_stream = words["subscribe"]["mode"] == "stream"
                    open_, found = (found, None) if is_stream else (None, [*found])
                answer: dict[str, Any] = {"found": found}
            except (Exception, SystemExit) as error:
                answer = {"error": str(error)}
            print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
