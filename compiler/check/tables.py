"""Typing of tables: keys, actions, entries, properties."""

from __future__ import annotations

from dataclasses import replace

from compiler import core as c
from compiler import syntax as s
from compiler import types as t
from compiler.check.base import Context, consists_of
from compiler.check.calls import Calls, param_of
from compiler.check.expressions import Expressions
from compiler.check.typing import Typing
from params.data import Data

_PROPERTIES = {
    "size",
    "implementation",
    "counters",
    "meters",
    "support_timeout",
    "default_action",
    "psa_implementation",
    "psa_direct_counter",
    "psa_direct_meter",
    "psa_idle_timeout",
    "psa_empty_group_action",
    "largest_priority_wins",
    "priority_delta",
    "junk",
}


class Tables(Data, eq=False, frozen=False):
    """Types tables."""

    context: Context
    typing: Typing
    expressions: Expressions
    calls: Calls

    def table(self, node: s.TableDecl) -> c.Table:
        """A table, entered under its name."""
        made = c.Table(node.name, node)
        # Within the table its name is the table, whatever else bears it outside.
        self.context.scopes.append({node.name: made})
        self.context.place.declares = made
        if node.key is not None:
            made.key = tuple(k for k in map(self._key, node.key) if k is not None)
        if node.actions is None:
            self.context.error(
                "missing-actions",
                node.span,
                f"table '{node.name}' has no actions",
                "add: actions = { ... }",
            )
        self._check_order(node)
        made.actions = self._actions(node)
        self._properties(node, made)
        if made.default is None:
            self._implied_default(node, made)
        if node.entries is not None:
            made.entries = tuple(
                e for e in (self._entry(x, made) for x in node.entries) if e is not None
            )
            made.const_entries = node.const_entries
        self.context.scopes.pop()
        self.context.place.declares = None
        self.context.declare(node.name, made, node.span)
        return made

    def _check_order(self, node: s.TableDecl) -> None:
        """A default action names one of the list, so the list comes first."""
        for each in node.properties:
            if (
                each.name == "default_action"
                and node.actions
                and (each.span.start < node.actions[0].span.start)
            ):
                self.context.error(
                    "misplaced",
                    each.span,
                    f"table '{node.name}' has its default action before its actions",
                    "move 'actions = { ... }' before it",
                )

    def _key(self, node: s.KeyElement) -> c.KeyElement | None:
        """14.2.1: a scalar, and a match kind that is declared."""
        expr = self.expressions.expr(node.expr)
        if node.match_kind not in self.context.match_kinds:
            self.context.error(
                "unknown-match-kind",
                node.span,
                f"there is no match kind '{node.match_kind}'",
                self.context.similar(node.match_kind, self.context.match_kinds)
                or "the match kinds are: " + ", ".join(self.context.match_kinds),
            )
            return None
        if self.context.meanings is not None:
            self.context.meanings.mean_member(node.match_kind.span, "match_kind", node.match_kind)
        base = t.underlying(expr.type)
        if isinstance(base, t.InfInt):
            expr = self.typing.fit(expr, t.BIT32)
        elif not isinstance(base, t.Bits | t.BoolType | t.Enum | t.ErrorType) and (
            base is not t.ANYTHING
        ):
            cure = ""
            if isinstance(base, t.Struct | t.Stack):
                cure = "name one of its fields, or ask isValid()"
            elif isinstance(base, t.Varbit):
                cure = "copy it to a bit<> field in the parser"
            self.context.error("bad-key", node.span, f"a key field cannot be {expr.type}", cure)
            return None
        if isinstance(base, t.BoolType) and node.match_kind in ("lpm", "range"):
            self.context.error(
                "bad-key",
                node.span,
                f"a bool cannot be matched by {node.match_kind}",
                "use exact or ternary",
            )
        text = (
            self.context.diagnostics.text.fragment(node.expr.span)
            if self.context.diagnostics.text
            else ""
        )
        return c.KeyElement(node.span, expr, str(node.match_kind), node.annotations, text)

    def _actions(self, node: s.TableDecl) -> tuple[c.ActionRef, ...]:
        """14.2.1: each action once."""
        found: list[c.ActionRef] = []
        seen: set[c.Action] = set()
        for each in node.actions or ():
            ref = self._action_ref(each)
            if ref is None:
                continue
            if ref.action in seen:
                self.context.error(
                    "duplicate",
                    each.span,
                    f"action '{ref.action.name}' is listed twice",
                    "remove one",
                )
                continue
            seen.add(ref.action)
            found.append(ref)
        return tuple(found)

    def _find_action(self, node: s.Expr) -> c.Action | None:
        """The action that a name in a table stands for."""
        if not isinstance(node, s.Name):
            self.context.error("not-an-action", node.span, "an action's name is expected here")
            return None
        entry = self.context.lookup(node.name, node.absolute, node.span)
        if isinstance(entry, c.Action):
            entry.used = True
            return entry
        if entry is None:
            actions = [
                n
                for scope in self.context.scopes
                for n, e in scope.items()
                if isinstance(e, c.Action)
            ]
            cure = self.context.similar(node.name, actions)
            if node.name == "NoAction":
                cure = "#include <core.p4>, or <v1model.p4> which does"
            self.context.error(
                "unknown-name",
                node.span,
                f"action '{node.name}' is not declared",
                cure or "declare it before the table",
            )
        else:
            self.context.error("not-an-action", node.span, f"'{node.name}' is not an action", "")
        return None

    def _action_ref(self, node: s.ActionRef) -> c.ActionRef | None:
        """14.2.1: the list gives what has a direction; the rest comes from entries."""
        target = node.expr.function if isinstance(node.expr, s.Call) else node.expr
        action = self._find_action(target)
        if action is None:
            return None
        given = node.expr.args if isinstance(node.expr, s.Call) else ()
        directed = tuple(v for v in action.params if v.direction)
        if len(given) != len(directed):
            listing = ", ".join(f"{v.direction} {v.name}" for v in directed)
            if len(given) > len(directed):
                cure = (
                    "parameters without direction are given by entries, not here: write "
                    f"just '{action.name}'"
                    if not directed
                    else f"give only those with a direction: {listing}"
                )
            else:
                cure = f"give the arguments for: {listing}"
            self.context.error(
                "action-arguments",
                node.span,
                f"action '{action.name}' has {len(directed)} parameter(s) with a "
                f"direction, {len(given)} argument(s) are given here",
                cure,
            )
            return c.ActionRef(node.span, action, (), node.annotations)
        call = s.Call(node.span, target, (), given)
        self.context.place.in_list = True
        args = self.calls.arguments(
            call, tuple(map(param_of, directed)), {}, f"action '{action.name}'"
        )
        self.context.place.in_list = False
        return c.ActionRef(node.span, action, args, node.annotations)

    # Default action and entries

    def _action_call(self, node: s.Expr, table: c.Table, what: str) -> c.ActionCall | None:
        """14.2.1: an action of the list, with constants for what has no direction."""
        target = node.function if isinstance(node, s.Call) else node
        given = node.args if isinstance(node, s.Call) else ()
        action = self._find_action(target)
        if action is None:
            return None
        ref = next((r for r in table.actions if r.action is action), None)
        if ref is None:
            self.context.error(
                "action-not-listed",
                node.span,
                f"{what} '{action.name}' is not among the actions of table '{table.name}'",
                f"add '{action.name};' to its actions",
            )
            return None
        params = tuple(v for v in action.params if not v.direction)
        bound = len(action.params) - len(params)
        if len(given) == len(action.params) and bound and given:
            self._same_bound(given[:bound], ref)
            given = given[bound:]
        if len(given) != len(params) and not any(a.name for a in given):
            listing = ", ".join(f"{v.type} {v.name}" for v in params)
            self.context.error(
                "action-arguments",
                node.span,
                f"action '{action.name}' takes {len(params)} argument(s) here, not {len(given)}",
                f"give values for: ({listing})",
            )
            return None
        call = s.Call(node.span, target, (), given)
        args = self.calls.arguments(
            call, tuple(map(param_of, params)), {}, f"action '{action.name}'"
        )
        values: list[c.Expr] = []
        for arg, param in zip(args, params, strict=False):
            value = arg
            if value is None or not _constant(value):
                if value is not None and value.type is not t.ANYTHING:
                    self.context.error(
                        "not-constant",
                        value.span,
                        f"argument '{param.name}' must be known at compile time",
                        "use a number or a 'const'",
                    )
                value = c.Const(node.span, param.type, 0)
            values.append(value)
        return c.ActionCall(node.span, ref, tuple(values))

    def _same_bound(self, given: tuple[s.Argument, ...], ref: c.ActionRef) -> None:
        """Arguments said again are those the table's list of actions binds."""
        text = self.context.diagnostics.text
        if text is None or any(a.name is not None for a in given):
            return
        for each, bound in zip(given, ref.args, strict=False):
            if each.value is None or bound is None:
                continue
            again = self.expressions.expr(each.value, bound.type)
            if again.type is not t.ANYTHING and not _alike(again, bound):
                self.context.error(
                    "action-arguments",
                    each.span,
                    f"action '{ref.action.name}' is listed with '{text.fragment(bound.span)}' "
                    f"here, not '{text.fragment(each.value.span)}'",
                    "give the argument that the table's actions give",
                )

    def _implied_default(self, node: s.TableDecl, made: c.Table) -> None:
        """A table without default action runs NoAction on a miss."""
        if any(p.name == "default_action" for p in node.properties):
            return
        no_action = self.context.lookup("NoAction", absolute=True)
        if not isinstance(no_action, c.Action) or no_action.params:
            self.context.error(
                "missing-default",
                node.span,
                f"table '{node.name}' has no default action, and there is no action NoAction()",
                "#include <core.p4>, or give it a default action",
            )
            return
        no_action.used = True
        ref = next((r for r in made.actions if r.action is no_action), None)
        if ref is None:
            only = s.Annotation(node.span, "defaultonly", (), (), ())
            ref = c.ActionRef(node.span, no_action, (), (only,))
            made.actions = (*made.actions, ref)
        made.default = c.ActionCall(node.span, ref, ())

    def _properties(self, node: s.TableDecl, made: c.Table) -> None:
        """14.2.1: the other properties, each once."""
        for each in node.properties:
            if each.name in made.properties or (
                each.name == "default_action" and made.default is not None
            ):
                self.context.error(
                    "duplicate", each.span, f"property '{each.name}' is given twice", "remove one"
                )
                continue
            if each.name == "default_action":
                made.default = self._action_call(each.value, made, "default action")
                made.default_const = each.const
                if made.default is not None and any(
                    a.name == "tableonly" for a in made.default.ref.annotations
                ):
                    self.context.error(
                        "bad-property",
                        each.span,
                        f"action '{made.default.ref.action.name}' is @tableonly and cannot be "
                        "the default",
                        "remove the annotation from the table's actions",
                    )
                continue
            if each.name not in _PROPERTIES:
                self.context.warning(
                    "unknown-property",
                    each.span,
                    f"property '{each.name}' means nothing here",
                    self.context.similar(each.name, _PROPERTIES),
                )
            value = self.expressions.expr(each.value)
            self._check_property(each, value)
            made.properties[each.name] = c.Property(
                each.span, each.name, value, each.const, each.annotations
            )

    def _check_property(self, node: s.Property, value: c.Expr) -> None:
        """What `size`, `implementation`, `counters` and the like can be."""
        if value.type is t.ANYTHING:
            return
        if node.name == "size":
            if not isinstance(t.underlying(value.type), t.Bits | t.InfInt):
                self.context.error(
                    "type-mismatch",
                    value.span,
                    f"a table's size cannot be {value.type}",
                    "give a number",
                )
            elif isinstance(value, c.Const) and int(value.value) < 0:
                self.context.error("out-of-range", value.span, "a table's size cannot be negative")
        elif node.name == "support_timeout" and not isinstance(value.type, t.BoolType):
            self.context.error("type-mismatch", value.span, "support_timeout is true or false")
        wanted = {
            "implementation": ("action_profile", "action_selector"),
            "counters": ("direct_counter", "counter"),
            "meters": ("direct_meter",),
        }.get(node.name)
        if wanted is None:
            return
        name = value.type.name if isinstance(value.type, t.Extern) else str(value.type)
        if name not in wanted:
            self.context.error(
                "type-mismatch",
                value.span,
                f"'{node.name}' cannot be {value.type}",
                "it takes a " + " or ".join(wanted),
            )

    def _entry(self, node: s.Entry, table: c.Table) -> c.Entry | None:
        """14.2.1: a value for each key field, and an action of the list."""
        keys: list[c.Expr] = []
        elements = node.keys
        if len(elements) == 1 and isinstance(elements[0], s.Default) and len(table.key) > 1:
            keys = [c.Any(node.span, k.expr.type) for k in table.key]
        elif (
            len(elements) == 1
            and isinstance(elements[0], s.ListExpr)
            and (len(table.key) == len(elements[0].elements))
        ):
            elements = elements[0].elements
        if not keys:
            if len(elements) != len(table.key):
                self.context.error(
                    "field-count",
                    node.span,
                    f"the entry gives {len(elements)} value(s), "
                    f"the key has {len(table.key)} field(s)",
                    "give one value for each",
                )
                return None
            keys = [self._entry_key(e, k) for e, k in zip(elements, table.key, strict=True)]
        action = self._action_call(node.action, table, "action")
        if action is None:
            return None
        if any(a.name == "defaultonly" for a in action.ref.annotations):
            self.context.error(
                "bad-entry",
                node.span,
                f"action '{action.ref.action.name}' is @defaultonly and cannot stand in an entry",
                "remove the annotation from the table's actions",
            )
        priority = None
        if node.priority is not None:
            priority = self.typing.constant_int(node.priority, "a priority")
        for annotation in node.annotations:
            if annotation.name == "priority" and annotation.args:
                priority = self.typing.constant_int(annotation.args[0], "a priority")
        return c.Entry(node.span, tuple(keys), action, priority, node.const, node.annotations)

    def _entry_key(self, node: s.Expr, key: c.KeyElement) -> c.Expr:
        """14.2.1: a value, mask or range, as the match kind allows."""
        value = self.keyset(node, key.expr.type)
        kind = key.match_kind
        if (
            isinstance(value, c.Any)
            and kind == "exact"
            and value.type is not t.ANYTHING
            and (isinstance(node, s.Default))
        ):
            self.context.error(
                "bad-entry",
                node.span,
                "an exact key must have a value",
                "give one, or declare the key 'ternary' or 'optional'",
            )
        elif isinstance(value, c.Mask) and kind not in ("ternary", "lpm"):
            self.context.error(
                "bad-entry",
                node.span,
                f"a mask cannot be given for a key matched by {kind}",
                "declare the key 'ternary' or 'lpm'",
            )
        elif isinstance(value, c.Range) and kind != "range":
            self.context.error(
                "bad-entry",
                node.span,
                f"a range cannot be given for a key matched by {kind}",
                "declare the key 'range'",
            )
        return value

    def keyset(self, node: s.Expr, type_: t.Type) -> c.Expr:
        """A value, mask, range or wildcard for a key of this type."""
        if isinstance(node, s.Default):
            return c.Any(node.span, type_)
        value = self.expressions.expr(node, None)
        if isinstance(value, c.Mask | c.Range):
            left, right = (
                (value.value, value.mask) if isinstance(value, c.Mask) else (value.low, value.high)
            )
            base = t.underlying(type_)
            if isinstance(type_, t.NewType):
                self.context.error(
                    "type-mismatch",
                    node.span,
                    f"masks and ranges are of numbers, and '{type_}' is a type of its own",
                    f"let the key be a {base}",
                )
            left = self._key_part(left, type_, base)
            right = self._key_part(right, type_, base)
            if isinstance(value, c.Mask):
                return c.Mask(node.span, t.SetType(type_), left, right)
            return c.Range(node.span, t.SetType(type_), left, right)
        if isinstance(value, c.ValueSetRef):
            return value
        return self._constant_key(self._key_value(value, type_))

    def _key_value(self, value: c.Expr, type_: t.Type) -> c.Expr:
        """A value to compare a key with: for an enum with a representation, that will do."""
        if isinstance(type_, t.SerializableEnum) and value.type != type_:
            inside = self.typing.coerce(value, type_.underlying)
            return replace(inside, type=type_) if isinstance(inside, c.Const) else inside
        return self.typing.coerce(value, type_)

    def _key_part(self, value: c.Expr, type_: t.Type, base: t.Type) -> c.Expr:
        if isinstance(value.type, t.InfInt) and isinstance(base, t.Bits):
            return self.typing.fit(value, base)
        if value.type == base:
            return self._constant_key(value)
        return self._constant_key(self._key_value(value, type_))

    def _constant_key(self, value: c.Expr) -> c.Expr:
        if not _constant(value) and value.type is not t.ANYTHING:
            self.context.error(
                "not-constant",
                value.span,
                "a key's value must be known at compile time",
                "use a number, a mask, a range, or a value set",
            )
        return value


def _alike(one: c.Expr, other: c.Expr) -> bool:
    """Whether two expressions are the same, wherever they stand."""
    if type(one) is not type(other) or one.type != other.type:
        return False
    for name in one.__dataclass_fields__:
        if name in ("span", "written"):
            continue
        mine, its = getattr(one, name), getattr(other, name)
        if isinstance(mine, c.Expr) and isinstance(its, c.Expr):
            if not _alike(mine, its):
                return False
        elif name == "parts":
            names = [[n for n, _ in each] for each in (mine, its)]
            if names[0] != names[1] or not all(
                _alike(a, b) for (_, a), (_, b) in zip(mine, its, strict=True)
            ):
                return False
        elif mine != its:
            return False
    return True


def _constant(value: c.Expr) -> bool:
    return consists_of(value, lambda part: isinstance(part, c.Const))
