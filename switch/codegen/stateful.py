"""Registers and calculations: accessors, hashes, checksums."""

from __future__ import annotations

from .. import bmv2
from ..bmv2 import CalcInput
from ..layout import cell_bytes
from .bits import Piece, pieces, store
from .expression import Exprs, literal, unsigned_for
from .names import comment, spoken
from .unit import WIDE_BITS, Unit, c_type

FRAME_MAX = 9728  # SW_FRAME_MAX
_ROWS_MAX = 1 << 16
_LINE = 64  # bytes, of a cache
ALGORITHMS = {
    "crc8_custom": "hash_crc8(b, n)",
    "crc16": "hash_crc16(b, n)",
    "crc16_custom": "hash_crc16(b, n)",
    "crc32": "hash_crc32(b, n)",
    "crc32_custom": "hash_crc32(b, n)",
    "crc64_custom": "hash_crc64(b, n)",
    "crcCCITT": "hash_ccitt(b, n)",
    "csum16": "hash_csum16(b, n)",
    "cksum16": "hash_csum16(b, n)",
    "identity": "hash_identity(b, n)",
    "xxh64": "hash_xxh64(b, n)",
    "xor8": "hash_xor(b, n, 1)",
    "xor16": "hash_xor(b, n, 2)",
    "xor32": "hash_xor(b, n, 4)",
    "xor64": "hash_xor(b, n, 8)",
    "round_robin": "((void)b, (void)n, r->state->random++)",
    "random": "((void)b, (void)n, sw_random(r->state, 0, UINT64_MAX))",
}


def register_rows(program: bmv2.Program) -> list[list[bmv2.Register]]:
    """Registers that lie side by side, cell by cell: those of one size mostly mean the same things
    (ports, queues) by their indices, so what a packet asks of them is in a cache line or two.

    Larger ones stay by themselves, as who has many cells seldom uses all of them.
    """
    rows: dict[int | str, list[bmv2.Register]] = {}
    for register in sorted(program.registers.values(), key=lambda r: -min(cell_bytes(r.width), 8)):
        alone = register.size > _ROWS_MAX
        rows.setdefault(register.name if alone else register.size, []).append(register)
    return list(rows.values())


def emit_registers(unit: Unit) -> str:
    """The struct that holds the cells of all register arrays, and their accessors."""
    lines = ["struct registers {"]
    for number, row in enumerate(register_rows(unit.program)):
        # More than a line would else begin anywhere in one, and lie in three.
        is_long = sum(cell_bytes(register.width) for register in row) > _LINE
        lines.append(f"    struct {{{' _Alignas(64)' * is_long}")
        for register in row:
            c_name, words = unit.registers[register.name], -(-register.width // 64)
            cell = f"uint{cell_bytes(register.width) * 8}_t" if words == 1 else "uint64_t"
            lines.append(f"        {cell} {c_name}{f'[{words}]' if words > 1 else ''};")
            unit.cells[register.name] = f"row{number}", c_name
        lines.append(f"    }} row{number}[{row[0].size}];")
    lines.append("};")
    accessors = (emit_register(unit, name) for name in unit.program.registers)
    return "\n\n".join(("\n".join(lines), *accessors)) if unit.program.registers else ""


def emit_register(unit: Unit, name: str) -> str:
    """Accessors of a register array; outside it they read zero and write nothing."""
    register = unit.program.registers[name]
    c_name = unit.registers[name]
    row, member = unit.cells[name]
    at = f"((struct registers *)r->state->registers)->{row}[i].{member}"
    cell = c_type(register.width)
    words = -(-register.width // 64)
    if words == 1:
        load = f"return i < {register.size} ? {at} : 0;"
        save = f"{at} = value;"
    elif register.width <= WIDE_BITS:
        load = f"return i < {register.size} ? (u128){at}[1] << 64 | {at}[0] : 0;"
        save = f"memcpy({at}, (uint64_t[]){{(uint64_t)value, (uint64_t)(value >> 64)}}, 16);"
    else:
        found = f"wide_from_words({at}, {words}, 0)"
        load = f"return i < {register.size} ? {found} : wide_from_u64(0);"
        save = f"memcpy({at}, value.word, {words * 8});"
    return (
        f"/* register {comment(name)}[{register.size}], {register.width} bits */\n"
        f"static inline {cell} read_{c_name}(const struct sw_run *r, uint64_t i)\n"
        f"{{\n    {load}\n}}\n"
        f"static inline void write_{c_name}(const struct sw_run *r, uint64_t i, {cell} value)\n"
        f"{{\n    if (i < {register.size})\n        {save}\n}}"
    )


class InputWriter:
    """Writes the code that lays a calculation's inputs out in a buffer `b`, `n` bytes long.

    Inputs are joined bit by bit, fields of invalid headers skipped, and the last byte is padded
    with zeros. Neighbours of the same header form a block, which is there as a whole or not at all.
    While blocks are whole bytes each is stored where the last one ended; after one that is not,
    every bit is placed singly.
    """

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.exprs = Exprs(unit)

    def pieces(self, item: CalcInput) -> list[Piece]:
        """An input, in words."""
        if isinstance(item.expr, bmv2.Const):
            text = literal(item.expr.value, unsigned_for(item.width))
            return pieces(text, item.width)
        assert isinstance(item.expr, bmv2.FieldRef)
        field = self.unit.program.field_of(item.expr)
        text = self.field(item.expr)
        return pieces(text, field.width, field.is_signed)

    def field(self, ref: bmv2.FieldRef) -> str:
        """A field of a header that is valid, or whether it is."""
        if ref.field == bmv2.VALID_FIELD:
            return self.unit.has(ref.header)
        return self.unit.field_path(ref.header, ref.field)

    def guard(self, item: CalcInput) -> str | None:
        """The header that must be valid, if one must."""
        if isinstance(item.expr, bmv2.FieldRef):
            header = self.unit.program.headers[item.expr.header]
            if not header.is_metadata and item.expr.field != bmv2.VALID_FIELD:
                return self.unit.has(header.name)
        return None

    def expand(self, inputs: tuple[CalcInput, ...]) -> list[CalcInput]:
        """Whole headers become their fields, where these have fixed widths."""
        out: list[CalcInput] = []
        for item in inputs:
            if isinstance(item.expr, bmv2.HeaderRef):
                header = self.unit.program.headers[item.expr.name]
                if header.type.varbit is None:
                    refs = (bmv2.FieldRef(header.name, f.name) for f in header.type.fields)
                    out += [CalcInput(r, self.unit.program.field_of(r).width) for r in refs]
                    continue
            out.append(item)
        return out

    def is_varbit(self, item: CalcInput) -> bool:
        """Whether an input has no fixed width."""
        if isinstance(item.expr, bmv2.HeaderRef):
            return True
        if isinstance(item.expr, bmv2.FieldRef):
            return self.unit.program.field_of(item.expr).is_varbit
        return False

    def blocks(self, inputs: tuple[CalcInput, ...]) -> list[tuple[str | None, list[CalcInput]]]:
        """Inputs that are there together, with the condition for it. Some stand alone: varbits, and
        the payload.
        """
        blocks: list[tuple[str | None, list[CalcInput]]] = []
        for item in self.expand(inputs):
            guard = self.guard(item) if item.expr is not None else None
            alone = item.expr is None or self.is_varbit(item)
            if blocks and not alone and blocks[-1][0] == guard:
                last = blocks[-1][1][-1]
                if last.expr is not None and not self.is_varbit(last):
                    blocks[-1][1].append(item)
                    continue
            blocks.append((guard, [item]))
        return blocks

    def emit(self, inputs: tuple[CalcInput, ...]) -> tuple[list[str], int]:
        """Statements that fill `b` and count bits in `n`, and the most bytes they need."""
        most = 0
        lines: list[str] = []
        aligned = True
        for guard, items in self.blocks(inputs):
            body, width = self.block(items, aligned)
            most += FRAME_MAX if items[0].expr is None else 0
            most += -(-width // 8)
            if guard:
                lines.append(f"if ({guard}) {{")
                lines += [f"    {s}" for s in body]
                lines.append("}")
            else:
                lines += body
            fixed = not self.is_varbit(items[0]) and items[0].expr is not None
            aligned = aligned and (width % 8 == 0 or not fixed)
        return lines, most

    def block(self, items: list[CalcInput], aligned: bool) -> tuple[list[str], int]:
        """One block; its statements and most bits."""
        first = items[0]
        if first.expr is None:
            # The payload is padded away from the bits before it, as BMv2's buffer is.
            return [
                "n = (n + 7) / 8 * 8;",
                "memcpy(b + n / 8, r->pkt->data, r->pkt->len);",
                "n += (size_t)r->pkt->len * 8;",
            ], 0
        if self.is_varbit(first):
            return self.varbit_block(first)
        run = [p for item in items for p in self.pieces(item)]
        width = sum(p.width for p in run)
        if not aligned:
            lines = []
            for piece in run:
                lines.append(f"sw_put_bits(b, n, {piece.width}, {piece.text});")
                lines.append(f"n += {piece.width};")
            return lines, width
        lines = ["{", "    uint8_t *p = b + n / 8;"]
        if width % 8:
            lines.append(f"    p[{width // 8}] = 0;")
        lines += [f"    {s}" for s in store(run, 0)]
        lines += [f"    n += {width};", "}"]
        return lines, width

    def varbit_block(self, item: CalcInput) -> tuple[list[str], int]:
        """A field of variable length, or a whole header that has one."""
        if isinstance(item.expr, bmv2.HeaderRef):
            header = self.unit.program.headers[item.expr.name]
            path = self.unit.paths[header.name]
            tag = self.unit.types[header.type.name]
            varbit = header.type.varbit
            assert varbit is not None
            name = self.unit.fields[header.type.name, varbit.name]
            return [
                f"if ({self.unit.has(header.name)}) {{",
                f"    n += {header.type.fixed_bits} + {path}.{name}_bits;",
                f"    put_{tag}(&{path}, b + n / 8);",
                "}",
            ], header.type.max_bytes * 8
        assert isinstance(item.expr, bmv2.FieldRef)
        field = self.unit.program.field_of(item.expr)
        path = self.field(item.expr)
        return [
            f"for (uint32_t i = 0; i < {path}_bits / 8; i++, n += 8)",
            f"    sw_put_bits(b, n, 8, {path}[i]);",
        ], field.width


def sum_terms(run: list[Piece]) -> list[str] | None:
    """What a run of fields adds to a 16-bit one's complement sum, if it falls into halfwords.

    Words of 32 bits may be added whole, as folding the sum adds their halves. None where a field
    straddles too much to be joined in 64 bits.
    """
    terms: list[str] = []
    group: list[Piece] = []
    width = 0
    for piece in run:
        group.append(piece)
        width += piece.width
        if width > 64:
            return None
        if width % 16 == 0:
            left = width
            parts = []
            for member in group:
                left -= member.width
                text = f"(uint64_t){member.text}"
                parts.append(f"{text} << {left}" if left else text)
            joined = " | ".join(parts)
            terms.append(f"sw_halves({joined})" if width > 32 else joined)
            group, width = [], 0
    return None if group else terms


def emit_sum(unit: Unit, name: str, inputs: tuple[CalcInput, ...], algo: str) -> str | None:
    """A csum16 without a buffer: fields are added where they are. None where that does not fit."""
    writer = InputWriter(unit)
    lines = []
    blocks = writer.blocks(inputs)
    for i, (guard, items) in enumerate(blocks):
        if items[0].expr is None:
            if i + 1 < len(blocks):
                return None
            lines.append("sum += hash_sum16(r->pkt->data, r->pkt->len);")
            continue
        if writer.is_varbit(items[0]):
            return None
        terms = sum_terms([p for item in items for p in writer.pieces(item)])
        if terms is None:
            return None
        added = [f"sum += {t};" for t in terms]
        lines += [f"if ({guard}) {{", *(f"    {a}" for a in added), "}"] if guard else added
    body = "\n".join(f"    {s}" for s in lines)
    return (
        f"/* {algo} */\n"
        f"static uint64_t calculate_{name}(const struct sw_run *r, const struct phv *h)\n"
        "{\n"
        "    uint64_t sum = 0;\n"
        f"{body}\n"
        "    (void)r;\n    (void)h;\n"
        "    return hash_fold16(sum);\n"
        "}"
    )


def emit_calculation(unit: Unit, name: str, inputs: tuple[CalcInput, ...], algo: str) -> str:
    """The function `calculate_<name>` of a hash over fields."""
    if algo in ("csum16", "cksum16"):
        summed = emit_sum(unit, name, inputs, algo)
        if summed is not None:
            return summed
    lines, most = InputWriter(unit).emit(inputs)
    body = "\n".join(f"    {s}" for s in lines)
    zero = " = {0}" if any("sw_put_bits" in s for s in lines) else ""
    return (
        f"/* {algo} */\n"
        f"static uint64_t calculate_{name}(const struct sw_run *r, const struct phv *h)\n"
        "{\n"
        f"    uint8_t b[{max(most, 1)}]{zero};\n"
        "    size_t n = 0; /* bits, then bytes */\n"
        f"{body}\n"
        "    (void)r;\n    (void)h;\n"
        "    n = (n + 7) / 8;\n"
        f"    return {ALGORITHMS[algo]};\n"
        "}"
    )


def emit_calculations(unit: Unit) -> list[str]:
    """All calculations of the program."""
    return [
        emit_calculation(unit, unit.calculations[c.name], c.inputs, c.algo)
        for c in unit.program.calculations.values()
    ]


def emit_checksums(unit: Unit) -> str:
    """Verification after parsing, and updates before deparsing."""
    exprs = Exprs(unit)
    verify: list[str] = []
    update: list[str] = []
    for checksum in unit.program.checksums:
        path = unit.field_path(checksum.target.header, checksum.target.field)
        width = unit.program.field_of(checksum.target).width
        call = f"calculate_{unit.calculations[checksum.calculation]}(r, h)"
        condition = None if checksum.condition is None else exprs.boolean(checksum.condition)
        if checksum.verify:
            header = unit.program.headers[checksum.target.header]
            tests = [] if header.is_metadata else [unit.has(header.name)]
            if condition is not None and condition != "true":
                tests.append(condition)
            tests.append(f"{call} != {path}")
            verify.append(f"    if ({' && '.join(tests)}) {{")
            verify.append("        r->pkt->checksum_error = true;")
            verify.append(f'        SW_TRACE(r, "  checksum {spoken(checksum.name)} is wrong");')
            verify.append("    }")
        if checksum.update:
            mask = "" if width in (8, 16, 32) or width >= 64 else f" & {(1 << width) - 1:#x}u"
            if condition is not None and condition != "true":
                update.append(f"    if ({condition})")
                update.append(f"        {path} = {call}{mask};")
            else:
                update.append(f"    {path} = {call}{mask};")
    return "\n".join(
        [
            "static inline void verify_checksums(struct sw_run *r, const struct phv *h)",
            "{",
            *verify,
            "    (void)r;",
            "    (void)h;",
            "}",
            "",
            "static inline void update_checksums(struct sw_run *r, struct phv *h)",
            "{",
            *update,
            "    (void)r;",
            "    (void)h;",
            "}",
        ]
    )
