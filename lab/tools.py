"""What a run needs of the machine, checked before it starts."""

from __future__ import annotations

import importlib.util
import os
import shutil

from lab.errors import MissingTool

_PROGRAMS = {
    # program -> the Debian package that brings it
    "mnexec": "mininet",
    "ip": "iproute2",
    "ifconfig": "net-tools",
    "ping": "iputils-ping",
}


def require_emulation() -> None:
    """Fail with all that is missing for an emulated run."""
    os.environ["PATH"] += ":/usr/sbin:/sbin"  # where Debian keeps ip and ifconfig from users
    missing = {
        program: package for program, package in _PROGRAMS.items() if not shutil.which(program)
    }
    if missing:
        packages = " ".join(sorted(set(missing.values())))
        who = "Mininet is not installed" if "mnexec" in missing else "Mininet cannot run"
        raise MissingTool(
            f"{who} here: this machine has no {', '.join(missing)}",
            f"Install it:  sudo apt-get install --no-install-recommends {packages}",
        )
    if importlib.util.find_spec("mininet") is None:
        raise MissingTool(
            "Mininet's Python module is not visible in closlab's environment",
            "Remove the folder .venv and start ./closlab again: it links the module anew.",
        )


def require_compiler() -> None:
    """Fail if the switch's code could not be built."""
    wanted = os.environ.get("CC")
    candidates = [wanted] if wanted else ["cc", "gcc", "clang"]
    if not any(shutil.which(candidate) for candidate in candidates):
        raise MissingTool(
            f"no C compiler found (looked for {', '.join(candidates)}); "
            "the switch turns P4 into native code and needs one",
            "Install one:  sudo apt-get install gcc libc6-dev"
            + ("   (or unset CC)" if wanted else ""),
        )
