"""Word of running labs, so that a second terminal can find them.

Each running lab has a folder named after it. ``sandbox.json`` is written from outside (the PID by
which the sandbox can be entered), ``lab.json`` from inside (nodes and switches). A folder whose
process is gone is swept away by whoever looks next; who cannot see that process because he is in a
sandbox himself sweeps nothing.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from lab.errors import LabError
from lab.machine.certificates import Certificates
from lab.machine.paths import running_labs
from lab.scenario.keys import nearest
from params.data import Data

JOURNAL = "journal.json"
_ANNOUNCED_IN_S = 10.0
_NAMED = re.compile(r"[a-z0-9][a-z0-9-]*-\d+")
_OVER = "ZX"  # states of a process
_PROGRAMS = ("closlab", "lab.runs.child")  # whose first processes labs are


class RunningLab(Data):
    """A lab that is up: how to enter it, and what is in it."""

    name: str
    pid: int
    hosts: dict[str, int]  # PIDs inside the sandbox
    switches: dict[str, tuple[str, int]]  # P4Runtime address and device id
    links: dict[str, str]  # the interface at a switch's end
    watch: dict[str, Any]  # what who watches needs: scenario, record, dilation, since_ns
    certificates: Certificates | None = None  # inside the sandbox; None: all is in the clear
    # PIDs inside the sandbox that hold switches' control planes.
    rooms: dict[str, int] | None = None

    @property
    def folder(self) -> Path:
        """What it left word of itself in."""
        return running_labs() / self.name

    @property
    def adapters(self) -> Path:
        """Where hosts' adapters of verbs keep their files, of those that a program has used."""
        return self.folder / "adapters"

    def enter_command(self, command: list[str]) -> list[str]:
        """A command, to be run inside the sandbox."""
        user = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
        return [
            *("nsenter", f"--target={self.pid}", *user, "--net", "--mount", "--pid"),
            *(f"--wd={Path.cwd()}", "--", *command),
        ]

    def node_command(self, node: str, command: list[str]) -> list[str]:
        """A command, to be run on a node: a host, or a switch (they share one namespace)."""
        if node in self.hosts:
            return self.enter_command(["mnexec", "-a", str(self.hosts[node]), *command])
        if node in self.switches:
            return self.enter_command(command)
        known = ", ".join((*self.switches, *self.hosts))
        raise LabError(f"there is no node '{node}' in the running lab", f"It has {known}.")

    def room_command(self, switch: str | None, command: list[str]) -> list[str]:
        """A command, to be run where a switch's own control plane runs."""
        if not self.rooms:
            raise LabError(
                "the switches of the running lab have no control plane of their own",
                "Start one whose switches have one:  closlab run hello --cli --control bgp",
            )
        if switch not in self.rooms:
            asked = f"there is no switch '{switch}' in the running lab" if switch else "which one"
            raise LabError(asked, f"It has {', '.join(self.rooms)}.")
        room = [f"--target={self.rooms[switch]}", "--net", "--mount"]
        return self.enter_command(["nsenter", *room, "--", *command])

    def link_interface(self, link: str) -> str:
        """Where frames on a link can be seen; its ends may be named in either order."""
        turned = "-".join(reversed(link.split("-")))
        if turned in self.links:
            link = turned
        if link not in self.links:
            raise LabError(
                f"there is no link '{link}' in the running lab" + nearest(link, self.links),
                "A link is named after its ends, the one nearer to the hosts first: leaf1-spine2.",
            )
        return self.links[link]


class Registration:
    """A lab's own entry among the running ones."""

    def __init__(self, scenario: str) -> None:
        self.name = f"{scenario}-{os.getpid()}"
        self.folder = running_labs() / self.name

    def announce(self, pid: int) -> None:
        """From outside: the sandbox exists."""
        running()  # which sweeps away what others left that were killed
        try:
            started = _start_time(pid)
        except OSError:
            return  # it has ended by now
        self.folder.mkdir(parents=True, exist_ok=True)
        sandbox = {"pid": pid, "started": started, "seen_from": _process_namespace()}
        _write(self.folder / "sandbox.json", sandbox)

    def furnish(
        self,
        hosts: dict[str, int],
        switches: dict[str, tuple[str, int]],
        links: dict[str, str],
        watch: dict[str, object],
        certificates: Certificates | None = None,
        rooms: dict[str, int] | None = None,
    ) -> None:
        """From inside: the lab is up."""
        content = {"hosts": hosts, "switches": switches, "links": links, "watch": watch}
        content["certificates"] = str(certificates.folder) if certificates else None
        content["rooms"] = rooms or {}
        _write(self.folder / "lab.json", content)

    @property
    def journal(self) -> Path:
        """Where it is told what was done to its fabric."""
        return self.folder / JOURNAL

    @property
    def names(self) -> Path:
        """Where the addresses of its hosts are told, for programs inside."""
        return self.folder / "hosts"

    def withdraw(self) -> None:
        """From outside: the sandbox is gone."""
        shutil.rmtree(self.folder, ignore_errors=True)


def find(name: str | None = None) -> RunningLab:
    """The running lab of that name, or the only one."""
    labs = running()
    if name is not None:
        labs = [lab for lab in labs if lab.name == name]
    if not labs:
        _tell_of_others()
        raise LabError(
            f"no lab named '{name}' is running" if name else "no lab is running",
            "Start one in another terminal:  closlab run hello --cli",
        )
    if len(labs) > 1:
        names = ", ".join(lab.name for lab in labs)
        raise LabError("more than one lab is running", f"Say which with --lab NAME: {names}")
    return labs[0]


def _tell_of_others() -> None:
    """Fail with whose labs are running, if there are only others'."""
    users = sorted({_user(uid) for uid in _others()})
    if users:
        raise LabError(
            f"no lab of yours is running; there is one of {' and one of '.join(users)}",
            "Only who started a lab may step in: do this as that user, with sudo for root's.",
        )


def _others() -> Iterator[int]:
    """Whose labs are running, of users that are not this one: each has a first process."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            status = dict(
                line.split(":", 1) for line in (process / "status").read_text().splitlines()
            )
            uid, numbers = int(status["Uid"].split()[0]), status.get("NSpid", "").split()
            if uid != os.geteuid() and len(numbers) > 1 and numbers[-1] == "1":
                words = (process / "cmdline").read_bytes().split(b"\0")
                if any(Path(os.fsdecode(word)).name in _PROGRAMS for word in words):
                    yield uid


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def running() -> list[RunningLab]:
    """Every lab that is up; what dead ones left is swept away."""
    labs = []
    for folder in sorted(filter(_is_a_labs, running_labs().glob("*"))):
        try:
            sandbox = json.loads((folder / "sandbox.json").read_text())
            is_judged_here = sandbox["seen_from"] == _process_namespace()
            if is_judged_here and _start_time(sandbox["pid"]) != sandbox["started"]:
                raise ProcessLookupError
        except (OSError, ValueError, KeyError) as error:
            if not (isinstance(error, FileNotFoundError) and _is_being_made(folder, error)):
                shutil.rmtree(folder, ignore_errors=True)
            continue
        with suppress(FileNotFoundError):  # it is still coming up, or was just taken down
            content = json.loads((folder / "lab.json").read_text())
            if not is_judged_here:
                continue
            switches = {name: (where[0], where[1]) for name, where in content["switches"].items()}
            hosts, links, watch = content["hosts"], content["links"], content["watch"]
            shown = content.get("certificates")
            certificates = Certificates(Path(shown)) if shown else None
            rooms = content.get("rooms", {})  # which earlier versions did not have
            pid = sandbox["pid"]
            labs.append(
                RunningLab(folder.name, pid, hosts, switches, links, watch, certificates, rooms)
            )
    return labs


def _is_a_labs(folder: Path) -> bool:
    """Whether it is named as labs' folders are, and this user's own: no other is swept away."""
    with suppress(OSError):
        found = folder.lstat()
        is_mine = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
        return is_mine and _NAMED.fullmatch(folder.name) is not None
    return False


def _is_being_made(folder: Path, missing: FileNotFoundError) -> bool:
    """Whether it is the word of the sandbox that was missing, and may come yet."""
    if missing.filename != str(folder / "sandbox.json"):
        return False  # it is the process
    try:
        return time.time() - folder.stat().st_mtime < _ANNOUNCED_IN_S
    except FileNotFoundError:
        return True  # somebody swept it away


def _process_namespace() -> str:
    """In which numbers of processes mean what they mean here."""
    return str(Path("/proc/self/ns/pid").readlink())


def _start_time(pid: int) -> str:
    """When a process started: with its PID it names it for good."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    if words[0] in _OVER:  # in a container there may be nobody to ask how it ended
        raise ProcessLookupError
    return words[19]


def _write(path: Path, content: object) -> None:
    draft = path.with_suffix(".tmp")
    draft.write_text(json.dumps(content))
    draft.replace(path)
