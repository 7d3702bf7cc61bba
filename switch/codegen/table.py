"""Tables: building the key, finding the entry, running its action."""

from __future__ import annotations

from .. import bmv2
from ..bmv2 import Table
from ..layout import (
    entry_layout,
    is_small,
    is_warmed,
    key_layout,
    member_stride,
    profile_actions,
    uses_trie,
)
from .expression import Exprs
from .names import c_string, comment, spoken
from .unit import Unit

MATCHES = {"exact": "SW_EXACT", "lpm": "SW_LPM", "ternary": "SW_TERNARY", "range": "SW_RANGE"}


def key_words(unit: Unit, table: Table) -> list[str]:
    """The words of a table's key."""
    exprs = Exprs(unit)
    widths = [unit.program.field_of(k.target).width for k in table.keys]
    layout = key_layout(widths)
    words: list[list[str]] = [[] for _ in range(layout.words)]
    for key, width, shift in zip(table.keys, widths, layout.shifts, strict=True):
        field = unit.program.field_of(key.target)
        text = exprs.field_text(key.target.header, key.target.field)
        if width > 128:
            for i in range(-(-width // 64)):
                words[shift // 64 + i].append(
                    part(f"{text}.word[{i}]", key.mask, i, width, field.is_signed)
                )
        elif width > 64:
            words[shift // 64].append(
                part(f"(uint64_t){text}", key.mask, 0, width, field.is_signed)
            )
            high = f"(uint64_t)((u128){text} >> 64)"
            words[shift // 64 + 1].append(part(high, key.mask, 1, width, field.is_signed))
        else:
            value = part(f"(uint64_t){text}", key.mask, 0, width, field.is_signed)
            at = shift % 64
            words[shift // 64].append(f"{value} << {at}" if at else value)
    return [" | ".join(w) or "0" for w in words]


def part(text: str, mask: int | None, word: int, width: int, is_signed: bool) -> str:
    """A word of a key field under its static mask."""
    full = ((1 << width) - 1) >> (64 * word) & (2**64 - 1)
    wanted = full if mask is None else mask >> (64 * word) & full
    if wanted == full and not (is_signed and full != 2**64 - 1):
        return text
    return f"({text} & {wanted:#x}u)"


def emit_apply(unit: Unit, table: Table) -> str:
    """The function that applies a table; it returns what the control flow depends on."""
    if not table.keys and table.profile is None and table.default and table.default.is_const:
        return emit_fixed(unit, table, table.default)
    name = unit.tables[table.name]
    layout = entry_layout(unit.program, table)
    words = key_words(unit, table)
    by_hit = "__HIT__" in table.next_tables or "__MISS__" in table.next_tables
    out = [f"/* table {comment(table.name)}: {table.match}, {table.size} entries */"]
    out.append(f"{unit.signature('uint32_t', f'apply_{name}')})")
    out.append("{")
    if words and (default := table.default) and not unit.program.actions[default.action].body:
        # It does nothing then: no line of the table is looked at.
        out.append(f"    if (!SW_TRACES && SW_LIKELY(sw_rests(r->state, TABLE_{name})))")
        known = "false" if by_hit else f"ACTION_{unit.actions[default.action]}"
        out.append(f"        return {known};")
    out.append(f"    const struct sw_table *t = &r->state->tables[TABLE_{name}];")
    if words:
        out.append(f'    SW_TRACE(r, "  table {spoken(table.name)}");')
        out += trace_key(unit, table)
        # Most of a fabric's tables are empty; few of the others are.
        out.append("    struct sw_entry *e = NULL;")
        out.append("    if (t->used) {")
        out.append(f"        const uint64_t key[{len(words)}] = {{{', '.join(words)}}};")
        out.append(f"        e = {find(unit, table, len(words), layout.stride)};")
        out.append("    }")
        out.append("    const bool hit = e != NULL;")
        out.append("    if (hit) {")
        out += [f"        {s}" for s in on_hit(unit, table)]
        out.append('        SW_TRACE(r, "    hit: entry %u", e->position);')
        out.append("    } else {")
        out.append("        e = t->fallback;")
        out.append('        SW_TRACE(r, "    miss");')
        out.append("    }")
    else:
        out.append("    struct sw_entry *e = t->fallback;")
        if by_hit:
            out.append("    const bool hit = false;")
    out += dispatch(unit, table)
    out.append("    return hit;" if by_hit else "    return action;")
    if by_hit:
        out.insert(len(out) - 1, "    (void)action;")
    out.append("}")
    return "\n".join(out)


def emit_fixed(unit: Unit, table: Table, default: bmv2.Default) -> str:
    """The same for one that nobody can change, as all are that the compiler puts statements into.

    It asks the switch for nothing: looking for what is known costs a packet two misses of the cache
    where there are many switches.
    """
    name = unit.tables[table.name]
    action = unit.actions[default.action]
    data = default_data(unit, default)
    by_hit = "__HIT__" in table.next_tables or "__MISS__" in table.next_tables
    out = [f"/* table {comment(table.name)}: always the same action */"]
    out.append(f"{unit.signature('uint32_t', f'apply_{name}')})")
    out.append("{")
    if data:
        out.append(f"    static const uint64_t data[] = {{{data}}};")
    has_params = bool(unit.program.actions[default.action].params)
    argument = (f"{'(const void *)data' if data else 'NULL'}",) if has_params else ()
    out.append(f"    {unit.call(f'do_{action}', *argument)};")
    out.append(f"    return {'false' if by_hit else f'ACTION_{action}'};")
    out.append("}")
    return "\n".join(out)


def warm_table(unit: Unit, table: Table) -> list[str]:
    """Statements that bring the entries that packets may hit into the cache."""
    if not is_warmed(unit.program, table):
        return []
    words = key_words(unit, table)
    widths = [unit.program.field_of(k.target).width for k in table.keys]
    if uses_trie(table, widths):
        shift = 64 - widths[0]
        words = [f"({words[0]}) << {shift}" if shift else words[0]]
        number = f"TABLE_{unit.tables[table.name]}"
        call = f"table_warm_lpm(t, keys[0], packets, n, {number});"
    else:
        call = f"table_warm_exact(t, keys[0], {len(words)}, n);"
    return [
        f"t = &state->tables[TABLE_{unit.tables[table.name]}];",
        "if (t->used >= SW_WARM_MIN) {",
        f"    uint64_t keys[SW_GATHER][{len(words)}];",
        "    for (unsigned i = 0; i < n; i++) {",
        "        const struct phv *h = (const struct phv *)packets[i]->phv;",
        *(f"        keys[i][{i}] = {w};" for i, w in enumerate(words)),
        "    }",
        f"    {call}",
        "}",
    ]


def trace_key(unit: Unit, table: Table) -> list[str]:
    """Tell the key, field by field."""
    exprs = Exprs(unit)
    lines = []
    for key in table.keys:
        field = unit.program.field_of(key.target)
        text = exprs.field_text(key.target.header, key.target.field)
        if field.width <= 64:
            value = f"(unsigned long long){text}"
            lines.append(f'    SW_TRACE(r, "    {spoken(key.name)} = 0x%llx", {value});')
        elif field.width <= 128:
            value = f"(unsigned long long)((u128){text} >> 64), (unsigned long long){text}"
            lines.append(f'    SW_TRACE(r, "    {spoken(key.name)} = 0x%llx%016llx", {value});')
    return lines


def find(unit: Unit, table: Table, words: int, stride: int) -> str:
    """The lookup."""
    widths = [unit.program.field_of(k.target).width for k in table.keys]
    if table.match == "exact":
        if is_small(widths):
            return f"table_find_direct(t, key[0], {stride})"
        return f"table_find_exact(t, key, {words}, {stride})"
    if uses_trie(table, widths):
        shift = 64 - widths[0]
        number = f"TABLE_{unit.tables[table.name]}"
        key = f"key[0] << {shift}" if shift else "key[0]"
        return f"table_find_lpm(t, r->pkt, {number}, {key}, {stride})"
    return f"table_find_ternary(t, key, {words}, {stride})"


def on_hit(unit: Unit, table: Table) -> list[str]:
    """What a table measures per entry."""
    layout = entry_layout(unit.program, table)
    lines = []
    if layout.meter_at:
        assert table.direct_meter is not None
        meter = unit.program.meters[table.direct_meter]
        amount = "r->pkt->ingress_len" if meter.counts_bytes else "1"
        call = f"meter_run(entry_at(e, {layout.meter_at}), {amount}, r->now)"
        if meter.result is not None:
            path = Exprs(unit).field_text(meter.result.header, meter.result.field)
            lines.append(f"{path} = {call};")
    if layout.counter_at:
        lines.append(f"sw_count_direct(r, entry_at(e, {layout.counter_at}));")
    if layout.hit_at:
        lines.append(f"*(ns_t *)entry_at(e, {layout.hit_at}) = r->now;")
    return lines


def dispatch(unit: Unit, table: Table) -> list[str]:
    """Run the action of an entry `e`; sets `action`."""
    layout = entry_layout(unit.program, table)
    if table.profile is None:
        lines = ["    const uint32_t action = e->action;"]
        data = f"entry_at(e, {layout.data_at})"
        offered = table.runnable
    else:
        profile = unit.program.profiles[table.profile]
        c_name = unit.profiles[table.profile]
        stride = member_stride(unit.program, table.profile)
        selector = f"select_{c_name}(r, h)" if profile.algo else "0"
        lines = [
            "    const struct sw_member *m = NULL;",
            "    if (e->action != SW_NO_ACTION)",
            f"        m = profile_choose(&r->state->profiles[PROFILE_{c_name}], e->action,",
            f"                           e->action & SW_GROUP ? {selector} : 0, {stride});",
            "    const uint32_t action = m ? m->action : SW_NO_ACTION;",
        ]
        data = "m->data"
        offered = profile_actions(unit.program, table.profile)
    lines.append("    switch (action) {")
    for index in offered:
        name = unit.actions[index]
        argument = (f"(const void *){data}",) if unit.program.actions[index].params else ()
        lines.append(f"    case ACTION_{name}:")
        lines.append(f"        {unit.call(f'do_{name}', *argument)};")
        lines.append("        break;")
    lines.append("    }")
    return lines


def emit_descriptions(unit: Unit) -> str:
    """Constant descriptions of all tables, for the run-time."""
    parts = []
    rows = []
    for table in unit.program.tables:
        name = unit.tables[table.name]
        layout = entry_layout(unit.program, table)
        widths = [unit.program.field_of(k.target).width for k in table.keys]
        keys = key_layout(widths)
        if table.keys:
            items = ", ".join(
                f"{{{MATCHES[k.match]}, {w}, {s}}}"
                for k, w, s in zip(table.keys, widths, keys.shifts, strict=True)
            )
            parts.append(f"static const struct sw_key_desc {name}_keys[] = {{{items}}};")
        actions = ", ".join(f"ACTION_{unit.actions[a]}" for a in table.actions)
        if actions:
            parts.append(f"static const uint32_t {name}_actions[] = {{{actions}}};")
        default = table.default if table.profile is None else None
        data = default_data(unit, default)
        if data:
            parts.append(f"static const uint64_t {name}_default[] = {{{data}}};")
        profile = f"PROFILE_{unit.profiles[table.profile]}" if table.profile else "SW_NO_PROFILE"
        default_name = f"ACTION_{unit.actions[default.action]}" if default else "SW_NO_ACTION"
        rows.append(
            f"""    {{.name = {c_string(table.name)}, .match = {MATCHES[table.match]},
     .is_const = {str(table.entries is not None).lower()},\
 .default_is_const = {str(bool(default and default.is_const)).lower()},\
 .max_size = {table.size}, .profile = {profile},
     .n_keys = {len(table.keys)}, .keys = {f"{name}_keys" if table.keys else "NULL"},\
 .key_words = {keys.words}, .n_actions = {len(table.actions)},\
 .actions = {f"{name}_actions" if actions else "NULL"},
     .default_action = {default_name},\
 .default_data = {f"{name}_default" if data else "NULL"}, .order_at = {layout.order_at},\
 .counter_at = {layout.counter_at}, .hit_at = {layout.hit_at}, .meter_at = {layout.meter_at},\
 .data_at = {layout.data_at}, .stride = {layout.stride}}},"""
        )
    if rows:
        parts.append("static const struct sw_table_desc tables[] = {\n" + "\n".join(rows) + "\n};")
    return "\n".join(parts)


def default_data(unit: Unit, default: bmv2.Default | None) -> str:
    """The words of a default action's parameters."""
    if default is None or not default.params:
        return ""
    from ..layout import param_layout

    action = unit.program.actions[default.action]
    layout = param_layout([p.width for p in action.params])
    whole = sum(v << (8 * at) for v, at in zip(default.params, layout.offsets, strict=True))
    return ", ".join(f"{whole >> (64 * i) & (2**64 - 1):#x}u" for i in range(layout.size // 8))
