"""Headers: the structs that hold them, and taking them from and putting them on the wire."""

from __future__ import annotations

from ..bmv2 import Field, HeaderType
from .bits import Piece, load, pieces, store
from .temporaries import SCALARS
from .unit import WIDE_BITS, Unit, c_type


def emit_structs(unit: Unit) -> str:
    """One struct per header type, and struct phv with all instances."""
    parts = [struct(unit, t) for t in unit.header_types()]
    members = "\n".join(f"    {m}" for m in unit.members)
    parts += [variables(unit, stage) for stage in unit.stage_variables.fields]
    parts.append(f"/* All that is known of a packet's content. */\nstruct phv {{\n{members}\n}};")
    return "\n\n".join([*parts, *late_functions(unit)])


def late_functions(unit: Unit) -> list[str]:
    """For each late header its bit, and what clears it if that was not; see lazy_headers.py."""
    program = unit.program
    found: list[str] = []
    for instance, name in unit.late.items():
        if instance in program.stacks:
            tag, place = unit.types[program.stacks[instance].type.name], f"h->{name}"
        elif unit.paths[instance] == f"h->{name}":
            tag, place = unit.types[program.headers[instance].type.name], f"&h->{name}"
        else:
            continue  # in a stack
        found.append(
            f"#define LATE_{name} ((uint64_t)1 << {len(found)})\n"
            f"static inline struct {tag} *late_{name}(const struct phv *asking)\n"
            "{\n"
            "    struct phv *h = (struct phv *)(uintptr_t)asking;\n"
            f"    if (!(h->known & LATE_{name})) {{\n"
            f"        h->known |= LATE_{name};\n"
            f"        memset({place}, 0, sizeof h->{name});\n"
            "    }\n"
            f"    return {place};\n"
            "}"
        )
    return found


def struct(unit: Unit, header_type: HeaderType) -> str:
    """The struct of a header type."""
    lines = [f"struct {unit.types[header_type.name]} {{"]
    scalars = unit.program.headers.get(SCALARS)
    is_scalars = scalars is not None and scalars.type is header_type
    for field in header_type.fields:
        if is_scalars and field.name in unit.variables:
            continue
        name = unit.fields[header_type.name, field.name]
        if field.is_varbit:
            lines.append(f"    uint8_t {name}[{max(field.width // 8, 1)}];")
            lines.append(f"    uint32_t {name}_bits;")
        else:
            lines.append(declared(field, name))
    lines += ["    bool is_valid;", "};"]
    return "\n".join(lines)


def declared(field: Field, name: str) -> str:
    """A member that holds a field."""
    bits = "" if field.width in (8, 16, 32, 64, 128) else f" /* {field.width} bits */"
    return f"    {c_type(field.width, field.is_signed)} {name};{bits}"


def variables(unit: Unit, stage: str) -> str:
    """The struct of what only one stage uses: words of their own, since gcc compares two small
    neighbours at once, which ties both to memory.
    """
    header_type = unit.program.headers[SCALARS].type
    own = unit.stage_variables.fields[stage]
    lines = []
    for found in own:
        member = declared(found, unit.fields[header_type.name, found.name]).strip()
        lines.append(f"    {'_Alignas(8) ' if found.width <= 64 else ''}{member}")
    return "\n".join([f"struct {stage}_variables {{", *lines, "};"])


def load_field(field: Field, at: int) -> str:
    """The value of a field at a bit offset from `p`."""
    if field.width > WIDE_BITS:
        text = f"wide_load(p, {at}, {field.width})"
        return f"wide_sext({text}, {field.width})" if field.is_signed else text
    text = load(at, field.width)
    if field.is_signed:
        return f"sw_sext{128 if field.width > 64 else 64}({text}, {field.width})"
    return text


def emit_extract(unit: Unit, header_type: HeaderType) -> str:
    """Take a header from the packet; the caller has seen to it that the bytes are there."""
    tag = unit.types[header_type.name]
    extra = ", uint32_t bits" if header_type.varbit else ""
    lines = [f"static inline void get_{tag}(struct {tag} *x, const uint8_t *p{extra})", "{"]
    at = 0
    for field in header_type.fields:
        name = unit.fields[header_type.name, field.name]
        if field.is_varbit:
            lines.append(f"    x->{name}_bits = bits;")
            if at % 8 == 0:
                lines.append(f"    memcpy(x->{name}, p + {at // 8}, bits / 8);")
            else:
                lines.append("    for (uint32_t i = 0; i < bits / 8; i++)")
                lines.append(f"        x->{name}[i] = (uint8_t)sw_get_bits(p, {at} + i * 8, 8);")
            lines.append("    p += bits / 8;")
        else:
            lines.append(f"    x->{name} = {load_field(field, at)};")
            at += field.width
    if not any(not f.is_varbit for f in header_type.fields):
        lines.append("    (void)p;")
    lines += ["    x->is_valid = true;", "}"]
    return "\n".join(lines)


def emit_put(unit: Unit, header_type: HeaderType) -> str:
    """Put a header in front of `p`; returns where it starts."""
    tag = unit.types[header_type.name]
    lines = [f"static inline uint8_t *put_{tag}(const struct {tag} *x, uint8_t *p)", "{"]
    varbit = header_type.varbit
    size = header_type.fixed_bits // 8
    if varbit is None:
        lines.append(f"    p -= {size};")
        run = [p for f in header_type.fields for p in field_pieces(unit, header_type, f)]
        lines += [f"    {s}" for s in store(run, 0)]
        if not header_type.fields:
            lines.append("    (void)x;")
    else:
        name = unit.fields[header_type.name, varbit.name]
        lines.append(f"    uint32_t bytes = x->{name}_bits / 8;")
        lines.append(f"    uint8_t *start = p = p - {size} - bytes;")
        where = header_type.fields.index(varbit)
        before, after = header_type.fields[:where], header_type.fields[where + 1 :]
        at = sum(f.width for f in before)
        run = [p for f in before for p in field_pieces(unit, header_type, f)]
        lines += [f"    {s}" for s in store(run, 0)]
        if at % 8 == 0:
            lines.append(f"    memcpy(p + {at // 8}, x->{name}, bytes);")
        else:
            lines.append("    for (uint32_t i = 0; i < bytes; i++)")
            lines.append(f"        sw_put_bits(p, {at} + i * 8, 8, x->{name}[i]);")
        if after:
            lines.append("    p += bytes;")
            run = [p for f in after for p in field_pieces(unit, header_type, f)]
            lines += [f"    {s}" for s in store(run, at)]
    lines += [f"    return {'p' if varbit is None else 'start'};", "}"]
    return "\n".join(lines)


def field_pieces(unit: Unit, header_type: HeaderType, field: Field) -> list[Piece]:
    """A field of `x`, in words."""
    name = unit.fields[header_type.name, field.name]
    return pieces(f"x->{name}", field.width, field.is_signed)


def emit_equal(unit: Unit, header_type: HeaderType) -> str:
    """Whether two headers are valid and hold the same, which is BMv2's `==`."""
    tag = unit.types[header_type.name]
    tests = ["x->is_valid", "y->is_valid"]
    for field in header_type.fields:
        name = unit.fields[header_type.name, field.name]
        if field.is_varbit:
            tests.append(f"x->{name}_bits == y->{name}_bits")
            tests.append(f"!memcmp(x->{name}, y->{name}, x->{name}_bits / 8)")
        elif field.width > WIDE_BITS:
            tests.append(f"wide_compare(x->{name}, y->{name}) == 0")
        else:
            tests.append(f"x->{name} == y->{name}")
    body = " &&\n           ".join(tests)
    return (
        f"static inline bool equal_{tag}(const struct {tag} *x, const struct {tag} *y)\n"
        f"{{\n    return {body};\n}}"
    )
