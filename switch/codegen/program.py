"""The whole C file: what it says and in which order."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

from .. import bmv2
from ..bmv2 import Program
from ..c_files import joined
from ..layout import (
    action_size,
    cell_bytes,
    member_stride,
    param_layout,
    profile_actions,
)
from .action import emit_actions
from .control import ControlWriter
from .expression import Exprs
from .header import emit_equal, emit_extract, emit_put, emit_structs
from .names import c_string, comment
from .parser import ParserWriter
from .stateful import emit_calculation, emit_calculations, emit_checksums, emit_registers
from .table import emit_apply, emit_descriptions, warm_table
from .unit import Unit
from .waiting import emit_waiting

INGRESS_FIELDS = (  # set before ingress, from the packet
    ("standard_metadata.ingress_port", "p->ingress_port"),
    ("intrinsic_metadata.ingress_global_timestamp", "r->now - r->sw->began"),
)
EGRESS_FIELDS = (  # set before egress
    ("standard_metadata.egress_port", "p->egress_port"),
    ("standard_metadata.instance_type", "p->type"),
    ("standard_metadata.packet_length", "p->length"),
    ("intrinsic_metadata.egress_global_timestamp", "r->now - r->sw->began"),
    ("queueing_metadata.enq_timestamp", "p->enq_ns"),
    ("queueing_metadata.enq_qdepth", "p->enq_depth"),
    ("queueing_metadata.deq_timedelta", "r->now - p->enq_ns"),
    ("queueing_metadata.deq_qdepth", "r->deq_depth"),
    ("queueing_metadata.qid", "p->priority"),
)


# A long program is compiled in two halves side by side, each of which leaves out what is the
# other's. Only two functions of one are known to the other.
HALVES = """#ifdef SW_HALF
#define SW_BOTH __attribute__((visibility("hidden")))
#else
#define SW_HALF 0
#define SW_BOTH static
#endif
SW_BOTH void run_ingress(struct sw_run *r);
SW_BOTH void warm(const struct sw_state *state, struct pkt *const *packets, unsigned n);"""


def generate(program: Program, name: str = "program") -> str:
    """Write a program as C for the run-time in switch/rt."""
    unit = Unit(program)
    widest = max(
        (f.width for t in unit.header_types() for f in t.fields if not f.is_varbit), default=0
    )
    registers = max((r.width for r in program.registers.values()), default=0)
    params = max((p.width for a in program.actions for p in a.params), default=0)
    words = max(4, -(-max(widest, registers, params) // 64) * 2 + 1)
    return joined(
        {
            "program.h": [
                f"/* {comment(name)}: generated from BMv2 JSON, not to be edited. */\n"
                f"#define WIDE_WORDS {words}\n\n"
                '#include "ops.h"\n#include "wide.h"',
                HALVES,
                enums(unit),
                emit_structs(unit),
            ],
            "headers.c": headers(unit),
            "state.c": [emit_registers(unit), *emit_calculations(unit), *selectors(unit)],
            **actions(unit),
            "tables.c": [emit_apply(unit, t) for t in program.tables],
            "ingress.c": half(
                1, ControlWriter(unit, program.pipelines["ingress"]).emit(), ingress(unit)
            ),
            "egress.c": half(2, ControlWriter(unit, program.pipelines["egress"]).emit()),
            "parser.c": half(2, ParserWriter(unit).emit()),
            "stages.c": half(
                *(2, emit_checksums(unit), stages(unit), field_lists(unit)),
                emit_waiting(unit, set_before_egress(program)),
            ),
            "descriptions.c": half(2, descriptions(unit, name)),
        }
    )


def half(number: int, *texts: str) -> list[str]:
    """What one half alone has."""
    return [f"#if SW_HALF != {3 - number}", *texts, "#endif"]


def actions(unit: Unit) -> dict[str, list[str]]:
    """The functions of actions by the P4 they come from, as far as that is known."""
    of_file: dict[str, list[int]] = {}
    file = "actions"
    for index in unit.program.used_actions:
        family = unit.families.get(index)
        body = unit.program.actions[family.first if family else index].body
        source = next((step.source.file for step in body if step.source), file)
        file = re.sub(r"\W+", "_", source.rpartition("/")[2].removesuffix(".p4")) or file
        of_file.setdefault(f"actions-{file}.c", []).append(index)
    return {name: emit_actions(unit, indices) for name, indices in of_file.items()}


def set_before_egress(program: Program) -> set[tuple[str, str]]:
    """The fields that the switch sets whenever a packet left its queue."""
    names = (*(name for name, _ in EGRESS_FIELDS), "standard_metadata.egress_spec")
    return {(ref.header, ref.field) for n in names if (ref := program.standard(n)) is not None}


def enum(prefix: str, names: Iterable[str]) -> str:
    """An enum of a kind of object, in index order."""
    items = "".join(f"    {prefix}_{n},\n" for n in names)
    return f"enum {{\n{items}}};" if items else ""


def enums(unit: Unit) -> str:
    """The numbers of all objects."""
    kinds = [
        enum("ACTION", unit.actions),
        enum("TABLE", unit.tables.values()),
        enum("PROFILE", unit.profiles.values()),
        enum("REGISTER", unit.registers.values()),
        enum("COUNTER", unit.counters.values()),
        enum("METER", unit.meters.values()),
        enum("VALUE_SET", unit.value_sets.values()),
    ]
    return "\n".join(k for k in kinds if k)


def headers(unit: Unit) -> list[str]:
    """Functions of header types: get for those extracted, put for those emitted, equal if asked."""
    program = unit.program
    probe = ParserWriter(unit)
    probe.emit()
    emitted = {program.headers[h].type.name for h in program.deparser.order}
    for calculation in (*program.calculations.values(),):
        for item in calculation.inputs:
            if isinstance(item.expr, bmv2.HeaderRef):
                emitted.add(program.headers[item.expr.name].type.name)
    parts = []
    for header_type in unit.header_types():
        if header_type.name in probe.used:
            parts.append(emit_extract(unit, header_type))
        if header_type.name in emitted:
            parts.append(emit_put(unit, header_type))
        if not all(
            h.is_metadata for h in program.headers.values() if h.type.name == header_type.name
        ):
            parts.append(emit_equal(unit, header_type))
    return parts


def selectors(unit: Unit) -> list[str]:
    """The hash of each action selector."""
    parts = []
    for profile in unit.program.profiles.values():
        if profile.algo is None:
            continue
        name = unit.profiles[profile.name]
        text = emit_calculation(unit, name, profile.inputs, profile.algo)
        parts.append(text.replace(f"calculate_{name}(", f"select_{name}("))
    return parts


def assign(unit: Unit, name: str, value: str) -> list[str]:
    """Set a field the switch provides, if the program has it."""
    found = unit.standard(name)
    if found is None:
        return []
    path, field = found
    mask = "" if field.width in (8, 16, 32, 64) else f" & {(1 << field.width) - 1:#x}u"
    if field.width > 128:
        return [f"    {path} = wide_from_u64({value});"]
    return [f"    {path} = ({value}){mask};"]


def request(unit: Unit, name: str, member: str) -> list[str]:
    """Hand a field the program wrote to the switch."""
    found = unit.standard(name)
    return [] if found is None else [f"    p->{member} = {found[0]};"]


def ingress(unit: Unit) -> str:
    """The functions of the half that ingress is."""
    lines = [
        *warm(unit),
        "",
        "SW_BOTH void run_ingress(struct sw_run *r)",
        "{",
        "    struct pkt *p = r->pkt;",
        "    struct phv *h = (struct phv *)p->phv;",
        "    control_ingress(r, h);",
        "    p->exited = false;",
        *request(unit, "standard_metadata.egress_spec", "egress_spec"),
        *request(unit, "intrinsic_metadata.mcast_grp", "mcast_group"),
        "}",
    ]
    return "\n".join(lines)


def stages(unit: Unit) -> str:
    """The functions of the other half that the run-time calls."""
    ingress_first = [s for n, v in INGRESS_FIELDS for s in assign(unit, n, v)]
    lines = [
        "static void run_receive(struct sw_run *r)",
        "{",
        "    struct pkt *p = r->pkt;",
        "    struct phv *h = (struct phv *)p->phv;",
        "    /* One that goes round again keeps no more than it asked to. */",
        "    if (p->type == PKT_NORMAL || p->type == PKT_TIMER) {",
        *("    " + s for s in ingress_first),
        "    }",
        *assign(unit, "standard_metadata.instance_type", "p->type"),
        *assign(unit, "standard_metadata.packet_length", "p->length"),
        "    const uint8_t *rest = parse_headers(r, h);",
        "    p->len = p->frame_len - (uint32_t)(rest - p->frame);",
        "    p->data = p->frame + (rest - p->frame);",
        "    verify_checksums(r, h);",
        *assign(unit, "standard_metadata.parser_error", "p->parser_error"),
        *assign(unit, "standard_metadata.checksum_error", "p->checksum_error"),
        "}",
        "",
        "static void run_egress(struct sw_run *r)",
        "{",
        "    struct pkt *p = r->pkt;",
        "    struct phv *h = (struct phv *)p->phv;",
        *[s for n, v in EGRESS_FIELDS for s in assign(unit, n, v)],
    ]
    rid = assign(unit, "intrinsic_metadata.egress_rid", "p->rid")
    if rid:
        lines += ["    if (p->has_rid)", "    " + rid[0]]
    # Anything but the drop port, so that a drop in egress shows.
    lines += assign(unit, "standard_metadata.egress_spec", "r->state->drop_port + 1u")
    lines += [
        "    control_egress(r, h);",
        "    p->exited = false;",
        *request(unit, "standard_metadata.egress_spec", "egress_spec"),
        "}",
        "",
        *deparse(unit),
        "",
        *priority(unit),
    ]
    return "\n".join(lines)


def warm(unit: Unit) -> list[str]:
    """Look up the large tables of ingress ahead of time, for many packets at once."""
    nodes = unit.program.pipelines["ingress"].nodes.values()
    tables = [n for n in nodes if isinstance(n, bmv2.Table) and n.keys]
    body = [f"    {s}" for t in tables for s in warm_table(unit, t)]
    return [
        "SW_BOTH void warm(const struct sw_state *state, struct pkt *const *packets, unsigned n)",
        "{",
        *(["    const struct sw_table *t;"] if body else []),
        *(body or ["    (void)state, (void)packets, (void)n;"]),
        "}",
    ]


def deparse(unit: Unit) -> list[str]:
    """Headers in front of the payload, last one first."""
    program = unit.program
    lines = [
        "static void run_deparse(struct sw_run *r)",
        "{",
        "    struct phv *h = (struct phv *)r->pkt->phv;",
        "    uint8_t *p = r->pkt->data;",
        "    update_checksums(r, h);",
    ]
    for late, run in groupby(reversed(program.deparser.order), key=lambda n: n in unit.late):
        names = list(run)
        bits = list(dict.fromkeys(f"LATE_{unit.late[n]}" for n in names if late))
        if len(bits) > 1:
            lines.append(f"    if (h->known & ({' | '.join(bits)})) {{")
        pad = "    " * (1 + (len(bits) > 1))
        for name in names:
            tag = unit.types[program.headers[name].type.name]
            lines.append(f"{pad}if ({unit.has(name)})")
            lines.append(f"{pad}    p = put_{tag}(&{unit.paths[name]}, p);")
        if len(bits) > 1:
            lines.append("    }")
    lines += [
        "    r->pkt->len += (uint32_t)(r->pkt->data - p);",
        "    r->pkt->data = p;",
        "    pkt_truncate(r->pkt);",
        "}",
    ]
    return lines


def priority(unit: Unit) -> list[str]:
    """Which queue a packet wants."""
    found = unit.standard("intrinsic_metadata.priority")
    text = "0" if found is None else found[0]
    return [
        "static uint8_t queue_priority(const void *phv)",
        "{",
        "    const struct phv *h = phv;",
        "    (void)h;",
        f"    return {text};",
        "}",
    ]


def field_lists(unit: Unit) -> str:
    """Clearing all, resetting metadata, and the fields that copies of a packet keep."""
    program = unit.program
    metadata = [h for h in program.headers.values() if h.is_metadata]
    lines = [
        "static void clear(void *phv)",
        "{",
        "    struct phv *h = phv;",
        f"    sw_wipe(h, {unit.cleared_bytes});",
        *(f"    {path}.is_valid = false;" for path, _ in unit.long_headers),
        *(f"    {path}.{name}_bits = 0;" for path, name in unit.long_headers),
        "}",
        "",
        "static void reset_metadata(void *phv)",
        "{",
        "    struct phv *h = phv;",
        "    (void)h;",
    ]
    lines += [
        f"    memset(&{unit.paths[h.name]}, 0, sizeof {unit.paths[h.name]});" for h in metadata
    ]
    lines += ["}", ""]
    lines += ["static void copy_list(uint32_t list, void *to_phv, const void *from_phv)", "{"]
    lines += ["    struct phv *to = to_phv;", "    const struct phv *h = from_phv;"]
    lines += ["    (void)to;", "    (void)h;", "    switch (list) {"]
    exprs = Exprs(unit)
    for field_list in program.field_lists.values():
        lines.append(f"    case {field_list.id}: /* {comment(field_list.name)} */")
        for ref in field_list.fields:
            if isinstance(ref, bmv2.FieldRef):
                path = exprs.field_text(ref.header, ref.field)
                lines.append(f"        to->{path.removeprefix('h->')} = {path};")
            elif isinstance(ref, bmv2.HeaderRef):
                path = unit.paths[ref.name]
                lines.append(f"        to->{path.removeprefix('h->')} = {path};")
        lines.append("        break;")
    lines += ["    default:", "        break;", "    }", "}", ""]
    return "\n".join(lines + digests(unit))


def digests(unit: Unit) -> list[str]:
    """Samples: the fields of a learn list, laid out like action parameters."""
    exprs = Exprs(unit)
    lines = [
        "static void digest_sample_of(uint32_t digest, const void *phv, uint8_t *sample)",
        "{",
        "    const struct phv *h = phv;",
        "    (void)h;",
        "    (void)sample;",
        "    switch (digest) {",
    ]
    for i, digest in enumerate(unit.program.digests):
        widths = digest_widths(unit.program, digest)
        layout = param_layout(widths)
        lines.append(f"    case {i}: /* {comment(digest.name)} */")
        lines.append(f"        memset(sample, 0, {layout.size});")
        for e, width, at in zip(digest.fields, widths, layout.offsets, strict=True):
            value = exprs.exact(e)
            size = cell_bytes(width)
            c_value = exprs.stored(e, width)
            cell = "wide_t" if width > 128 else "u128" if width > 64 else f"uint{size * 8}_t"
            lines.append(f"        memcpy(sample + {at}, &({cell}){{{c_value}}}, {size});")
            _ = value
        lines.append("        break;")
    lines += ["    default:", "        break;", "    }", "}"]
    return lines


def digest_widths(program: Program, digest: bmv2.FieldList) -> list[int]:
    """The widths of a digest's members."""
    exprs = Exprs(Unit(program))
    widths = []
    for e in digest.fields:
        low, high = exprs.interval(e)
        widths.append(max((high - low).bit_length(), 1))
    return widths


def descriptions(unit: Unit, name: str) -> str:
    """The constants that tell the run-time what there is."""
    program = unit.program
    parts = []
    for index, action in enumerate(program.actions):
        if action.params:
            layout = param_layout([p.width for p in action.params])
            items = ", ".join(
                f"{{{at}, {p.width}}}" for at, p in zip(layout.offsets, action.params, strict=True)
            )
            c_name = unit.actions[index]
            parts.append(f"static const struct sw_param_desc {c_name}_param_descs[] = {{{items}}};")
    rows = []
    for index, action in enumerate(program.actions):
        params = f"{unit.actions[index]}_param_descs" if action.params else "NULL"
        rows.append(
            f"    {{{c_string(action.name)}, {action_size(action)}, "
            f"{len(action.params)}, {params}}},"
        )
    if rows:
        parts.append(
            "static const struct sw_action_desc actions[] = {\n" + "\n".join(rows) + "\n};"
        )
    tables = emit_descriptions(unit)
    if tables:
        parts.append(tables)
    arrays = {
        "profiles": profile_rows(unit, parts),
        "counters": [
            f"    {{.name = {c_string(c.name)}, .size = {0 if c.binding else c.size}}},"
            for c in program.counters.values()
        ],
        "meters": [
            f"    {{.name = {c_string(m.name)}, .size = {0 if m.binding else m.size}, "
            f".counts_bytes = {str(m.counts_bytes).lower()}}},"
            for m in program.meters.values()
        ],
        "registers": [
            f"    {{.name = {c_string(g.name)}, .size = {g.size}, "
            f".cell_bytes = {cell_bytes(g.width)}, .width = {g.width}, "
            f".at = offsetof(struct registers, {'[0].'.join(unit.cells[g.name])}), "
            f".stride = sizeof ((struct registers *)0)->{unit.cells[g.name][0]}[0]}},"
            for g in program.registers.values()
        ],
        "digests": [
            f"    {{.name = {c_string(d.name)}, "
            f".cell_bytes = {param_layout(digest_widths(program, d)).size}}},"
            for d in program.digests
        ],
        "value_sets": [
            f"    {{.name = {c_string(v.name)}, "
            f".cell_bytes = {-(-v.width // 64) * 8}, .width = {v.width}}},"
            for v in program.value_sets.values()
        ],
    }
    kinds = {"profiles": "sw_profile_desc"}
    for kind, described in arrays.items():
        if described:
            tag = kinds.get(kind, "sw_array_desc")
            text = "\n".join(described)
            parts.append(f"static const struct {tag} {kind}[] = {{\n{text}\n}};")
    counts = {kind: len(described) for kind, described in arrays.items()}
    counts |= {"tables": len(program.tables), "actions": len(program.actions)}
    most = sum(program.headers[h].type.max_bytes for h in program.deparser.order)
    lines = [
        "const struct sw_program sw_program = {",
        "    .abi = SW_PROGRAM_ABI,",
        f"    .name = {c_string(name)},",
        "    .phv_size = (sizeof(struct phv) + 15) / 16 * 16,",
        f"    .headroom = {-(-most // 16) * 16},",
        *(["    .registers_size = sizeof(struct registers),"] if program.registers else []),
    ]
    for kind, count in counts.items():
        lines.append(f"    .n_{kind} = {count},")
        if count:
            lines.append(f"    .{kind} = {kind},")
    lines += [
        "    .receive = run_receive,",
        "    .warm = warm,",
        "    .ingress = run_ingress,",
        "    .egress = run_egress,",
        "    .deparse = run_deparse,",
        "    .priority = queue_priority,",
        "    .clear = clear,",
        "    .reset_metadata = reset_metadata,",
        "    .copy_list = copy_list,",
        "    .digest = digest_sample_of,",
        "    .pack = pack,",
        "    .unpack = unpack,",
        "    .packed_most = sizeof(struct waiting) + sizeof(struct phv),",
        "};",
    ]
    parts.append("\n".join(lines))
    return "\n".join(parts)


def profile_rows(unit: Unit, parts: list[str]) -> list[str]:
    """Descriptions of action profiles; their action lists go to `parts`."""
    rows = []
    for profile in unit.program.profiles.values():
        name = unit.profiles[profile.name]
        offered = profile_actions(unit.program, profile.name)
        items = ", ".join(f"ACTION_{unit.actions[a]}" for a in offered)
        if items:
            parts.append(f"static const uint32_t {name}_profile_actions[] = {{{items}}};")
        rows.append(
            f"    {{{c_string(profile.name)}, {profile.size}, "
            f"{str(profile.algo is not None).lower()}, "
            f"{len(offered)}, {f'{name}_profile_actions' if items else 'NULL'}, "
            f"{member_stride(unit.program, profile.name)}}},"
        )
    return rows
