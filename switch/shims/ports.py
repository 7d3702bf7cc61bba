"""Commands on ports, their queues and the switch itself."""

from __future__ import annotations

from collections.abc import Iterator

from switch.shims.session import Session, need, number


def do_set_queue_depth(session: Session, words: list[str]) -> None:
    """Bound queues in packets: set_queue_depth <packets> [<egress port> [<priority>]]."""
    need(words, 1, 3)
    depth = number(words[0], "packets")
    priority = number(words[2], "priority") if len(words) > 2 else None
    for port in _ports(session, words[1:]):
        session.device.plane.set_queue_limits(port, priority, packets=depth)


def do_set_queue_rate(session: Session, words: list[str]) -> None:
    """Pace queues in packets a second: set_queue_rate <rate> [<egress port> [<priority>]]."""
    need(words, 1, 3)
    rate = number(words[0], "rate")
    priority = number(words[2], "priority") if len(words) > 2 else None
    for port in _ports(session, words[1:]):
        session.device.plane.set_queue_rate(port, priority, rate)


def do_port_add(session: Session, words: list[str]) -> None:
    """Attach an interface: port_add <interface> <port>."""
    need(words, 2, 3)
    session.device.plane.add_port(number(words[1], "port"), words[0])


def do_port_remove(session: Session, words: list[str]) -> None:
    """Detach a port: port_remove <port>."""
    need(words, 1)
    session.device.plane.remove_port(number(words[0], "port"))


def do_show_ports(session: Session, words: list[str]) -> Iterator[str]:
    """Show the ports and what passed them: show_ports."""
    need(words, 0)
    yield f"{'port':>6} {'state':>6} {'received':>12} {'sent':>12}"
    for port, stats in sorted(session.device.plane.stats().ports.items()):
        state = "up" if stats.is_up else "down"
        yield f"{port:6} {state:>6} {stats.rx_packets:12} {stats.tx_packets:12}"


def do_show_drops(session: Session, words: list[str]) -> Iterator[str]:
    """Show where every packet went: show_drops."""
    need(words, 0)
    stats = session.device.plane.stats()
    for name in ("received", "copies", "sent", "held"):
        yield f"{name:24} {getattr(stats, name):12}"
    for reason, packets in sorted(stats.drops.items()):
        yield f"{'dropped: ' + reason:24} {packets:12}"


def do_switch_info(session: Session, words: list[str]) -> Iterator[str]:
    """Show what this switch is: switch_info."""
    need(words, 0)
    yield f"device_id: {session.device.device_id}"
    program = session.device.plane.program
    yield f"program: {program.name if program else 'none'}"


def _ports(session: Session, words: list[str]) -> list[int]:
    if words:
        return [number(words[0], "egress port")]
    return list(session.device.plane.stats().ports)
