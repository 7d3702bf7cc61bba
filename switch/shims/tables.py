"""Commands on tables."""

from __future__ import annotations

from collections.abc import Iterator

from finsy.proto import p4r

from switch import dataplane as dp
from switch.p4runtime.pipeline import TableBinding
from switch.p4runtime.symbols import Action, KeyField, Match
from switch.p4runtime.values import all_ones
from switch.shims.session import (
    TOP_PRIORITY,
    CommandError,
    Session,
    named,
    need,
    number,
    value,
)

_NO_LIMIT = 1 << 30


def do_show_tables(session: Session, words: list[str]) -> Iterator[str]:
    """List the tables: show_tables."""
    need(words, 0)
    for table in session.pipeline.tables.values():
        yield table_line(table)


def do_show_actions(session: Session, words: list[str]) -> Iterator[str]:
    """List the actions: show_actions."""
    need(words, 0)
    for action in session.pipeline.symbols.actions:
        yield action_line(action)


def do_table_info(session: Session, words: list[str]) -> Iterator[str]:
    """Show a table and its actions: table_info <table name>."""
    need(words, 1)
    table = session.table(words[0])
    yield table_line(table)
    yield "*" * 80
    for action in table.symbol.actions.values():
        yield action_line(action)


def do_table_add(session: Session, words: list[str]) -> Iterator[str]:
    """Add an entry: table_add <table> <action> <match fields> => <action parameters> [priority]."""
    need(words, 2, _NO_LIMIT)
    table = session.table(words[0])
    action = _action(table, words[1])
    entry = p4r.TableEntry(table_id=table.symbol.id)
    words = _take_priority(table, words[2:], entry)
    keys, params = _split(words)
    entry.match.extend(parse_key(table, keys))
    entry.action.action.CopyFrom(parse_action(action, params))
    yield f"Adding entry to {table.info.kind.value} match table {table.symbol.name}"
    session.write(dp.Verb.INSERT, p4r.Entity(table_entry=entry))
    yield f"Entry has been added with handle {session.handle_of(table, entry)}"


def do_table_modify(session: Session, words: list[str]) -> Iterator[str]:
    """Change an entry's action: table_modify <table> <action> <handle> [=>] [parameters]."""
    need(words, 3, _NO_LIMIT)
    table = session.table(words[0])
    action = _action(table, words[1])
    entry = session.entry(table, words[2])
    params = words[4:] if words[3:4] == ["=>"] else words[3:]
    changed = p4r.TableEntry()
    changed.CopyFrom(entry)
    changed.action.action.CopyFrom(parse_action(action, params))
    yield f"Modifying entry {words[2]} for {table.info.kind.value} match table {words[0]}"
    session.write(dp.Verb.MODIFY, p4r.Entity(table_entry=changed))


def do_table_delete(session: Session, words: list[str]) -> Iterator[str]:
    """Delete an entry: table_delete <table> <handle>."""
    need(words, 2)
    table = session.table(words[0])
    entry = session.entry(table, words[1])
    yield f"Deleting entry {words[1]} from {words[0]}"
    session.write(dp.Verb.DELETE, p4r.Entity(table_entry=entry))


def do_table_clear(session: Session, words: list[str]) -> None:
    """Delete all entries but the default: table_clear <table>."""
    need(words, 1)
    table = session.table(words[0])
    for entry in list(session.entries(table).values()):
        if not entry.is_const:
            session.write(dp.Verb.DELETE, p4r.Entity(table_entry=entry))


def do_table_set_default(session: Session, words: list[str]) -> Iterator[str]:
    """Set the default action: table_set_default <table> <action> <action parameters>."""
    need(words, 2, _NO_LIMIT)
    table = session.table(words[0])
    entry = p4r.TableEntry(table_id=table.symbol.id, is_default_action=True)
    params = [word for word in words[2:] if word != "=>"]
    entry.action.action.CopyFrom(parse_action(_action(table, words[1]), params))
    yield f"Setting default action of {words[0]}"
    session.write(dp.Verb.MODIFY, p4r.Entity(table_entry=entry))


def do_table_reset_default(session: Session, words: list[str]) -> None:
    """Restore the program's default action: table_reset_default <table>."""
    need(words, 1)
    entry = p4r.TableEntry(table_id=session.table(words[0]).symbol.id, is_default_action=True)
    session.write(dp.Verb.MODIFY, p4r.Entity(table_entry=entry))


def do_table_num_entries(session: Session, words: list[str]) -> Iterator[str]:
    """Count a table's entries: table_num_entries <table>."""
    need(words, 1)
    yield str(len(session.entries(session.table(words[0]))))


def do_table_set_timeout(session: Session, words: list[str]) -> Iterator[str]:
    """Let an entry go idle after a while: table_set_timeout <table> <handle> <timeout (ms)>."""
    need(words, 3)
    table = session.table(words[0])
    changed = p4r.TableEntry()
    changed.CopyFrom(session.entry(table, words[1]))
    changed.idle_timeout_ns = number(words[2], "timeout") * 1_000_000
    session.write(dp.Verb.MODIFY, p4r.Entity(table_entry=changed))
    yield f"Setting a {words[2]} ms timeout for entry {words[1]}"


def do_table_dump(session: Session, words: list[str]) -> Iterator[str]:
    """Show a table's entries and its default: table_dump <table>."""
    need(words, 1)
    table = session.table(words[0])
    yield "=========="
    yield "TABLE ENTRIES"
    for handle, entry in session.entries(table).items():
        yield "**********"
        yield from dump_entry(session, table, handle, entry)
    yield "=========="
    yield "Dumping default entry"
    query = p4r.TableEntry(table_id=table.symbol.id, is_default_action=True)
    for found in session.read(p4r.Entity(table_entry=query)):
        yield dump_action(session, found.table_entry.action)
    yield "=========="


def do_table_dump_entry(session: Session, words: list[str]) -> Iterator[str]:
    """Show one entry: table_dump_entry <table> <handle>."""
    need(words, 2)
    table = session.table(words[0])
    entry = session.entry(table, words[1])
    yield from dump_entry(session, table, number(words[1], "entry handle"), entry)


def table_line(table: TableBinding) -> str:
    """Describe a table in a line."""
    kind = "indirect" if table.info.profile is not None else "direct"
    keys = ", ".join(f"{f.name}({f.match.value}, {f.bits})" for f in table.symbol.key)
    return f"{table.symbol.name:30} [{kind}, size={table.symbol.size}, mk={keys}]"


def action_line(action: Action) -> str:
    """Describe an action in a line."""
    params = ",\t".join(f"{param.name}({param.bits})" for param in action.params)
    return f"{action.name:30} [{params}]"


def parse_key(table: TableBinding, words: list[str]) -> list[p4r.FieldMatch]:
    """Read a key, leaving out what matches everything."""
    fields = table.key.fields
    if len(words) != len(fields):
        raise CommandError(f"table {table.symbol.name} has {len(fields)} fields, not {len(words)}")
    matches = (_parse_match(item, word) for item, word in zip(fields, words, strict=True))
    return [match for match in matches if match is not None]


def parse_action(action: Action, words: list[str]) -> p4r.Action:
    """Read an action's parameters."""
    if len(words) != len(action.params):
        raise CommandError(f"action {action.name} takes {len(action.params)} parameters")
    params = zip(action.params, words, strict=True)
    return p4r.Action(
        action_id=action.id,
        params=[p4r.Action.Param(param_id=p.id, value=value(word, p)) for p, word in params],
    )


def dump_entry(
    session: Session, table: TableBinding, handle: int, entry: p4r.TableEntry
) -> Iterator[str]:
    """Describe an entry as simple_switch_CLI does."""
    yield f"Dumping entry {handle:#x}"
    yield "Match key:"
    given = {match.field_id: match for match in entry.match}
    for item in table.key.fields:
        shown = _show_match(item, given.get(item.id))
        kind = "TERNARY" if item.match is Match.OPTIONAL else item.match.value.upper()
        yield f"* {item.name:20}: {kind:10}{shown}"
    if entry.priority:
        yield f"Priority: {TOP_PRIORITY - entry.priority}"
    yield dump_action(session, entry.action)


def dump_action(session: Session, action: p4r.TableAction) -> str:
    """Describe what an entry does."""
    match action.WhichOneof("type"):
        case "action":
            return dump_call(session, action.action)
        case "action_profile_member_id":
            return f"Index: member({action.action_profile_member_id})"
        case "action_profile_group_id":
            return f"Index: group({action.action_profile_group_id})"
        case "action_profile_action_set":
            return f"Action set of {len(action.action_profile_action_set.action_profile_actions)}"
        case _:
            return "EMPTY"


def dump_call(session: Session, call: p4r.Action) -> str:
    """Describe an action and its arguments."""
    action = session.pipeline.symbols.actions[call.action_id]
    widths = {param.id: param.bits for param in action.params}
    values = ", ".join(_hex(param.value, widths[param.param_id]) for param in call.params)
    return f"Action entry: {action.name} - {values}"


def _action(table: TableBinding, name: str) -> Action:
    return named("action", name, table.symbol.actions.values(), lambda action: action.name)


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    if "=>" not in words:
        return words, []
    cut = words.index("=>")
    return words[:cut], words[cut + 1 :]


def _take_priority(table: TableBinding, words: list[str], entry: p4r.TableEntry) -> list[str]:
    """Take the priority off the end where the table wants one."""
    if not table.symbol.needs_priority:
        return words
    if not words:
        raise CommandError(f"table {table.symbol.name} needs a priority as the last word")
    entry.priority = TOP_PRIORITY - number(words[-1], "priority")
    return words[:-1]


def _parse_match(item: KeyField, word: str) -> p4r.FieldMatch | None:
    match = p4r.FieldMatch(field_id=item.id)
    match item.match:
        case Match.EXACT:
            match.exact.value = value(word, item)
        case Match.LPM:
            text, slash, length = word.partition("/")
            if not slash:
                raise CommandError(f"{item.name}: {word!r} needs a prefix length, as in {word}/8")
            match.lpm.prefix_len = number(length, "prefix length")
            match.lpm.value = value(text, item)
            return match if match.lpm.prefix_len else None
        case Match.TERNARY | Match.OPTIONAL:
            text, both, mask = word.partition("&&&")
            match.ternary.value = value(text, item)
            match.ternary.mask = (
                value(mask, item) if both else value(hex(all_ones(item.bits)), item)
            )
            if not any(match.ternary.mask):
                return None
            if item.match is Match.OPTIONAL:
                match.optional.value = match.ternary.value
        case Match.RANGE:
            low, arrow, high = word.partition("->")
            if not arrow:
                raise CommandError(f"{item.name}: {word!r} is not a range, such as 1->5")
            match.range.low, match.range.high = value(low, item), value(high, item)
            ends = (int.from_bytes(match.range.low, "big"), int.from_bytes(match.range.high, "big"))
            return match if ends != (0, all_ones(item.bits)) else None
    return match


def _show_match(item: KeyField, match: p4r.FieldMatch | None) -> str:
    zero = _hex(b"\0", item.bits)
    if match is None:
        ends = {
            Match.LPM: f"{zero}/0",
            Match.RANGE: f"{zero} -> {all_ones(item.bits):0{_digits(item.bits)}x}",
        }
        return ends.get(item.match, f"{zero} &&& {zero}")
    match match.WhichOneof("field_match_type"):
        case "exact":
            return _hex(match.exact.value, item.bits)
        case "lpm":
            return f"{_hex(match.lpm.value, item.bits)}/{match.lpm.prefix_len}"
        case "range":
            return f"{_hex(match.range.low, item.bits)} -> {_hex(match.range.high, item.bits)}"
        case "ternary":
            shown = _hex(match.ternary.value, item.bits)
            return f"{shown} &&& {_hex(match.ternary.mask, item.bits)}"
        case _:
            ones = f"{all_ones(item.bits):0{_digits(item.bits)}x}"
            return f"{_hex(match.optional.value, item.bits)} &&& {ones}"


def _digits(bits: int) -> int:
    return (bits + 7) // 8 * 2


def _hex(data: bytes, bits: int) -> str:
    return f"{int.from_bytes(data, 'big'):0{_digits(bits)}x}"
