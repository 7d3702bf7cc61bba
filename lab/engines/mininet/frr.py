"""FRR in a room of its own: a switch's routing daemons, and the namespaces in which they run.

A room is a network and a mount namespace. In it lie /etc/frr and /run/frr of this switch alone, so
FRR's own programs find each other where they always do, `vtysh` among them; what they note in
/var/tmp for after a crash goes with the room. FRR wants users and
groups of its own; in a room all of them are who the sandbox's root is, which may be anybody.

    unshare ── sh          holds the room, and carries out what is said to it
    zebra ── bgpd, bfdd    in it, each a process of ours: who dies is started again

Every switch is an autonomous system of its own, so the shortest path in BGP is the shortest in
cables, as for our own controller. Sessions are unnumbered: an interface is all that is named.

At first one end of each cable waits for the other. If both connect at once, as they do where all
begin together, the second connection is taken for a restart of who has the first (RFC 4724, 4.2):
bgpd drops that, both ends try again at once after one, two, four seconds, and may meet again. A
daemon that starts again does not wait: its neighbours do, as graceful restart has it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from controller.routing import STALE_S
from controller.tenants import ROUTED_VNI, tenants_at
from lab.engines.mininet.outside import Neighbour, maps
from lab.errors import RunError
from lab.machine.patience import Patience
from lab.machine.processes import last_line, line_of, say, stop
from lab.machine.speed import slowness
from lab.machine.supervisor import supervisor
from lab.machine.tools import FRR, FRR_PROGRAMS
from topologies import Fabric, Network, Node, NodeKind

DAEMONS = FRR_PROGRAMS
DRAINED = "drained"  # a route map: what it lets pass is marked
_FIRST_AS = 4_200_000_000  # of those for private use (RFC 6996)
_MAX_ENDS, _WITHIN_S = 8, 60.0  # of a daemon, before it is given up
_KNOWN_S = 0.1  # until neighbours know that a bgpd is dead
_READY = "ready"

# All who want to be somebody here are root, who may be nobody outside.
_USERS = "root:x:0:0:root:/root:/bin/sh\nfrr:x:0:0:frr:/:/bin/false\n"
_GROUPS = "root:x:0:\nfrr:x:0:\nfrrvty:x:0:\n"
_VTYSH = "username root nopassword\nno service integrated-vtysh-config\n"

_FURNISH = f"""\
set -e
mount -t tmpfs none /run
mkdir /run/frr
mount --bind {{folder}}/passwd /etc/passwd
mount --bind {{folder}}/group /etc/group
mount --bind {{folder}}/etc /etc/frr
mount -t tmpfs none /var/tmp
ip link set lo up
for each in all default; do
    cd /proc/sys/net/ipv6/conf/$each
    echo 0 > accept_dad; echo 0 > accept_ra; echo 0 > router_solicitations; echo 0 > disable_ipv6
done
cd /
echo {_READY}
"""

# A daemon tries in vain for ten seconds what it finds missing when it begins.
_AFTER = 'until [ -S "$0" ]; do sleep 0.01; done; exec "$@"'
_WAITS_FOR = {"bfdd": "/run/frr/zserv.api", "bgpd": "/run/frr/bfdd.vty"}
_WITH_FPM = "-M", "dplane_fpm_nl"
# A VRF is a network namespace: these are in every kernel, devices that are one are not. FPM does
# not say whose a route is then, and the module of 8.4 dies of leaves' MACs: the kernel is asked.
_WITH_VRFS = ("--vrfwnetns",)

# What they free when they have read their configuration goes back to the kernel: a fifth of it all.
_THRIFT = {"MALLOC_TOP_PAD_": "0", "MALLOC_TRIM_THRESHOLD_": "0"}

# Of tenants' networks: zebra knows from the kernel's vxlan devices which are here.
_EVPN = (
    " address-family l2vpn evpn",
    "  neighbor fabric activate",
    "  advertise-all-vni",
    " exit-address-family",
)


def vrf(tenant: int) -> str:
    """A tenant's VRF, and the network namespace that it is."""
    return f"tenant{tenant}"


def as_number(switch: Node) -> int:
    """A switch's autonomous system."""
    return _FIRST_AS + int(switch.kind) * 10_000 + switch.number


def configurations(
    fabric: Fabric,
    switch: Node,
    bfd_ms: int,
    *,
    is_first: bool = True,
    outside: Sequence[Neighbour] = (),
    drained: Collection[str] = (),
) -> dict[str, str]:
    """What a switch's daemons are told, by the name of the file they read."""
    neighbours = {
        switch.interface(port): is_first and _waits(switch, peer)
        for port, peer in fabric.ports(switch).items()
        if peer.kind is not NodeKind.HOST
    }
    own = fabric.prefixes(switch) if fabric.hosts_of(switch) else ()
    here = tenants_at(fabric, switch)
    lines = {
        "zebra": [*_vrfs(here)] if here else ["fpm address 127.0.0.1"],
        "bgpd": [
            *_bgp(fabric, switch, neighbours, own, has_bfd=bool(bfd_ms), outside=outside),
            *(drainage(fabric, outside, drained, is_drained=True) if drained else ()),
            *(line for tenant in here for line in _tenant(fabric, switch, tenant)),
        ],
        "bfdd": _bfd(bfd_ms),
    }
    return {
        f"{daemon}.conf": "\n".join(
            [
                "frr defaults datacenter",
                f"hostname {switch}",
                f"log file /etc/frr/{daemon}.log",
                *lines[daemon],
                "",
            ]
        )
        for daemon in DAEMONS
    }


def _waits(switch: Node, peer: Node) -> bool:
    """Whether a switch lets its neighbour connect: who is started later has heard of the other."""
    return switch > peer


def _bgp(
    fabric: Fabric,
    switch: Node,
    neighbours: Mapping[str, bool],
    own: Iterable[Network],
    *,
    has_bfd: bool,
    outside: Sequence[Neighbour],
) -> list[str]:
    """Sessions with everyone next to it, for which it waits or not, and what it has to tell them.

    Routes of a neighbour that restarts are kept as long as it keeps its own, and no longer: FRR 8.4
    goes by them until then even if their cable is cut meanwhile.
    """
    here = [each for each in outside if each.leaf == switch]
    return [
        *(maps(fabric, switch) if here else ()),
        f"route-map {DRAINED} permit 10",
        " set community graceful-shutdown additive",
        f"router bgp {as_number(switch)}",
        f" bgp router-id {fabric.loopback(switch)}",
        " no bgp ebgp-requires-policy",
        " no bgp network import-check",
        " bgp bestpath as-path multipath-relax",
        " bgp graceful-restart",
        f" bgp graceful-restart restart-time {STALE_S:.0f}",
        " bgp graceful-restart preserve-fw-state",
        " neighbor fabric peer-group",
        " neighbor fabric remote-as external",
        " neighbor fabric advertisement-interval 0",
        " neighbor fabric timers 3 9",
        " neighbor fabric timers connect 1",
        *([" neighbor fabric bfd profile fabric"] if has_bfd else ()),
        *(line for each in here for line in each.session()),
        *(line for version in _families(fabric, outside) for line in _family(version, own, here)),
        *(_EVPN if fabric.tenants else ()),
        # Last: a session begins with this line, and ends if what it carries changes after it.
        *(f" neighbor {name} interface peer-group fabric" for name in neighbours),
        *(f" neighbor {name} passive" for name, waits in neighbours.items() if waits),
    ]


def _families(fabric: Fabric, outside: Iterable[Neighbour]) -> Sequence[int]:
    """What is told of: IPv4, without which none of the defaults is, and IPv6 if there is any."""
    return (4, 6) if fabric.ip == 6 or any(each.has(6) for each in outside) else (4,)


def _family(version: int, own: Iterable[Network], here: Iterable[Neighbour]) -> Iterator[str]:
    """What is told of IPv4, or of IPv6."""
    yield f" address-family ipv{version} unicast"
    if version == 6:
        yield "  neighbor fabric activate"
    yield from (f"  network {prefix}" for prefix in own if prefix.version == version)
    yield from (line for each in here for line in each.carried(version))
    yield "  maximum-paths 64"
    yield " exit-address-family"


def drainage(
    fabric: Fabric, outside: Iterable[Neighbour], names: Collection[str], *, is_drained: bool
) -> Iterator[str]:
    """What a bgpd is told so that its neighbours at some interfaces leave these ways to who has no
    other (RFC 8326): it marks what it tells there."""
    word = "" if is_drained else "no "
    for version in _families(fabric, outside):
        yield f" address-family ipv{version} unicast"
        yield from (f"  {word}neighbor {name} route-map {DRAINED} out" for name in names)
        yield " exit-address-family"


def _vrfs(tenants: Collection[int]) -> Iterator[str]:
    """Which VRF's routes are told under which VNI."""
    for tenant in tenants:
        yield from (f"vrf {vrf(tenant)}", f" vni {ROUTED_VNI + tenant}", "exit-vrf")


def _tenant(fabric: Fabric, switch: Node, tenant: int) -> list[str]:
    """A tenant's routes: its subnet here (EVPN's type 5), or as hosts are (type 2)."""
    subnets = [] if fabric.is_stretched else [f"  network {fabric.prefix(switch)}"]
    return [
        f"router bgp {as_number(switch)} vrf {vrf(tenant)}",
        f" bgp router-id {fabric.loopback(switch)}",
        " no bgp network import-check",
        " address-family ipv4 unicast",
        *subnets,
        " exit-address-family",
        " address-family l2vpn evpn",
        "  advertise ipv4 unicast",
        " exit-address-family",
    ]


def _bfd(bfd_ms: int) -> list[str]:
    if not bfd_ms:
        return []
    return [
        "bfd",
        " profile fabric",
        "  detect-multiplier 3",
        f"  transmit-interval {bfd_ms}",
        f"  receive-interval {bfd_ms}",
    ]


class Room:
    """A switch's."""

    def __init__(
        self, switch: Node, folder: Path, still: Callable[[float], None], *, has_vrfs: bool = False
    ) -> None:
        self.switch = switch
        self._has_vrfs = has_vrfs
        self.folder = folder / switch.name
        self._still = still
        shutil.rmtree(self.folder, ignore_errors=True)  # an earlier run's
        (self.folder / "etc").mkdir(parents=True)
        for name, content in (("passwd", _USERS), ("group", _GROUPS), ("etc/vtysh.conf", _VTYSH)):
            (self.folder / name).write_text(content)
        with (self.folder / "room.log").open("w") as log:
            self._shell = subprocess.Popen(
                ["unshare", "--net", "--mount", "sh"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,  # Ctrl-C at the prompt is not meant for daemons
            )
        supervisor.rely(self._shell.pid, f"the shell of {switch}'s room for FRR")
        self._again: Mapping[str, str] = {}
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._ends: dict[str, deque[float]] = {}
        say(self._shell, _FURNISH.format(folder=shlex.quote(str(self.folder.absolute()))))

    @property
    def pid(self) -> int:
        """The process that holds it."""
        return self._shell.pid

    def namespace(self, name: str) -> Path:
        """A network namespace within, by its name there."""
        return Path(f"/proc/{self.pid}/root/run/netns/{name}")

    def await_ready(self) -> None:
        """Until all that was said to it is done."""
        assert self._shell.stdout is not None
        patience = Patience([self._shell.pid], tell=self._still)
        if line_of(self._shell.stdout, patience) != _READY:
            raise RunError(
                f"there is no room for the control plane of {self.switch}: "
                f"{last_line(self.folder / 'room.log')}",
                f"All it said is in {self.folder}/",
            )

    def carry_out(self, lines: Iterable[str]) -> None:
        """Have commands of the shell done in it."""
        say(self._shell, "\n".join([*lines, f"echo {_READY}"]))
        self.await_ready()

    def have_done(self, lines: Iterable[str]) -> None:
        """The same, without waiting for it."""
        for line in lines:
            say(self._shell, line)

    def inside(self, words: Sequence[str]) -> list[str]:
        """A command, to be run in it from elsewhere in the sandbox."""
        return ["nsenter", f"--target={self.pid}", "--net", "--mount", "--", *words]

    # --- daemons ----------------------------------------------------------------------------------

    def configure(self, files: Mapping[str, str]) -> None:
        """What daemons read when they start again, from now on."""
        self._again = files

    def write(self, files: Mapping[str, str]) -> None:
        """What they read when they start now."""
        for name, content in files.items():
            (self.folder / "etc" / name).write_text(content)

    def start(self, daemon: str) -> None:
        """Start a daemon, once those it needs are there."""
        words = [str(FRR / daemon), "-A", "127.0.0.1"]
        if daemon == "zebra":
            words += _WITH_VRFS if self._has_vrfs else _WITH_FPM
        if daemon in _WAITS_FOR:
            words = ["sh", "-c", _AFTER, _WAITS_FOR[daemon], *words]
        with (self.folder / f"{daemon}.out").open("ab") as said:
            self._running[daemon] = subprocess.Popen(
                self.inside(words),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env=os.environ | _THRIFT,
                start_new_session=True,
            )
        supervisor.know(self._running[daemon].pid, f"FRR's {daemon} of {self.switch}")

    def kill(self, daemon: str) -> None:
        """Let a daemon die as a defect of its own would have it."""
        self._running[daemon].kill()

    def revive(self) -> Sequence[str]:
        """Start again what has died, and with zebra all others; which that was."""
        died = [daemon for daemon, process in self._running.items() if process.poll() is not None]
        for daemon in died:
            ends = self._ends.setdefault(daemon, deque(maxlen=_MAX_ENDS + 1))
            ends.append(time.monotonic())
            if len(ends) > _MAX_ENDS and ends[-1] - ends[0] < _WITHIN_S * slowness():
                raise RunError(
                    f"{daemon} of {self.switch} ends again and again (exit code "
                    f"{self._running[daemon].returncode}): "
                    f"{last_line(self.folder / f'{daemon}.out')}",
                    f"All it said is in {self.folder}/",
                )
        if died:
            self.write(self._again)
        if "zebra" in died:
            self._end_with_zebra()
        for daemon in DAEMONS:
            if daemon in died or "zebra" in died:
                self.start(daemon)
        return died

    def _end_with_zebra(self) -> None:
        """End what goes by zebra, as FRR's own watchfrr does, and in an order that loses nothing.

        bfdd would find the next zebra after ten seconds, and then say goodbye for a bgpd that
        lives: of such a one neighbours keep no routes. Of one that died they do, if they know.
        """
        self._running["bgpd"].kill()
        self._running["bgpd"].wait()
        time.sleep(_KNOWN_S * slowness())
        stop(self._running["bfdd"])
        for left in ("zserv.api", "bfdd.vty"):  # for which those who start wait
            Path(f"/proc/{self.pid}/root/run/frr/{left}").unlink(missing_ok=True)

    def asked(self, *commands: str) -> str:
        """What vtysh answers."""
        words = ["vtysh", *(word for command in commands for word in ("-c", command))]
        done = subprocess.run(self.inside(words), capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    def close(self) -> None:
        """End all of it."""
        for process in self._running.values():
            process.terminate()
        for process in self._running.values():
            stop(process)
        stop(self._shell)
