"""Commands on multicast groups and mirroring sessions."""

from __future__ import annotations

from collections.abc import Iterator

from finsy.proto import p4r

from switch import dataplane as dp
from switch.shims.session import CommandError, Node, Session, need, number

_NO_LIMIT = 1 << 16


def do_mc_mgrp_create(session: Session, words: list[str]) -> Iterator[str]:
    """Create a multicast group: mc_mgrp_create <group id>."""
    need(words, 1)
    group = number(words[0], "group id")
    yield f"Creating multicast group {group}"
    _write_group(session, dp.Verb.INSERT, group, [])
    session.groups[group] = []


def do_mc_mgrp_destroy(session: Session, words: list[str]) -> Iterator[str]:
    """Destroy a multicast group: mc_mgrp_destroy <group id>."""
    need(words, 1)
    group = number(words[0], "group id")
    yield f"Destroying multicast group {group}"
    _write_group(session, dp.Verb.DELETE, group, [])
    session.groups.pop(group, None)


def do_mc_node_create(session: Session, words: list[str]) -> Iterator[str]:
    """Create a multicast node: mc_node_create <rid> <space-separated ports>."""
    need(words, 1, _NO_LIMIT)
    node = Node(number(words[0], "rid"), _ports(words[1:]))
    handle = next(n for n in range(len(session.nodes) + 1) if n not in session.nodes)
    session.nodes[handle] = node
    yield f"Creating node with rid {node.rid} for ports {' '.join(map(str, node.ports))}"
    yield f"node was created with handle {handle}"


def do_mc_node_update(session: Session, words: list[str]) -> Iterator[str]:
    """Give a node other ports: mc_node_update <node handle> <space-separated ports>."""
    need(words, 1, _NO_LIMIT)
    handle, old = _node(session, words[0])
    session.nodes[handle] = Node(old.rid, _ports(words[1:]))
    try:
        _refresh(session, handle)
    except Exception:
        session.nodes[handle] = old
        raise
    yield f"Updating node {handle}"


def do_mc_node_associate(session: Session, words: list[str]) -> Iterator[str]:
    """Put a node into a group: mc_node_associate <group id> <node handle>."""
    need(words, 2)
    group, nodes = _group(session, words[0])
    handle, _ = _node(session, words[1])
    if any(handle in others for others in session.groups.values()):
        raise CommandError(f"node {handle} is in a group already; dissociate it first")
    _write_group(session, dp.Verb.MODIFY, group, [*nodes, handle])
    nodes.append(handle)
    yield f"Associating node {handle} to multicast group {group}"


def do_mc_node_dissociate(session: Session, words: list[str]) -> Iterator[str]:
    """Take a node out of a group: mc_node_dissociate <group id> <node handle>."""
    need(words, 2)
    group, nodes = _group(session, words[0])
    handle, _ = _node(session, words[1])
    if handle not in nodes:
        raise CommandError(f"node {handle} is not in group {group}")
    _write_group(session, dp.Verb.MODIFY, group, [n for n in nodes if n != handle])
    nodes.remove(handle)
    yield f"Dissociating node {handle} from multicast group {group}"


def do_mc_node_destroy(session: Session, words: list[str]) -> Iterator[str]:
    """Destroy a node: mc_node_destroy <node handle>."""
    need(words, 1)
    handle, _ = _node(session, words[0])
    for group, nodes in session.groups.items():
        if handle in nodes:
            _write_group(session, dp.Verb.MODIFY, group, [n for n in nodes if n != handle])
            nodes.remove(handle)
    del session.nodes[handle]
    yield f"Destroying node {handle}"


def do_mc_dump(session: Session, words: list[str]) -> Iterator[str]:
    """Show the multicast groups: mc_dump."""
    need(words, 0)
    yield "=========="
    yield "MC ENTRIES"
    query = p4r.PacketReplicationEngineEntry(multicast_group_entry=p4r.MulticastGroupEntry())
    for found in session.read(p4r.Entity(packet_replication_engine_entry=query)):
        entry = found.packet_replication_engine_entry.multicast_group_entry
        group = entry.multicast_group_id
        yield "**********"
        yield f"mgrp({group})"
        nodes = session.groups.get(group)
        if nodes is None:
            for replica in entry.replicas:
                yield f"  -> (rid={replica.instance}) -> (ports=[{_port(session, replica)}])"
            continue
        for handle in nodes:
            node = session.nodes[handle]
            ports = ", ".join(map(str, node.ports))
            yield f"  -> (L1h={handle}, rid={node.rid}) -> (ports=[{ports}], lags=[])"
    yield "=========="
    yield "LAGS"
    yield "=========="


def do_mirroring_add(session: Session, words: list[str]) -> None:
    """Mirror to a port: mirroring_add <session id> <egress port>."""
    need(words, 2)
    mirror = number(words[0], "session id")
    entry = p4r.CloneSessionEntry(session_id=mirror)
    entry.replicas.add(egress_port=number(words[1], "egress port"))
    present = bool(_sessions(session, mirror))
    if session.mirrored_groups.pop(mirror, None) is not None:
        session.do(dp.CloneWrite(dp.Verb.DELETE, mirror))
    verb = dp.Verb.MODIFY if present else dp.Verb.INSERT
    pre = p4r.PacketReplicationEngineEntry(clone_session_entry=entry)
    session.write(verb, p4r.Entity(packet_replication_engine_entry=pre))


def do_mirroring_add_mc(session: Session, words: list[str]) -> None:
    """Mirror to a multicast group: mirroring_add_mc <session id> <group id>."""
    need(words, 2)
    mirror, group = number(words[0], "session id"), number(words[1], "group id")
    if _sessions(session, mirror):
        _delete_session(session, mirror)
    known = mirror in session.mirrored_groups
    verb = dp.Verb.MODIFY if known else dp.Verb.INSERT
    session.do(dp.CloneWrite(verb, mirror, group=group))
    session.mirrored_groups[mirror] = group


def do_mirroring_delete(session: Session, words: list[str]) -> None:
    """Stop mirroring: mirroring_delete <session id>."""
    need(words, 1)
    mirror = number(words[0], "session id")
    if session.mirrored_groups.pop(mirror, None) is not None:
        session.do(dp.CloneWrite(dp.Verb.DELETE, mirror))
    else:
        _delete_session(session, mirror)


def do_mirroring_get(session: Session, words: list[str]) -> Iterator[str]:
    """Show a mirroring session: mirroring_get <session id>."""
    need(words, 1)
    mirror = number(words[0], "session id")
    if mirror in session.mirrored_groups:
        yield f"MirroringSessionConfig(mgid={session.mirrored_groups[mirror]}, port=None)"
        return
    found = _sessions(session, mirror)
    if not found:
        raise CommandError(f"mirroring session {mirror} is not configured")
    ports = [_port(session, replica) for replica in found[0].replicas]
    yield f"MirroringSessionConfig(mgid=None, port={', '.join(map(str, ports))})"


def _port(session: Session, replica: p4r.Replica) -> int:
    """The port of a copy that may have been asked for by another client."""
    if replica.WhichOneof("port_kind") == "port":
        return session.pipeline.ports.number(replica.port, "port")
    return replica.egress_port


def _sessions(session: Session, mirror: int) -> list[p4r.CloneSessionEntry]:
    entry = p4r.CloneSessionEntry(session_id=mirror)
    query = p4r.PacketReplicationEngineEntry(clone_session_entry=entry)
    return [
        found.packet_replication_engine_entry.clone_session_entry
        for found in session.read(p4r.Entity(packet_replication_engine_entry=query))
        if mirror
    ]


def _delete_session(session: Session, mirror: int) -> None:
    entry = p4r.CloneSessionEntry(session_id=mirror)
    pre = p4r.PacketReplicationEngineEntry(clone_session_entry=entry)
    session.write(dp.Verb.DELETE, p4r.Entity(packet_replication_engine_entry=pre))


def _write_group(session: Session, verb: dp.Verb, group: int, nodes: list[int]) -> None:
    entry = p4r.MulticastGroupEntry(multicast_group_id=group)
    for handle in nodes:
        node = session.nodes[handle]
        for port in node.ports:
            entry.replicas.add(egress_port=port, instance=node.rid)
    pre = p4r.PacketReplicationEngineEntry(multicast_group_entry=entry)
    session.write(verb, p4r.Entity(packet_replication_engine_entry=pre))


def _refresh(session: Session, handle: int) -> None:
    for group, nodes in session.groups.items():
        if handle in nodes:
            _write_group(session, dp.Verb.MODIFY, group, nodes)


def _node(session: Session, word: str) -> tuple[int, Node]:
    handle = number(word, "node handle")
    node = session.nodes.get(handle)
    if node is None:
        raise CommandError(f"there is no node with handle {handle}")
    return handle, node


def _group(session: Session, word: str) -> tuple[int, list[int]]:
    group = number(word, "group id")
    nodes = session.groups.get(group)
    if nodes is None:
        raise CommandError(f"there is no multicast group {group} made here")
    return group, nodes


def _ports(words: list[str]) -> tuple[int, ...]:
    if "|" in words:
        cut = words.index("|")
        if words[cut + 1 :]:
            raise CommandError("link aggregation groups are not supported")
        words = words[:cut]
    ports = tuple(number(word, "port") for word in words)
    if len(set(ports)) < len(ports):
        raise CommandError("a port is given twice")
    return ports
