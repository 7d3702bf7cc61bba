"""Certificates for one run: of its switches and of who speaks to them, by an authority of its own.

They are made by openssl, lie in a folder that only their owner enters, and go with the run; the
authority's key is forgotten as soon as all are signed, so nobody joins them later.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.errors import MissingTool, RunError
from lab.machine.scratch import scratch
from lab.machine.supervisor import how_ended
from params.data import Data

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
_DAYS = ("-days", "2")
_PLACE = "subjectAltName=IP:127.0.0.1,DNS:localhost\n"


class Certificates(Data):
    """PEM files."""

    folder: Path

    @property
    def authority(self) -> Path:
        """Whom both sides trust."""
        return self.folder / "authority.pem"

    def certificate(self, whose: str) -> Path:
        """That of the ``switches``, the ``controller``, or the ``operator``: the run's owner."""
        return self.folder / f"{whose}.pem"

    def key(self, whose: str) -> Path:
        """Its key."""
        return self.folder / f"{whose}.key"


def require_openssl() -> None:
    """Fail if there is nothing to make certificates with."""
    if shutil.which("openssl") is None:
        raise MissingTool(
            "openssl, which makes certificates for --tls, is not installed",
            "Install it:  sudo apt-get install openssl, or leave out --tls.",
        )


@contextmanager
def made() -> Iterator[Certificates]:
    """Make them; they are gone with the context."""
    require_openssl()
    with scratch() as folder:  # its mode is 0700
        made_ = Certificates(folder)
        authority = made_.key("authority")
        _openssl(
            *("req", "-x509", *_KEY, "-subj", "/CN=closlab", *_DAYS),
            *("-keyout", str(authority), "-out", str(made_.authority)),
        )
        place = made_.folder / "place"
        place.write_text(_PLACE)
        for whose in ("switches", "controller", "operator"):
            request = made_.folder / f"{whose}.csr"
            _openssl(
                *("req", *_KEY, "-subj", f"/CN={whose}", "-keyout", str(made_.key(whose))),
                *("-out", str(request)),
            )
            _openssl(
                *("x509", "-req", "-in", str(request), "-CA", str(made_.authority)),
                *("-CAkey", str(authority), "-CAcreateserial", *_DAYS),
                *("-extfile", str(place), "-out", str(made_.certificate(whose))),
            )
        authority.unlink()
        yield made_


def _openssl(*words: str) -> None:
    done = subprocess.run(["openssl", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        how = how_ended(done.returncode)
        raise RunError(f"openssl made no certificates{how}: {last}")
