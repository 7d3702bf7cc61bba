"""Expressions: from BMv2's unbounded integers to the smallest C type that gives the same answer.

BMv2 computes with integers of any size, and compilers write `(a - b) & 0xffff` where they mean
16-bit arithmetic. Two questions keep the C small:

- *What can the value be?* `Exprs.interval` bounds every expression, from the widths of fields and
  the operations on them. It decides which C type holds the exact value, and shows that a mask is
  not needed.
- *How much of it is wanted?* Where only the low w bits matter (under a mask, or assigned to a field
  of w bits) `modulo` computes just those: the low bits of + - * & | ^ ~ << depend on the low bits
  of their operands alone, so machine arithmetic that wraps is right. Where all matters
  (comparisons, division, shifts to the right) `exact` picks 64 or 128 bits, signed or not, or
  `wide_t`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from params.data import Data

from .. import bmv2
from ..bmv2 import Expr, Op
from ..place import JsonError
from .unit import Unit

WIDE_MAX = 1 << 14  # bits; no interval is taken to be larger


class Rep(Enum):
    """A C representation of a number."""

    U64 = "uint64_t"
    S64 = "int64_t"
    U128 = "u128"
    S128 = "s128"
    WIDE = "wide_t"

    @property
    def bits(self) -> int:
        """How many bits wrap-around arithmetic in it keeps."""
        return {"uint64_t": 64, "int64_t": 64, "u128": 128, "s128": 128}.get(self.value, WIDE_MAX)

    @property
    def is_signed(self) -> bool:
        """Whether it holds negative numbers."""
        return self in (Rep.S64, Rep.S128, Rep.WIDE)


class Value(Data):
    """A C expression, its representation, and whether C sees a type other than that.

    A bare value (a narrow field, a small literal) is fine in comparisons and assignments;
    arithmetic casts it first.
    """

    text: str
    rep: Rep
    is_bare: bool = False


Interval = tuple[int, int]


def fits(low: int, high: int) -> Rep:
    """The smallest representation for every number from low to high."""
    if low >= 0:
        if high < 1 << 64:
            return Rep.U64
        return Rep.U128 if high < 1 << 128 else Rep.WIDE
    if low >= -(1 << 63) and high < 1 << 63:
        return Rep.S64
    return Rep.S128 if low >= -(1 << 127) and high < 1 << 127 else Rep.WIDE


def unsigned_for(bits: int) -> Rep:
    """The representation for arithmetic modulo 2^bits."""
    if bits <= 64:
        return Rep.U64
    return Rep.U128 if bits <= 128 else Rep.WIDE


def width_interval(width: int, is_signed: bool) -> Interval:
    """What a field of some width can hold."""
    if is_signed:
        return -(1 << (width - 1)), (1 << (width - 1)) - 1
    return 0, (1 << width) - 1


def literal(value: int, rep: Rep) -> str:
    """A C literal with a representation's type, or one that C converts to it."""
    if rep is Rep.WIDE:
        count = max(1, value.bit_length() // 64 + 1)
        words = ", ".join(f"{value >> (64 * i) & (2**64 - 1):#x}u" for i in range(count))
        return f"wide_from_words((uint64_t[]){{{words}}}, {count}, {int(value < 0)})"
    if rep in (Rep.U128, Rep.S128):
        word = value & (2**128 - 1)
        return f"(({rep.value})((u128){word >> 64:#x}u << 64 | {word & (2**64 - 1):#x}u))"
    if rep is Rep.S64:
        return f"(int64_t){value}" if value > -(1 << 63) else "INT64_MIN"
    return f"{value}u" if value < 10 else f"{value:#x}u"


def cast(value: Value, rep: Rep) -> str:
    """The value in another representation, wrapping if that is smaller."""
    if value.rep is rep:
        return f"({rep.value}){value.text}" if value.is_bare else value.text
    if rep is Rep.WIDE:
        names = {Rep.U64: "wide_from_u64", Rep.S64: "wide_from_s64"}
        names |= {Rep.U128: "wide_from_u128", Rep.S128: "wide_from_s128"}
        return f"{names[value.rep]}({value.text})"
    if value.rep is Rep.WIDE:
        low = "wide_low128" if rep.bits == 128 else "wide_low64"
        return f"({rep.value}){low}({value.text})"
    if value.rep is Rep.S64 and rep.bits == 128:
        return f"({rep.value})(s128){value.text}"
    return f"({rep.value}){value.text}"


WIDE_NAMES = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor"}
COMPARISONS = frozenset(("==", "!=", "<", ">", "<=", ">="))
STACK_ACCESS = frozenset(("dereference_stack", "dereference_header_stack"))


def is_literal(e: Expr) -> bool:
    """Whether an expression is a plain number."""
    return isinstance(e, bmv2.Const)


class Exprs:
    """Writes expressions, within an action (whose parameters it knows) or elsewhere.

    Late headers (lazy_headers.py) are asked for where they are used; where there are statements
    (`has_statements`) those ask for all of a statement ahead of it, once on a way without branches.
    """

    def __init__(
        self,
        unit: Unit,
        params: tuple[tuple[str, int], ...] = (),
        lookahead: Callable[[int, int], str] | None = None,
    ) -> None:
        self.unit = unit
        self.params = params
        self.lookahead = lookahead
        self.has_statements = False
        self.touched: dict[str, None] = {}  # late headers that the statement being written uses
        self.settled: set[str] = set()  # and those asked for ahead of it
        self.known: dict[int, tuple[Expr, Interval]] = {}

    # Late headers

    def reach(self, header: str) -> str:
        """The lvalue of a header whose memory is used."""
        if header not in self.unit.late:
            return self.unit.paths[header]
        if not self.has_statements:
            return self.unit.asked(header)
        self.touched[self.unit.late[header]] = None
        return self.unit.paths[header]

    def reach_stack(self, stack: str) -> str:
        """The same of a stack."""
        if stack not in self.unit.late:
            return f"h->{self.unit.stacks[stack]}"
        if not self.has_statements:
            return self.unit.asked_stack(stack)
        self.touched[self.unit.late[stack]] = None
        return f"h->{self.unit.stacks[stack]}"

    def settle(self) -> list[str]:
        """What has to go before the statement just written."""
        lines = [f"late_{name}(h);" for name in self.touched if name not in self.settled]
        self.settled |= self.touched.keys()
        self.touched = {}
        return lines

    # What a value can be

    def interval(self, e: Expr) -> Interval:
        """Bounds of a data expression."""
        cached = self.known.get(id(e))
        if cached is None:
            low, high = self.bound(e)
            most = 1 << WIDE_MAX
            cached = self.known[id(e)] = (e, (max(low, -most), min(high, most)))
        return cached[1]

    def bound(self, e: Expr) -> Interval:
        """Compute bounds; see `interval`."""
        match e:
            case bmv2.Const(value):
                return value, value
            case bmv2.FieldRef():
                field = self.unit.program.field_of(e)
                return width_interval(field.width, field.is_signed)
            case bmv2.StackField(stack, name):
                return self.type_interval(self.unit.program.stacks[stack].type, name)
            case bmv2.UnionStackField(stack, member, name):
                return self.type_interval(self.union_member_type(stack, member), name)
            case bmv2.Param(index):
                return width_interval(self.params[index][1], False)
            case bmv2.Lookahead(_, width):
                return width_interval(width, False)
            case bmv2.RegisterCell(register, _):
                return width_interval(self.unit.program.registers[register].width, False)
            case Op():
                return self.bound_op(e)
        raise JsonError(f"a number is expected where {type(e).__name__} stands")

    def type_interval(self, header_type: bmv2.HeaderType, name: str) -> Interval:
        """Bounds of a field of a header type."""
        field = next(f for f in header_type.fields if f.name == name)
        return width_interval(field.width, field.is_signed)

    def union_member_type(self, stack: str, member: str) -> bmv2.HeaderType:
        """The header type of a member of a stack of unions."""
        program = self.unit.program
        union = program.unions[program.union_stacks[stack].unions[0]]
        return program.headers[dict(union.members)[member]].type

    def bound_op(self, e: Op) -> Interval:  # noqa: PLR0912 - one branch per operation
        """Bounds of an operation's result."""
        if e.op in ("b2d",):
            return 0, 1
        if e.op in ("last_stack_index", "size_stack"):
            return -1, 1 << 31
        if e.op == "access_field":
            header_type, _ = self.header(e.left)
            field = header_type.fields[self.constant(e.right)]
            return width_interval(field.width, field.is_signed)
        assert e.right is not None
        right = self.interval(e.right)
        if e.op == "~":
            return ~right[1], ~right[0]
        assert e.left is not None
        left = self.interval(e.left)
        match e.op:
            case "+":
                return left[0] + right[0], left[1] + right[1]
            case "-":
                return left[0] - right[1], left[1] - right[0]
            case "*":
                corners = [a * b for a in left for b in right]
                return min(corners), max(corners)
            case "/":
                return (0, left[1]) if left[0] >= 0 and right[0] >= 0 else (-abs(left[0]), left[1])
            case "%":
                return (0, max(0, right[1] - 1))
            case "<<":
                by = min(max(right[1], 0), WIDE_MAX)
                return min(left[0] << by, left[0], 0), max(left[1] << by, left[1])
            case ">>":
                by = min(max(right[0], 0), WIDE_MAX)
                return min(left[0] >> by, left[0], 0), max(left[1] >> by, 0)
            case "&":
                return self.bound_and(left, right)
            case "|" | "^":
                return self.bound_or(left, right)
            case "two_comp_mod":
                wanted = width_interval(self.constant(e.right), True)
                inside = wanted[0] <= left[0] and left[1] <= wanted[1]
                return left if inside else wanted
            case "usat_cast" | "sat_cast":
                low, high = width_interval(self.constant(e.right), e.op == "sat_cast")
                return min(max(left[0], low), high), max(min(left[1], high), low)
            case "?":
                return min(left[0], right[0]), max(left[1], right[1])
        raise JsonError(f"a number is expected, and {e.op!r} gives none")

    def bound_and(self, left: Interval, right: Interval) -> Interval:
        """Bounds of `&`: a side that is never negative limits the result."""
        limits = [i[1] for i in (left, right) if i[0] >= 0]
        if limits:
            return 0, min(limits)
        return self.bound_or(left, right)

    def bound_or(self, left: Interval, right: Interval) -> Interval:
        """Bounds of `|` and `^`: the bits that either side may have."""
        bits = max(abs(v).bit_length() for v in (*left, *right))
        return (0 if left[0] >= 0 and right[0] >= 0 else -(1 << bits)), (1 << bits) - 1

    def constant(self, e: Expr | None) -> int:
        """The value of an expression that must be a constant."""
        if not isinstance(e, bmv2.Const):
            raise JsonError("a constant is expected here")
        return e.value

    # Exact values

    def exact(self, e: Expr) -> Value:
        """The value itself."""
        match e:
            case bmv2.Const(value):
                rep = fits(value, value)
                return Value(literal(value, rep), rep, rep is Rep.U64)
            case bmv2.FieldRef(header, name):
                return self.load(self.field_text(header, name), self.interval(e))
            case bmv2.StackField(stack, name):
                return self.load(self.last_field(stack, name), self.interval(e))
            case bmv2.UnionStackField():
                return self.load(self.last_union_field(e), self.interval(e))
            case bmv2.Param(index):
                return self.param(index)
            case bmv2.Lookahead(offset, width):
                assert self.lookahead is not None
                return Value(self.lookahead(offset, width), fits(0, (1 << width) - 1))
            case bmv2.RegisterCell(register, index):
                return self.register_cell(register, index)
            case Op():
                return self.exact_op(e)
        raise JsonError(f"a number is expected where {type(e).__name__} stands")

    def load(self, text: str, interval: Interval) -> Value:
        """A stored value."""
        rep = fits(*interval)
        return Value(text, rep, rep in (Rep.U64, Rep.S64))

    def param(self, index: int) -> Value:
        """An action parameter."""
        name, width = self.params[index]
        if width > 128:
            return Value(f"wide_from_words(a->{name}, {-(-width // 64)}, 0)", Rep.WIDE)
        if width > 64:
            return Value(f"((u128)a->{name}[1] << 64 | a->{name}[0])", Rep.U128)
        return Value(f"a->{name}", Rep.U64, True)

    def field_text(self, header: str, name: str) -> str:
        """The lvalue of a field, or a header's validity."""
        if name == bmv2.VALID_FIELD:
            return self.unit.has(header)
        return self.unit.field_path(header, name, self.reach(header))

    def last_field(self, stack: str, name: str) -> str:
        """A field of a stack's last header; of the spare one where the stack is empty."""
        found = self.unit.program.stacks[stack]
        index = f"sw_index(h->{self.unit.stacks[stack]}_next - 1, {len(found.headers)})"
        return f"{self.reach_stack(stack)}[{index}].{self.unit.fields[found.type.name, name]}"

    def last_union_field(self, e: bmv2.UnionStackField) -> str:
        """A field of a member of the last union of a stack."""
        size = len(self.unit.program.union_stacks[e.stack].unions)
        c_name = self.unit.union_stacks[e.stack]
        member = self.unit.union_fields[e.stack, e.member]
        field = self.unit.fields[self.union_member_type(e.stack, e.member).name, e.field]
        return f"h->{c_name}[sw_index(h->{c_name}_next - 1, {size})].{member}.{field}"

    def register_cell(self, register: str, index: Expr) -> Value:
        """A cell of a register array; zero beyond its end."""
        found = self.unit.program.registers[register]
        name = self.unit.registers[register]
        return Value(f"read_{name}(r, {self.count(index)})", fits(0, (1 << found.width) - 1), True)

    def count(self, e: Expr, most: int = 1 << 32) -> str:
        """A small number: an index or an amount of shift, at most `most` if it may be larger."""
        value = self.exact(e)
        if value.rep is Rep.U64:
            return cast(value, Rep.U64) if value.is_bare else value.text
        if value.rep is Rep.U128:
            return f"sw_count128({value.text}, {most}u)"
        if value.rep is Rep.WIDE:
            return f"wide_count({value.text}, {most}u)"
        return cast(value, Rep.U64)

    def exact_op(self, e: Op) -> Value:
        """The exact result of an operation."""
        if e.op == "access_field":
            header_type, path = self.header(e.left)
            field = header_type.fields[self.constant(e.right)]
            text = f"{path}.{self.unit.fields[header_type.name, field.name]}"
            return self.load(text, self.interval(e))
        if e.op == "last_stack_index":
            return Value(f"((int64_t)h->{self.stack_name(e.right)}_next - 1)", Rep.S64)
        if e.op == "size_stack":
            return Value(f"h->{self.stack_name(e.right)}_next", Rep.S64, True)
        if e.op == "b2d":
            assert e.right is not None
            text = self.boolean(e.right)
            return Value(f"({text})" if text.startswith("!") else text, Rep.U64, True)
        rep = fits(*self.interval(e))
        if e.op in ("/", "%", ">>"):
            return self.exact_division(e)
        if e.op in ("usat_cast", "sat_cast"):
            return self.saturate(e)
        if e.op == "two_comp_mod":
            return self.sign_extend(e)
        if e.op == "?":
            assert e.cond is not None and e.left is not None and e.right is not None
            left, right = cast(self.exact(e.left), rep), cast(self.exact(e.right), rep)
            return Value(f"({self.boolean(e.cond)} ? {left} : {right})", rep)
        if e.op == "&" and rep is Rep.U64:
            # Under a mask that its operand fits in there is nothing to do.
            for part, other in ((e.left, e.right), (e.right, e.left)):
                if isinstance(other, bmv2.Const) and part is not None:
                    low, high = self.interval(part)
                    full = (1 << max(high.bit_length(), 1)) - 1
                    if low >= 0 and other.value & full == full:
                        return self.exact(part)
        unsigned = unsigned_for(rep.bits)
        text = self.modulo(e, rep.bits if rep is not Rep.WIDE else WIDE_MAX)
        return Value(text if rep is unsigned else f"({rep.value}){text}", rep)

    def exact_division(self, e: Op) -> Value:
        """`/`, `%` and `>>`, which need their operands whole."""
        assert e.left is not None and e.right is not None
        if e.op == ">>":
            value = self.exact(e.left)
            return self.shift_right(value, e.right)
        low = min(self.interval(e.left)[0], self.interval(e.right)[0])
        high = max(self.interval(e.left)[1], self.interval(e.right)[1])
        rep = fits(low, high)
        if rep.is_signed and rep is not Rep.WIDE:
            rep = Rep.WIDE  # rare: p4 divides unsigned numbers and constants only
        name = {"/": "div", "%": "mod"}[e.op]
        left, right = cast(self.exact(e.left), rep), cast(self.exact(e.right), rep)
        prefix = {Rep.U64: "sw_{}64", Rep.U128: "sw_{}128", Rep.WIDE: "wide_{}"}[rep]
        divided = Value(f"{prefix.format(name)}({left}, {right})", rep)
        smaller = fits(*self.interval(e))
        return Value(cast(divided, smaller), smaller)

    def shift_right(self, value: Value, amount: Expr) -> Value:
        """A shift to the right, which keeps the sign."""
        if isinstance(amount, bmv2.Const) and value.rep is not Rep.WIDE:
            by = amount.value
            if by < value.rep.bits:
                return Value(f"({cast(value, value.rep)} >> {by})", value.rep)
        names = {Rep.U64: "sw_shr64", Rep.S64: "sw_sar64", Rep.U128: "sw_shr128"}
        names |= {Rep.S128: "sw_sar128", Rep.WIDE: "wide_shr"}
        return Value(f"{names[value.rep]}({value.text}, {self.count(amount)})", value.rep)

    def saturate(self, e: Op) -> Value:
        """A cast that stops at the type's ends."""
        assert e.left is not None
        low, high = width_interval(self.constant(e.right), e.op == "sat_cast")
        have = self.interval(e.left)
        rep = fits(min(low, have[0]), max(high, have[1]))
        value = cast(self.exact(e.left), rep)
        names = {Rep.U64: "sw_clamp_u64", Rep.S64: "sw_clamp_s64", Rep.U128: "sw_clamp_u128"}
        names |= {Rep.S128: "sw_clamp_s128", Rep.WIDE: "wide_clamp"}
        clamped = f"{names[rep]}({value}, {literal(low, rep)}, {literal(high, rep)})"
        smaller = fits(*self.interval(e))
        return Value(cast(Value(clamped, rep), smaller), smaller)

    def sign_extend(self, e: Op) -> Value:
        """`two_comp_mod`: the low bits as a signed number."""
        assert e.left is not None
        width = self.constant(e.right)
        low, high = width_interval(width, True)
        have = self.interval(e.left)
        if low <= have[0] and have[1] <= high:
            return self.exact(e.left)
        bits = self.modulo(e.left, width)
        if width <= 64:
            return Value(f"sw_sext64({bits}, {width})", Rep.S64)
        if width <= 128:
            return Value(f"sw_sext128({bits}, {width})", Rep.S128)
        return Value(f"wide_sext({bits}, {width})", Rep.WIDE)

    # Low bits

    def modulo(self, e: Expr, bits: int) -> str:
        """C text whose low `bits` bits are the value's; higher ones may be anything."""
        rep = unsigned_for(bits)
        if isinstance(e, bmv2.Const):
            kept = e.value if rep is Rep.WIDE else e.value & ((1 << bits) - 1)
            text = literal(kept, rep)
            return f"(uint64_t){text}" if rep is Rep.U64 else text
        if isinstance(e, Op):
            if e.op == "&":
                masked = self.modulo_and(e, bits, rep)
                if masked is not None:
                    return masked
            if e.op in WIDE_NAMES:
                assert e.left is not None and e.right is not None
                left, right = self.modulo(e.left, bits), self.modulo(e.right, bits)
                if rep is Rep.U64 and not isinstance(e.left, bmv2.Const):
                    # The left side makes it 64 bits already.
                    right = right.removeprefix("(uint64_t)") if is_literal(e.right) else right
                return self.infix(e.op, left, right, rep)
            if e.op == "~":
                assert e.right is not None
                inner = self.modulo(e.right, bits)
                return f"wide_not({inner})" if rep is Rep.WIDE else f"~{inner}"
            if e.op == "<<":
                return self.modulo_shift(e, bits, rep)
            if e.op == "two_comp_mod" and self.constant(e.right) >= bits:
                assert e.left is not None
                return self.modulo(e.left, bits)
            if e.op == "?":
                assert e.cond is not None and e.left is not None and e.right is not None
                left, right = self.modulo(e.left, bits), self.modulo(e.right, bits)
                return f"({self.boolean(e.cond)} ? {left} : {right})"
        return cast(self.exact(e), rep)

    def infix(self, op: str, left: str, right: str, rep: Rep) -> str:
        """An operation that wraps."""
        if rep is Rep.WIDE:
            return f"wide_{WIDE_NAMES[op]}({left}, {right})"
        return f"({left} {op} {right})"

    def modulo_and(self, e: Op, bits: int, rep: Rep) -> str | None:
        """`&` with a constant: often nothing is left to do."""
        left, right = e.left, e.right
        if isinstance(left, bmv2.Const):
            left, right = right, left
        if not isinstance(right, bmv2.Const) or left is None or right.value < 0:
            return None
        full = (1 << bits) - 1
        mask = right.value & full
        if mask == full:
            return self.modulo(left, bits)
        inner = self.modulo(left, max(mask.bit_length(), 1))
        inner_rep = unsigned_for(max(mask.bit_length(), 1))
        masked = self.infix("&", inner, literal(mask, inner_rep), inner_rep)
        return cast(Value(masked, inner_rep), rep)

    def modulo_shift(self, e: Op, bits: int, rep: Rep) -> str:
        """A shift to the left."""
        assert e.left is not None and e.right is not None
        if isinstance(e.right, bmv2.Const) and rep is not Rep.WIDE:
            by = e.right.value
            if by >= bits:
                return f"(({rep.value})0)"
            inner = self.modulo(e.left, bits - by)
            return f"({cast(Value(inner, unsigned_for(bits - by)), rep)} << {by})"
        name = {Rep.U64: "sw_shl64", Rep.U128: "sw_shl128", Rep.WIDE: "wide_shl"}[rep]
        return f"{name}({self.modulo(e.left, bits)}, {self.count(e.right)})"

    # Truth values

    def boolean(self, e: Expr) -> str:
        """A condition."""
        match e:
            case bmv2.BoolConst(value):
                return "true" if value else "false"
            case Op():
                return self.boolean_op(e)
        raise JsonError(f"a truth value is expected where {type(e).__name__} stands")

    def boolean_op(self, e: Op) -> str:
        """The result of an operation that gives a truth value."""
        assert e.right is not None
        match e.op:
            case "not":
                return f"!{self.boolean(e.right)}"
            case "and" | "or":
                assert e.left is not None
                sign = "&&" if e.op == "and" else "||"
                return f"({self.boolean(e.left)} {sign} {self.boolean(e.right)})"
            case "valid":
                if isinstance(e.right, bmv2.HeaderRef):
                    return self.unit.has(e.right.name)
                return f"{self.header(e.right)[1]}.is_valid"
            case "valid_union":
                return self.union_is_valid(e.right)
            case "d2b":
                return self.compare("!=", e.right, bmv2.Const(0))
            case "?":
                assert e.cond is not None and e.left is not None
                parts = (self.boolean(x) for x in (e.cond, e.left, e.right))
                return "({} ? {} : {})".format(*parts)
        if e.op in COMPARISONS:
            assert e.left is not None
            return self.equality(e) if e.op in ("==", "!=") else self.compare(e.op, e.left, e.right)
        raise JsonError(f"a truth value is expected, and {e.op!r} gives none")

    def compare(self, op: str, left: Expr, right: Expr) -> str:
        """A comparison of numbers."""
        a, b = self.interval(left), self.interval(right)
        rep = fits(min(a[0], b[0]), max(a[1], b[1]))
        x, y = self.exact(left), self.exact(right)
        if rep is Rep.WIDE:
            return f"(wide_compare({cast(x, rep)}, {cast(y, rep)}) {op} 0)"
        if rep is Rep.U64 and x.rep is y.rep is Rep.U64:
            return f"({x.text} {op} {y.text})"
        return f"({cast(x, rep)} {op} {cast(y, rep)})"

    def equality(self, e: Op) -> str:
        """`==` and `!=`, which compare truth values, headers and unions too."""
        assert e.left is not None and e.right is not None
        if self.is_boolean(e.left):
            return f"({self.boolean(e.left)} {e.op} {self.boolean(e.right)})"
        sign = "" if e.op == "==" else "!"
        if self.is_header(e.left):
            (header_type, left), (_, right) = self.header(e.left), self.header(e.right)
            return f"{sign}equal_{self.unit.types[header_type.name]}(&{left}, &{right})"
        if self.is_varbit(e.left) and self.is_varbit(e.right):
            return sign + self.varbit_equal(e.left, e.right)
        if isinstance(e.left, bmv2.UnionRef) and isinstance(e.right, bmv2.UnionRef):
            return sign + self.union_equal(e.left.name, e.right.name)
        return self.compare(e.op, e.left, e.right)

    def is_boolean(self, e: Expr) -> bool:
        """Whether an expression is a condition."""
        if isinstance(e, Op) and e.op == "?":
            return e.left is not None and self.is_boolean(e.left)
        ops = COMPARISONS | {"not", "and", "or", "valid", "valid_union", "d2b"}
        return isinstance(e, bmv2.BoolConst) or (isinstance(e, Op) and e.op in ops)

    def is_header(self, e: Expr) -> bool:
        """Whether an expression is a header."""
        if isinstance(e, Op):
            if e.op == "?":
                return e.left is not None and self.is_header(e.left)
            return e.op in STACK_ACCESS | {"access_union_header"}
        return isinstance(e, bmv2.HeaderRef)

    def is_varbit(self, e: Expr) -> bool:
        """Whether an expression is a field of variable length."""
        return isinstance(e, bmv2.FieldRef) and self.unit.program.field_of(e).is_varbit

    def varbit_equal(self, left: Expr, right: Expr) -> str:
        """Whether two fields of variable length are as long, and hold the same."""
        assert isinstance(left, bmv2.FieldRef) and isinstance(right, bmv2.FieldRef)
        x, y = self.field_text(left.header, left.field), self.field_text(right.header, right.field)
        return f"({x}_bits == {y}_bits && !memcmp({x}, {y}, {x}_bits / 8))"

    def union_equal(self, left: str, right: str) -> str:
        """Whether two unions hold the same."""
        program = self.unit.program
        pairs = zip(program.unions[left].members, program.unions[right].members, strict=True)
        tests = []
        for (_, a), (_, b) in pairs:
            tag = self.unit.types[program.headers[a].type.name]
            x, y = self.unit.paths[a], self.unit.paths[b]
            tests.append(
                f"({x}.is_valid == {y}.is_valid && (!{x}.is_valid || equal_{tag}(&{x}, &{y})))"
            )
        return "(" + " && ".join(tests) + ")"

    def union_is_valid(self, e: Expr) -> str:
        """Whether any member of a union is valid."""
        if isinstance(e, bmv2.UnionRef):
            members = [self.unit.paths[h] for _, h in self.unit.program.unions[e.name].members]
        else:
            stack, path = self.union_at(e)
            names = [n for (s, _), n in self.unit.union_fields.items() if s == stack]
            members = [f"{path}.{n}" for n in names]
        return "(" + " || ".join(f"{m}.is_valid" for m in members) + ")"

    # Headers

    def header(self, e: Expr | None) -> tuple[bmv2.HeaderType, str]:
        """A header's type and lvalue."""
        program, unit = self.unit.program, self.unit
        if isinstance(e, bmv2.HeaderRef):
            return program.headers[e.name].type, self.reach(e.name)
        if isinstance(e, Op) and e.op in STACK_ACCESS and isinstance(e.left, bmv2.StackRef):
            assert e.right is not None
            stack = program.stacks[e.left.name]
            index = f"sw_index({self.count(e.right)}, {len(stack.headers)})"
            return stack.type, f"{self.reach_stack(stack.name)}[{index}]"
        if isinstance(e, Op) and e.op == "?":
            assert e.cond is not None
            (header_type, left), (_, right) = self.header(e.left), self.header(e.right)
            return header_type, f"(*({self.boolean(e.cond)} ? &{left} : &{right}))"
        if isinstance(e, Op) and e.op == "access_union_header":
            if isinstance(e.left, bmv2.UnionRef):
                member = program.unions[e.left.name].members[self.constant(e.right)]
                return program.headers[member[1]].type, unit.paths[member[1]]
            name, path = self.union_at(e.left)
            union = program.unions[program.union_stacks[name].unions[0]]
            member_name = union.members[self.constant(e.right)][0]
            header_type = self.union_member_type(name, member_name)
            return header_type, f"{path}.{unit.union_fields[name, member_name]}"
        raise JsonError(f"a header is expected where {type(e).__name__} stands")

    def union_at(self, e: Expr | None) -> tuple[str, str]:
        """The stack and lvalue of a union in a stack."""
        if (
            isinstance(e, Op)
            and e.op in STACK_ACCESS | {"dereference_union_stack"}
            and isinstance(e.left, bmv2.UnionStackRef)
        ):
            assert e.right is not None
            size = len(self.unit.program.union_stacks[e.left.name].unions)
            index = f"sw_index({self.count(e.right)}, {size})"
            return e.left.name, f"h->{self.unit.union_stacks[e.left.name]}[{index}]"
        raise JsonError(f"a header union is expected where {type(e).__name__} stands")

    def stack_name(self, e: Expr | None) -> str:
        """The C name of a stack of headers or unions."""
        if isinstance(e, bmv2.StackRef):
            return self.unit.stacks[e.name]
        if isinstance(e, bmv2.UnionStackRef):
            return self.unit.union_stacks[e.name]
        raise JsonError(f"a header stack is expected where {type(e).__name__} stands")

    # Assignment

    def stored(self, e: Expr, width: int, is_signed: bool = False) -> str:
        """The value to store in a field of some width."""
        low, high = self.interval(e)
        first, last = width_interval(width, is_signed)
        wraps = isinstance(e, Op) and e.op in WIDE_NAMES
        if wraps and not is_signed and width in (8, 16, 32, 64):
            return self.modulo(e, width)  # the store itself drops the rest
        if first <= low and high <= last:
            value = self.exact(e)
            target = fits(first, last)
            small = value.rep in (Rep.U64, Rep.S64) and target in (Rep.U64, Rep.S64)
            return value.text if small else cast(value, target)
        bits = self.modulo(e, width)
        if is_signed:
            if width > 128:
                return f"wide_sext({bits}, {width})"
            return f"sw_sext{128 if width > 64 else 64}({bits}, {width})"
        if width in (8, 16, 32, 64, 128):
            return bits  # the store itself drops the rest
        if width > 128:
            return f"wide_trunc({bits}, {width})"
        return f"{bits} & {literal((1 << width) - 1, unsigned_for(width))}"
