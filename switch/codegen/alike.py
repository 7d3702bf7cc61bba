"""Actions that do the same to other fields, with other numbers: one function for all of them.

Where a language has no loops, a program repeats itself: the fabric program weighs 64 ways by 64
actions that differ in a number and in the field that a port is read from. One by one they are most
of what the C compiler has to read, and a packet that weighs its ways drags them all through the
processor's caches. Here such actions become a family: the first one's body with parameters in place
of what differs, and for each member a call that gives it its own.

What may differ are numbers and fields that are only read: then it makes no difference that they
are read before the body runs. Everything else has to be the same, the lines of the source that a
trace tells included.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from params.data import Data

from .. import bmv2
from ..bmv2 import Action, Expr, Field, Primitive, Program
from .temporaries import SCALARS

FEWEST = 4  # members; of fewer the bodies are quicker where they are called
SHORTEST = 6  # steps; fewer are no longer than the call
_STEPS = frozenset(("assign", "register_read", "register_write"))
_OPERATORS = frozenset(
    (
        *("+", "-", "*", "&", "|", "^", "~", "==", "!=", "<", ">", "<=", ">=", "?"),
        *("and", "or", "not", "b2d", "d2b"),
    )
)
_LEFT_ONLY = frozenset(("<<", ">>", "/", "%", "two_comp_mod", "sat_cast", "usat_cast"))
_MAX_BITS = 64  # of what may differ

_Leaf = bmv2.Const | bmv2.FieldRef
_Seen = Callable[[_Leaf, bool], bmv2.Expr]  # given what may stand for it: whether it may differ


class Family(Data, eq=False):
    """A body with parameters, and what each member gives it."""

    first: int
    body: Action
    arguments: dict[int, tuple[_Leaf, ...]]  # by a member's number


_Temporaries = Mapping[int, tuple["Field", ...]]  # by an action's number: its own


def families(
    program: Program, temporaries: _Temporaries, indices: Iterable[int]
) -> dict[int, Family]:
    """The families that there are among these actions, by the number of each member."""
    similar: defaultdict[object, list[int]] = defaultdict(list)
    for index in indices:
        action = program.actions[index]
        if _may_belong(action):
            similar[tuple(p.source for p in action.body)].append(index)
    found: dict[int, Family] = {}
    for members in similar.values():
        if len(members) < FEWEST:
            continue
        alike: defaultdict[object, dict[int, list[_Leaf]]] = defaultdict(dict)
        for index in members:
            leaves: list[_Leaf] = []
            alike[_shape(program, temporaries.get(index, ()), index, leaves)][index] = leaves
        for each in alike.values():
            if len(each) >= FEWEST and (family := _family(program, temporaries, each)) is not None:
                found |= dict.fromkeys(each, family)
    return found


def _may_belong(action: Action) -> bool:
    return (
        not action.params
        and len(action.body) >= SHORTEST
        and all(p.op in _STEPS and _target(p) is not None for p in action.body)
    )


def _target(step: Primitive) -> bmv2.FieldRef | bmv2.ObjectRef | None:
    """What a step writes, if that can be told."""
    first = step.args[0] if step.args else None
    return first if isinstance(first, bmv2.FieldRef | bmv2.ObjectRef) else None


def _shape(
    program: Program, temporaries: Iterable[Field], index: int, leaves: list[_Leaf]
) -> object:
    """What has to be the same; what need not is added to ``leaves``, in order."""
    own = {f.name for f in temporaries}
    shape: list[str] = []

    def see(e: _Leaf, is_free: bool) -> Expr:
        if isinstance(e, bmv2.FieldRef) and e.header == SCALARS and e.field in own:
            if e.field not in shape:
                shape.append(e.field)
            field = program.field_of(e)
            return bmv2.FieldRef(f"own {shape.index(e.field)}", f"{field.width} {field.is_signed}")
        if not is_free or not _may_differ(program, e):
            return e
        leaves.append(e)
        if isinstance(e, bmv2.Const):
            return bmv2.Const(0)
        return bmv2.FieldRef("", str(program.field_of(e).width))

    return tuple((p.op, _args(p, see), p.source) for p in program.actions[index].body)


def _may_differ(program: Program, e: _Leaf) -> bool:
    if isinstance(e, bmv2.Const):
        return 0 <= e.value < 1 << _MAX_BITS
    if e.field == bmv2.VALID_FIELD:
        return False
    field = program.field_of(e)
    return not field.is_signed and not field.is_varbit and field.width <= _MAX_BITS


def _args(step: Primitive, see: _Seen) -> tuple[Expr, ...]:
    """A step's arguments with something else for their numbers and fields; its target is fixed."""
    target, *others = step.args
    return _seen(target, see, False), *(_seen(e, see, True) for e in others)


def _seen(e: Expr, see: _Seen, is_free: bool) -> Expr:
    match e:
        case bmv2.Const() | bmv2.FieldRef():
            return see(e, is_free)
        case bmv2.RegisterCell(register, index):
            return bmv2.RegisterCell(register, _seen(index, see, is_free))
        case bmv2.Op(op, left, right, cond):
            right_is_free = is_free and op in _OPERATORS
            left_is_free = right_is_free or (is_free and op in _LEFT_ONLY)
            return bmv2.Op(
                op,
                left and _seen(left, see, left_is_free),
                right and _seen(right, see, right_is_free),
                cond and _seen(cond, see, right_is_free),
            )
    return e


def _family(
    program: Program, temporaries: _Temporaries, leaves: dict[int, list[_Leaf]]
) -> Family | None:
    """Actions of one shape, as a family; none if one of them writes what has to be a parameter."""
    first, *_ = leaves
    columns = list(zip(*leaves.values(), strict=True))
    differing = list(dict.fromkeys(c for c in columns if len(set(c)) > 1))
    for column, index in ((c, i) for c in differing for i in leaves):
        if not {_target(p) for p in program.actions[index].body}.isdisjoint(column):
            return None
    own = {f.name for f in temporaries.get(first, ())}
    body = _with_parameters(program, program.actions[first], own, columns, differing)
    members = zip(*differing, strict=True) if differing else [()] * len(leaves)
    return Family(first, body, dict(zip(leaves, members, strict=True)))


def _with_parameters(
    program: Program,
    action: Action,
    own: set[str],
    columns: Sequence[tuple[_Leaf, ...]],
    differing: list[tuple[_Leaf, ...]],
) -> Action:
    """An action with parameters in place of what differs, its temporaries left alone."""
    following = iter(columns)

    def see(e: _Leaf, is_free: bool) -> Expr:
        is_own = isinstance(e, bmv2.FieldRef) and e.header == SCALARS and e.field in own
        if is_own or not is_free or not _may_differ(program, e):
            return e
        column = next(following)
        return bmv2.Param(differing.index(column)) if column in differing else e

    return replace(
        action,
        params=tuple(
            bmv2.ActionParam(f"with_{i}", _width(program, c)) for i, c in enumerate(differing)
        ),
        body=tuple(replace(p, args=_args(p, see)) for p in action.body),
    )


def _width(program: Program, column: Iterable[_Leaf]) -> int:
    """The bits that hold what members give."""
    return max(
        max(e.value.bit_length(), 1) if isinstance(e, bmv2.Const) else program.field_of(e).width
        for e in column
    )
