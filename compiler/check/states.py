"""Typing of a parser's states: their transitions, and whether they lead anywhere."""

from __future__ import annotations

from compiler import core as c
from compiler import syntax as s
from compiler import types as t
from compiler.check.base import Context
from compiler.check.expressions import Expressions
from compiler.check.statements import Statements
from compiler.check.tables import Tables
from compiler.check.typing import Typing
from compiler.source import Span
from params.data import Data

_SPECIAL_STATES = {"accept", "reject"}


class States(Data, eq=False, frozen=False):
    """Types states."""

    context: Context
    typing: Typing
    expressions: Expressions
    statements: Statements
    tables: Tables

    def states(self, made: c.Parser) -> None:
        """13.4: states of different names, `start` among them; fills `made.states`."""
        node = made.decl
        names: dict[str, Span] = {}
        for state in node.states:
            if state.name in _SPECIAL_STATES:
                self.context.error(
                    "bad-state",
                    state.span,
                    f"state '{state.name}' is built in",
                    "name it something else",
                )
            elif state.name in names:
                self.context.error(
                    "duplicate", state.span, f"state '{state.name}' is declared twice", "rename one"
                )
            names[state.name] = state.span
            self.context.note(state.span, state)
        if "start" not in names:
            self.context.error(
                "missing-start",
                node.span,
                f"parser '{node.name}' has no state 'start'",
                "name the first state 'start'",
            )
        for state in node.states:
            if state.name not in made.states:
                made.states[state.name] = self._state(state, names)
        self._check_reachable(made)

    def _check_reachable(self, made: c.Parser) -> None:
        """13.4: some way leads to accept or reject; states nothing leads to are told."""
        reached = {"start"}
        work = ["start"]
        while work:
            state = made.states.get(work.pop())
            if state is None:
                continue
            for target in [*(case.state for case in state.cases), state.next]:
                if target is not None and target not in reached:
                    reached.add(target)
                    work.append(target)
        if made.states and not reached & _SPECIAL_STATES:
            self.context.error(
                "parser-loop",
                made.decl.span,
                f"parser '{made.name}' can never accept or reject a packet",
                "let one of its states end with 'transition accept;'",
            )
        for name, state in made.states.items():
            if name not in reached:
                self.context.warning(
                    "unreachable",
                    state.decl.span,
                    f"no transition leads to state '{name}'",
                    "add one, or remove the state",
                )

    def _state(self, node: s.StateDecl, names: dict[str, Span]) -> c.State:
        """13.4: statements, then a transition; without one, to reject."""
        self.context.scopes.append({})
        made = c.State(node.name, node, self.statements.statements(node.body))
        transition = node.transition
        if transition is None:
            self.context.warning(
                "missing-transition",
                node.span,
                f"state '{node.name}' has no transition, so it rejects the packet",
                "end it with 'transition accept;', or name the next state",
            )
            made.next = "reject"
        elif transition.state is not None:
            made.next = self._target(transition.state, transition.span, names)
        else:
            self._select(made, transition, names)
        self.context.scopes.pop()
        return made

    def _target(self, name: str, span: Span, names: dict[str, Span]) -> str:
        if name not in names and name not in _SPECIAL_STATES:
            self.context.error(
                "unknown-state",
                span,
                f"there is no state '{name}'",
                self.context.similar(name, [*names, *_SPECIAL_STATES])
                or f"declare it: state {name} {{ ... }}",
            )
            return "reject"
        self.context.lead(span, names.get(name))
        return name

    def _select(self, made: c.State, node: s.Transition, names: dict[str, Span]) -> None:
        """13.6: each case has a key set for every value selected on."""
        keys = [self.expressions.expr(k) for k in node.keys]
        if len(keys) == 1 and isinstance(keys[0], c.Aggregate):
            keys = [part for _, part in keys[0].parts]
        for index, key in enumerate(keys):
            if isinstance(key, c.DefaultValue):
                self.context.error(
                    "type-mismatch", key.span, "'select' cannot work on '...'", "write a value"
                )
            if isinstance(key.type, t.InfInt):
                keys[index] = self.typing.fit(key, t.BIT32)
            elif isinstance(key.type, t.NewType):
                self.context.error(
                    "type-mismatch",
                    key.span,
                    f"'select' cannot work on '{key.type}', a type of its own",
                    f"cast it: ({key.type.base}) ...",
                )
            elif key.type is not t.ANYTHING and not isinstance(
                t.underlying(key.type), t.Bits | t.BoolType | t.Enum | t.ErrorType | t.Tuple
            ):
                self.context.error(
                    "type-mismatch",
                    key.span,
                    f"'select' cannot work on {key.type}",
                    "name its fields, one by one, with a value for each in every case"
                    if t.is_struct(key.type)
                    else "it works on numbers, bools and enums",
                )
        made.keys = tuple(keys)
        cases: list[c.SelectCase] = []
        default_seen = False
        for case in node.cases:
            if default_seen:
                self.context.warning(
                    "unreachable",
                    case.span,
                    "this case is never reached",
                    "move it before the default",
                )
                default_seen = False
            keysets = self._case_keys(case.keyset, keys)
            state = self._target(case.state, case.state_span, names)
            if keysets is not None:
                cases.append(c.SelectCase(case.span, keysets, state))
                default_seen = all(isinstance(k, c.Any) for k in keysets)
        made.cases = tuple(cases)
        if not cases:
            self.context.warning(
                "empty-select",
                node.span,
                "'select' without cases rejects every packet",
                "add 'default: accept;'",
            )

    def _case_keys(self, node: s.Expr, keys: list[c.Expr]) -> tuple[c.Expr, ...] | None:
        """13.6: the key sets of one case; a value set stands for all of them."""
        elements: tuple[s.Expr, ...] = (node,)
        if isinstance(node, s.TupleKeyset) or (isinstance(node, s.ListExpr) and len(keys) != 1):
            elements = node.elements
        if len(elements) == 1 and isinstance(elements[0], s.Default):
            return tuple(c.Any(node.span, k.type) for k in keys)
        if len(elements) == 1 and isinstance(elements[0], s.Name):
            entry = self.context.lookup(elements[0].name, span=elements[0].span)
            if isinstance(entry, c.ValueSet):
                self._check_value_set(entry, keys, node.span)
                return (c.ValueSetRef(node.span, t.SetType(entry.type), entry),)
        if len(elements) != len(keys):
            self.context.error(
                "field-count",
                node.span,
                f"the case has {len(elements)} value(s), 'select' has {len(keys)}",
                "give one value for each, '_' where any will do",
            )
            return None
        return tuple(self.tables.keyset(e, k.type) for e, k in zip(elements, keys, strict=True))

    def _check_value_set(self, entry: c.ValueSet, keys: list[c.Expr], span: Span) -> None:
        """A value set's fields are as wide as what is selected on."""
        base = t.strip(entry.type)
        if isinstance(base, t.Struct):
            wanted = [f.type for f in base.fields]
        elif isinstance(base, t.Tuple):
            wanted = list(base.elements)
        else:
            wanted = [entry.type]
        if len(wanted) != len(keys) or not all(
            t.width_of(w) == t.width_of(k.type) for w, k in zip(wanted, keys, strict=True)
        ):
            self.context.error(
                "type-mismatch",
                span,
                f"value set '{entry.name}' of {entry.type} does not match what 'select' works on",
            )
