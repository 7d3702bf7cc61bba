"""Debian's Chromium, driven over its DevTools protocol: by a pipe, so that nothing listens."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select
from typing import IO, Any

import pytest

from tests.waiting import LONG_S

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="Chromium is not installed: apt-get install chromium"
)
_STARTS = 3


class Browser:
    """A browser; commands go down one pipe, answers and events come up another."""

    def __init__(self, send: int, receive: int) -> None:
        self._send, self._receive = send, receive
        self._buffer = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Say something, and wait for what it answers."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._send, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return dict(answer["result"])
            self.events.append(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            if not select([self._receive], [], [], LONG_S)[0]:
                raise TimeoutError(f"the browser has said nothing for {LONG_S:.0f} s")
            read = os.read(self._receive, 1 << 16)
            if not read:
                raise BrokenPipeError("the browser has gone")
            self._buffer += read
        text, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(text))

    def open(self, url: str, width: int = 1400, height: int = 900, *, dark: bool = False) -> Tab:
        """A page in a tab of its own."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = Tab(self, target, session)
        for domain in ("Page", "Runtime", "Log"):
            tab.call(f"{domain}.enable")
        tab.resize(width, height)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        tab.call("Emulation.setEmulatedMedia", features=[scheme])
        tab.call("Page.navigate", url=url)
        return tab


class Tab:
    """A page, as somebody uses it."""

    def __init__(self, browser: Browser, target: str, session: str) -> None:
        self._browser, self._target, self._session = browser, target, session

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Say something to this page."""
        return self._browser.call(method, self._session, **params)

    def resize(self, width: int, height: int) -> None:
        """Let its window be so large."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    def js(self, code: str) -> Any:
        """What an expression is worth there."""
        answer = self.call(
            "Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, code: str, within_s: float = LONG_S) -> Any:
        """Wait until an expression is true; what it is worth then."""
        deadline = time.monotonic() + within_s
        while not (found := self.js(code)):
            assert time.monotonic() < deadline, f"{code} is {found!r} after {within_s} s"
            time.sleep(0.03)
        return found

    def key(self, name: str) -> None:
        """Press a key."""
        text: dict[str, Any] = {"text": name} if len(name) == 1 else {}
        if name == "Enter":
            text = {"text": "\r", "windowsVirtualKeyCode": 13}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, **text)

    def click(self, selector: str) -> None:
        """Click in the middle of an element."""
        x, y = self.js(
            f"(() => {{ const e = document.querySelector({selector!r}); "
            "e.scrollIntoView({block: 'nearest'}); const r = e.getBoundingClientRect(); "
            "return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def picture(self, path: Path, *, whole: bool = True) -> None:
        """A screenshot."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))

    def complaints(self) -> list[str]:
        """What the browser had to say against the page."""
        self.js("1")
        found = []
        for event in self._browser.events:
            params = event.get("params", {})
            if event.get("sessionId") != self._session:
                continue
            if event["method"] == "Runtime.exceptionThrown":
                found.append(str(params["exceptionDetails"]))
            if event["method"] == "Log.entryAdded" and params["entry"]["level"] == "error":
                found.append(str(params["entry"]))
        return found

    def close(self) -> None:
        """Close it."""
        self._browser.call("Target.closeTarget", targetId=self._target)


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser with a profile of its own, which is gone afterwards.

    On a machine with much to do one in some hundred ends as it begins; another is started then.
    """
    for others in reversed(range(_STARTS)):
        with _started() as (found, said):
            try:
                found.call("Browser.getVersion")
            except OSError:
                said.seek(0)
                assert others, f"Chromium ends as it begins: {said.read()[-2000:]}"
                continue
            yield found
            return


@contextmanager
def _started() -> Iterator[tuple[Browser, IO[str]]]:
    """A process of the browser, and the file with what it says against itself."""
    assert CHROMIUM is not None
    down_read, down_write = os.pipe()
    up_read, up_write = os.pipe()
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile,
        tempfile.TemporaryFile("w+", errors="replace") as said,
    ):
        words = (
            *(CHROMIUM, "--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu"),
            *("--no-first-run", "--disable-extensions", "--disable-background-networking"),
            *("--disable-dev-shm-usage", f"--user-data-dir={profile}", "--hide-scrollbars"),
        )
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 16) for end in (down_read, up_write)]

        def place() -> None:
            """Chromium reads from descriptor 3 and writes to 4."""
            for end, number in zip(ends, (3, 4), strict=True):
                os.dup2(end, number)

        process = subprocess.Popen(
            words,
            pass_fds=(3, 4),
            preexec_fn=place,  # noqa: PLW1509  (no other thread forks here)
            stdout=subprocess.DEVNULL,
            stderr=said,
        )
        for end in (down_read, up_write, *ends):
            os.close(end)
        try:
            yield Browser(down_write, up_read), said
        finally:
            process.kill()
            process.wait()
            os.close(down_write)
            os.close(up_read)
