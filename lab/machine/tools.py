"""What a run needs of the machine, checked before it starts."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from importlib.machinery import PathFinder
from pathlib import Path

from lab.errors import MissingTool
from switch import build
from switch.wasm import is_here

BMV2 = "simple_switch_grpc"
BMV2_CLI = "simple_switch_CLI"
FRR = Path("/usr/lib/frr")
FRR_PROGRAMS = ("zebra", "bfdd", "bgpd")  # each needs those before it
_REFERENCE = ("p4c-bm2-ss", "simple_switch", BMV2, BMV2_CLI)
_SIMULATED = "Without it:  --engine sim"
_PROGRAMS = {
    # program -> the Debian package that brings it
    "mnexec": "mininet",
    "ip": "iproute2",
    "ifconfig": "net-tools",
    "ping": "iputils-ping",
}


def add_system_programs() -> None:
    """Find ip and ifconfig, which Debian keeps from ordinary users."""
    here = os.environ.get("PATH", os.defpath).split(os.pathsep)
    missing = [folder for folder in ("/usr/sbin", "/sbin") if folder not in here]
    os.environ["PATH"] = os.pathsep.join([*here, *missing])


def add_mininet() -> None:
    """Make Mininet's module importable: of the system's packages it alone, not all of them."""
    if importlib.util.find_spec("mininet") is not None:
        return
    found = PathFinder.find_spec("mininet", [str(path) for path in _system_packages()])
    if found is not None and found.loader is not None:
        sys.modules["mininet"] = module = importlib.util.module_from_spec(found)
        found.loader.exec_module(module)


def _system_packages() -> list[Path]:
    """Where Debian's packages and an installation of Mininet from its sources put modules."""
    return [
        Path("/usr/lib/python3/dist-packages"),
        *sorted(Path("/usr/local/lib").glob("python3*/*-packages")),
    ]


def require_emulation() -> None:
    """Fail with all that is missing for an emulated run."""
    if sys.platform != "linux":
        raise MissingTool(
            "fabrics are emulated by Linux' namespaces, which this machine has not", _SIMULATED
        )
    add_system_programs()
    add_mininet()
    missing = {
        program: package for program, package in _PROGRAMS.items() if not shutil.which(program)
    }
    if missing:
        packages = " ".join(sorted(set(missing.values())))
        who = "Mininet is not installed" if "mnexec" in missing else "Mininet cannot run"
        raise MissingTool(
            f"{who} here: this machine has no {', '.join(missing)}",
            f"Install it:  sudo apt-get install --no-install-recommends {packages}\n{_SIMULATED}",
        )
    if importlib.util.find_spec("mininet") is None:
        raise MissingTool(
            "Mininet is installed, but its Python module is not where Debian's package puts it",
            f"Make it visible: link its folder 'mininet' into {sysconfig.get_path('purelib')}"
            f"\n{_SIMULATED}",
        )


def require_native() -> None:
    """Fail if no P4 could be run here: neither is there a compiler, nor did the stock program come
    compiled, as it does to a browser's tab.
    """
    if not (is_here() or build.is_brought()):
        require_compiler()


def require_compiler() -> None:
    """Fail if what did not come compiled could not be built."""
    try:
        build.require_compiler()
    except build.CompilerMissing as error:
        raise MissingTool(error.reason, f"Have one:  {error.cure}") from None


def require_frr() -> None:
    """Fail with what to install, if switches cannot have a control plane of their own."""
    missing = [name for name in FRR_PROGRAMS if not (FRR / name).exists()]
    missing += [name for name in ("vtysh", "nsenter", "unshare") if not shutil.which(name)]
    if missing:
        raise MissingTool(
            f"FRR is not installed here, which speaks BGP: there is no {', '.join(missing)}",
            "Install it:  sudo apt-get install --no-install-recommends frr",
        )


def require_routers(programs: Mapping[str, str]) -> None:
    """Fail with what to install, if routers of others (their packages by program) are not there."""
    missing = {name: package for name, package in programs.items() if not shutil.which(name)}
    if missing:
        raise MissingTool(
            f"topology.outside names routers that are not installed here: {', '.join(missing)}",
            f"Install them:  sudo apt-get install --no-install-recommends "
            f"{' '.join(missing.values())}",
        )


def notifications_at(address: str, program: str = BMV2) -> list[str]:
    """Words that keep BMv2 from leaving a socket in /tmp, if it was built to have one."""
    help_ = subprocess.run([program, "--help"], capture_output=True, text=True, check=False)
    flag = "--notifications-addr"
    return [flag, address] if flag in help_.stdout + help_.stderr else []


def bmv2_cli(port: int) -> tuple[list[str], dict[str, str]]:
    """What starts BMv2's command line for a Thrift port: its words and its environment.

    It is a script for the system's Python, which is where its modules are, not in our environment.
    """
    words = [shutil.which(BMV2_CLI) or BMV2_CLI, "--thrift-port", str(port)]
    return words, {**os.environ, "PATH": f"/usr/bin:{os.environ['PATH']}"}


def require_bmv2() -> None:
    """Fail with what to install, if BMv2 is not there."""
    missing = [name for name in (BMV2, BMV2_CLI) if shutil.which(name) is None]
    if missing:
        raise MissingTool(
            f"BMv2 is not installed here: there is no {' and no '.join(missing)} on the PATH",
            f"{_own_build(BMV2, BMV2_CLI)}\nWithout BMv2:  --switch soft",
        )


def require_reference() -> None:
    """Fail with what to install, if the tests that ask p4c and BMv2 cannot run."""
    missing = [name for name in _REFERENCE if shutil.which(name) is None]
    if missing:
        raise MissingTool(
            f"p4c and BMv2 are not both here: there is no {' and no '.join(missing)} on the PATH",
            _own_build(*_REFERENCE),
        )


def _own_build(*programs: str) -> str:
    return (
        f"Your own build will do: {', '.join(programs)} on the PATH.\n"
        "The p4lang project has packages for Ubuntu (none for Debian 12 and later); as root:\n"
        "    bash provision/p4lang.sh\n"
        "Built from source in DIR (checkouts of p4c and behavioral-model) they are put there by:\n"
        "    bash provision/p4lang.sh --from-source DIR"
    )
