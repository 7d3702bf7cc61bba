"""Typing of declarations: types, functions, actions, tables, parsers, controls, instances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from compiler import core as c
from compiler import syntax as s
from compiler import types as t
from compiler.check.base import (
    BlockEntry,
    Constant,
    Declared,
    FunctionEntry,
    GenericStruct,
    Overloads,
    Place,
)
from compiler.check.statements import Statements
from compiler.check.tables import Tables
from compiler.check.typing import Binding, type_key
from compiler.source import Span

if TYPE_CHECKING:
    from collections.abc import Callable

    from compiler.check.base import Context
    from compiler.check.calls import Calls
    from compiler.check.expressions import Expressions
    from compiler.check.typing import Typing


_SPECIAL_STATES = {"accept", "reject"}
MAX_VERSIONS = 1000  # of generic functions and blocks, one for each choice of type arguments


class Declarations:
    """Types declarations."""

    def __init__(
        self,
        context: Context,
        typing: Typing,
        expressions: Expressions,
        calls: Calls,
        statements: Statements,
        tables: Tables,
    ) -> None:
        self.context = context
        self.typing = typing
        self.expressions = expressions
        self.calls = calls
        self.statements = statements
        self.tables = tables

    _owner = 0  # of type variables: the declarations so far that have any

    def top_level(self, node: s.Decl) -> None:
        """One declaration of the program."""
        rule = _RULES.get(type(node))
        if rule is None:
            self.context.error("misplaced", node.span, "this cannot stand at the top level")
            return
        self.context.place = Place()
        self._check_structured(node.annotations)
        rule(self, node)
        if node.name == "main" and not isinstance(node, s.Instance | s.Function):
            self.context.error(
                "bad-main",
                node.span,
                "'main' must instantiate a package",
                "write V1Switch(...) main;",
            )

    def _check_structured(self, annotations: s.Annotations) -> None:
        """The values of a structured annotation are numbers, strings and bools known by now."""
        for each in annotations:
            if not each.structured:
                continue
            for arg in (*each.args, *(value for _, value in each.pairs)):
                value = self.expressions.expr(arg)
                if value.type is t.ANYTHING:
                    continue
                if not isinstance(value.type, t.InfInt | t.Bits | t.StringType | t.BoolType):
                    self.context.error(
                        "bad-annotation",
                        arg.span,
                        f"a structured annotation cannot hold a value of type {value.type}",
                        "it holds numbers, strings and bools",
                    )
                elif not isinstance(value, c.Const):
                    self.context.error(
                        "not-constant", arg.span, "an annotation's value must be known by now"
                    )

    # Types

    def _typedef(self, node: s.Typedef) -> None:
        """7.5, 7.6: another name for a type, or a new type of bits or bool."""
        type_ = self.typing.resolve(node.type)
        if node.fresh:
            base = t.strip(type_)
            if not isinstance(base, t.Bits | t.BoolType) and base is not t.ANYTHING:
                self.context.error(
                    "bad-type",
                    node.span,
                    f"'type' cannot make a new type of {type_}",
                    "it works on bit<>, int<> and bool; use 'typedef' for others",
                )
            self._check_translation(node.annotations)
            new = t.NewType(node.name, type_, node.annotations)
            self.context.program.types.append(new)
            type_ = new
        self.context.declare(node.name, Declared(type_), node.span)

    def _check_translation(self, annotations: s.Annotations) -> None:
        """`@p4runtime_translation` says whose type it is, and what the control plane sees of it."""
        for each in annotations:
            if each.name != "p4runtime_translation":
                continue
            seen = each.args[1] if len(each.args) == 2 else None
            type_ = seen.type if isinstance(seen, s.TypeName) else None
            fits = (
                (isinstance(seen, s.Number) and seen.value > 0)
                or (isinstance(type_, s.BaseType) and type_.name == "string")
                or (
                    isinstance(type_, s.SizedType)
                    and type_.name == "bit"
                    and isinstance(type_.width, s.Number)
                )
            )
            if not fits or not isinstance(each.args[0], s.String):
                self.context.error(
                    "bad-annotation",
                    each.span,
                    "@p4runtime_translation does not say what the control plane sees",
                    'write @p4runtime_translation("URI", string), or bit<W> in place of string',
                )

    def _struct_decl(self, node: s.StructDecl) -> None:
        if node.type_params:
            generic = GenericStruct(node)
            self.context.scopes.append({})
            own = self.type_variables(node.type_params, node.span)
            self.context.scopes.pop()
            self.typing.instantiate_struct(generic, own, node.span)
            self.context.declare(node.name, generic, node.span)
            return
        type_ = t.Struct(
            node.name, node.kind, self.typing.struct_fields(node), node.annotations, (), node
        )
        self.context.program.types.append(type_)
        self.context.declare(node.name, Declared(type_), node.span)

    def _enum_decl(self, node: s.EnumDecl) -> None:
        """7.2.1: members of different names; with a representation, each with a value."""
        names: dict[str, Span] = {}
        if not node.members:
            self.context.error(
                "bad-enum", node.span, f"enum {node.name} has no members", "give it one"
            )
        for name, _, span, _ in node.members:
            if name in names:
                self.context.error(
                    "duplicate", span, f"member '{name}' is declared twice", "rename one"
                )
            names[name] = span
        type_: t.Named
        if node.underlying is None:
            for name, value, span, _ in node.members:
                if value is not None:
                    self.context.error(
                        "bad-enum",
                        span,
                        f"member '{name}' has a value but the enum has no underlying type",
                        f"write enum bit<8> {node.name}",
                    )
            type_ = t.Enum(node.name, tuple(names), node)
        else:
            base = self.typing.resolve(node.underlying)
            if not isinstance(base, t.Bits) and base is not t.ANYTHING:
                self.context.error(
                    "bad-enum",
                    node.span,
                    f"an enum cannot be represented by {base}",
                    "use bit<W> or int<W>",
                )
                base = t.ANYTHING
            type_ = t.SerializableEnum(
                node.name, base, self._enum_values(node, base), node.annotations, node
            )
        self.context.program.types.append(type_)
        self.context.declare(node.name, Declared(type_), node.span)

    def _enum_values(self, node: s.EnumDecl, base: t.Type) -> dict[str, int]:
        """7.2.1: the members' values, constants of the underlying type."""
        values: dict[str, int] = {}
        # A member's value may be computed from those before it.
        self.context.scopes.append({})
        for name, value, span, _ in node.members:
            if value is None:
                self.context.error(
                    "bad-enum", span, f"member '{name}' needs a value", f"write {name} = ..."
                )
                continue
            number = self.expressions.expr(value, base)
            if isinstance(number, c.Const):
                values[name] = int(number.value)
                self.context.scopes[-1][name] = Constant(name, number, span)
            elif number.type is not t.ANYTHING:
                self.context.error(
                    "not-constant", span, f"the value of '{name}' is not known at compile time"
                )
        self.context.scopes.pop()
        return values

    def _name_list(self, node: s.NameList) -> None:
        known = self.context.error_names if node.name == "error" else self.context.match_kinds
        for name, span in node.members:
            if name in known:
                self.context.error(
                    "duplicate",
                    span,
                    f"{node.name} '{name}' is already declared",
                    "remove it, or rename it",
                )
            known.setdefault(name, len(known))

    def type_variables(self, names: tuple[str, ...], span: Span) -> tuple[t.TypeVar, ...]:
        """Fresh type variables, declared in the current scope."""
        self._owner += 1
        for index, name in enumerate(names):
            if name in names[:index]:
                self.context.error(
                    "duplicate", span, f"type parameter '{name}' is declared twice", "rename one"
                )
        variables = tuple(t.TypeVar(name, self._owner) for name in names)
        for variable in variables:
            self.context.scopes[-1][variable.name] = Declared(variable)
        return variables

    def param_types(self, nodes: tuple[s.Parameter, ...]) -> tuple[t.Param, ...]:
        """Parameters as types, with the rules that hold for all of them."""
        found: list[t.Param] = []
        for node in nodes:
            type_ = self.typing.resolve(node.type)
            if any(known.name == node.name for known in found):
                self.context.error(
                    "duplicate",
                    node.span,
                    f"parameter '{node.name}' is declared twice",
                    "rename one of the two",
                )
            if node.direction == "in" and isinstance(type_, t.InfInt | t.StringType):
                self.context.error(
                    "bad-parameter",
                    node.span,
                    f"a parameter of type {type_} cannot have a direction",
                    "remove 'in': its value is known at compile time",
                )
            if isinstance(type_, t.Extern) and type_.type_params:
                self.context.error(
                    "type-arguments",
                    node.span,
                    f"'{type_}' needs {len(type_.type_params)} type argument(s)",
                    "write them out: "
                    + f"{type_}<"
                    + ", ".join(v.name for v in type_.type_params)
                    + ">",
                )
            self._check_default(node, type_)
            optional = any(a.name == "optional" for a in node.annotations)
            if node.direction and isinstance(type_, t.Extern | t.BlockType):
                self.context.error(
                    "bad-parameter",
                    node.span,
                    f"a parameter of type {type_} cannot have a direction",
                    f"remove '{node.direction}'",
                )
            if node.direction in ("out", "inout") and isinstance(type_, t.InfInt | t.StringType):
                self.context.error(
                    "bad-parameter",
                    node.span,
                    f"a parameter of type {type_} cannot be '{node.direction}'",
                    "give it a width",
                )
            if node.direction in ("out", "inout") and node.default is not None:
                self.context.error(
                    "bad-parameter",
                    node.span,
                    f"'{node.direction}' parameter '{node.name}' cannot have a default",
                )
            found.append(
                t.Param(node.name, node.direction, type_, optional, node.default, node.span)
            )
        return tuple(found)

    def _check_default(self, node: s.Parameter, type_: t.Type) -> None:
        """What a parameter is when nothing is given for it is known where it is declared."""
        if isinstance(node.type, s.NamedType):
            entry = self.context.lookup(node.type.name)
            if isinstance(entry, BlockEntry):
                self.context.error(
                    "bad-parameter",
                    node.span,
                    f"a parameter cannot be of '{node.type.name}', which has a body",
                    f"declare its type: {entry.type.kind} Like{node.type.name}(...);",
                )
        if node.default is None:
            return
        if isinstance(node.default, s.Default) and isinstance(type_, t.ListType | t.Extern):
            self.context.error(
                "bad-parameter", node.default.span, f"there is no default value of type {type_}"
            )
        value = self.expressions.expr(node.default)
        if not _known(value) and not isinstance(value, c.DefaultValue | c.Invalid):
            self.context.error(
                "not-constant",
                node.default.span,
                f"the default of parameter '{node.name}' is not known at compile time",
                "use a number or a 'const'",
            )

    def method(self, node: s.Function) -> t.Method:
        """A function's signature."""
        self.context.scopes.append({})
        variables = self.type_variables(node.type_params, node.span)
        returns = self.typing.resolve(node.returns)
        params = self.param_types(node.params)
        for param in params:
            if isinstance(param.type, t.BlockType) and param.span is not None:
                self.context.error(
                    "bad-parameter",
                    param.span,
                    f"a function or extern cannot take a {param.type.kind}",
                    "parsers and controls go to packages, and to each other's constructors",
                )
        self.context.scopes.pop()
        return t.Method(
            node.name, variables, params, returns, node.annotations, node.abstract, node
        )

    def _extern(self, node: s.ExternDecl) -> None:
        """7.2.10: an extern's constructors and methods, told apart by their parameters' names."""
        self.context.scopes.append({})
        variables = self.type_variables(node.type_params, node.span)
        own = t.Extern(node.name, variables, (), ())
        self.context.scopes[-1][node.name] = Declared(own)
        self.context.place.declares = own
        constructors = tuple(self.method(m) for m in node.constructors)
        methods = tuple(self.method(m) for m in node.methods)
        for made in methods:
            if made.name == node.name and made.decl is not None:
                self.context.error(
                    "bad-extern",
                    made.decl.span,
                    f"'{node.name}' bears its extern's name, so it is a constructor, and those "
                    "return nothing",
                    "leave out the type in front of it, or rename it",
                )
        for index, made in enumerate(methods):
            names = [p.name for p in made.params]
            if any(m.name == made.name and _names(m) == names for m in methods[:index]):
                assert made.decl is not None
                self.context.error(
                    "duplicate",
                    made.decl.span,
                    f"method '{made.name}' with these parameters is already declared",
                    "rename one, or give it another number of parameters",
                )
        for index, made in enumerate(constructors):
            if any(_names(m) == _names(made) for m in constructors[:index]):
                assert made.decl is not None
                self.context.error(
                    "duplicate",
                    made.decl.span,
                    f"a constructor of '{node.name}' with these parameters is already declared",
                    "remove one, or give it another number of parameters",
                )
        self.context.scopes.pop()
        self.context.place.declares = None
        object.__setattr__(own, "constructors", constructors)
        object.__setattr__(own, "methods", methods)
        self.context.declare(node.name, Declared(own), node.span)

    def _block_type(self, node: s.ParserType) -> None:
        self.context.scopes.append({})
        variables = self.type_variables(node.type_params, node.span)
        params = self.param_types(node.params)
        self.context.scopes.pop()
        self.context.declare(
            node.name, Declared(t.BlockType(node.name, node.kind, variables, params)), node.span
        )

    def _package(self, node: s.PackageType) -> None:
        self.context.scopes.append({})
        variables = self.type_variables(node.type_params, node.span)
        params = self.param_types(node.params)
        self.context.scopes.pop()
        self.context.declare(
            node.name,
            Declared(t.BlockType(node.name, "package", variables, params, params)),
            node.span,
        )

    # Functions

    def _function(self, node: s.Function) -> None:
        """10: a function is known to what follows it, not to itself."""
        signature = self.method(node)
        entry = self.context.scopes[-1].get(node.name)
        if entry is not None and not isinstance(entry, Overloads):
            self.context.error(
                "duplicate", node.span, f"'{node.name}' is already declared", "rename one"
            )
            return
        overloads = entry or Overloads()
        if any(
            _names(m) == _names(signature)
            for m in (*overloads.methods, *(f.signature for f in overloads.functions))
        ):
            self.context.error(
                "duplicate",
                node.span,
                f"function '{node.name}' with these parameters is already declared",
                "rename one, or give it another number of parameters",
            )
        if node.body is None:
            overloads.methods.append(signature)
            self.context.scopes[-1][node.name] = overloads
            return
        self._optional_only_in_externs(node.params)
        function = FunctionEntry(node, signature)
        # It is known to what comes after it, not to itself: there is no recursion.
        made = self.function_version(function, tuple(signature.type_params))
        overloads.functions.append(function)
        self.context.scopes[-1][node.name] = overloads
        self.context.program.functions.append(made)

    def _optional_only_in_externs(self, nodes: tuple[s.Parameter, ...]) -> None:
        for node in nodes:
            if any(a.name == "optional" for a in node.annotations):
                self.context.error(
                    "bad-parameter",
                    node.span,
                    f"parameter '{node.name}' cannot be optional",
                    "only those of externs, packages and apply() can; give it a default value",
                )

    def _constructed_without_direction(self, nodes: tuple[s.Parameter, ...]) -> None:
        for node in nodes:
            if node.direction:
                self.context.error(
                    "bad-parameter",
                    node.span,
                    f"parameter '{node.name}' of a constructor has a direction",
                    f"take '{node.direction}' away: constructors are given what is known then",
                )

    def function_version(self, entry: FunctionEntry, args: tuple[t.Type, ...]) -> c.Function:
        """The typed body of a function for these type arguments."""
        key = type_key(args)
        if key in entry.versions:
            return entry.versions[key]
        node = entry.decl
        assert node.body is not None
        self._count_version(node)
        kept, place = self.context.scopes, self.context.place
        self.context.scopes = [
            kept[0],
            {name: Declared(arg) for name, arg in zip(node.type_params, args, strict=True)},
        ]
        returns = self.typing.resolve(node.returns)
        self.context.place = Place("function", returns)
        params = self.declare_params(node.params)
        made = c.Function(node.name, params, returns, c.Block(node.span, ()), node)
        entry.versions[key] = made
        made.body = self.statements.block(node.body)
        if (
            not isinstance(returns, t.Void)
            and returns is not t.ANYTHING
            and not _always_returns(made.body)
        ):
            self.context.error(
                "missing-return",
                node.span,
                f"function '{node.name}' can end without returning a value",
                "add a return statement at its end",
            )
        self.context.scopes, self.context.place = kept, place
        return made

    _versions = 0

    def _count_version(self, node: s.Function | s.ParserDecl | s.ControlDecl) -> None:
        """Each choice of type arguments is typed anew, which may double with every level."""
        self._versions += bool(node.type_params)
        if self._versions > MAX_VERSIONS:
            self.context.error(
                "too-large",
                node.span,
                f"generic functions and blocks are used with more than {MAX_VERSIONS} choices of "
                f"type arguments in all, here of '{node.name}'",
                "let generic functions call each other with fewer different types",
            )
            self.context.diagnostics.check()

    def declare_params(
        self, nodes: tuple[s.Parameter, ...], constructor: bool = False
    ) -> tuple[c.Variable, ...]:
        """Enter parameters into the current scope as variables."""
        found: list[c.Variable] = []
        for node, param in zip(nodes, self.param_types(nodes), strict=True):
            variable = c.Variable(
                node.name,
                param.type,
                "ctor" if constructor else node.direction,
                node.span,
                node.annotations,
                optional=param.optional,
                default=node.default,
            )
            if node.name not in self.context.scopes[-1] or len(found) == 0:
                self.context.declare(node.name, variable, node.span)
            found.append(variable)
        return tuple(found)

    def _top_action(self, node: s.ActionDecl) -> None:
        self.action(node, top_level=True)

    def action(self, node: s.ActionDecl, *, top_level: bool = False) -> c.Action:
        """An action, entered under its name."""
        place = self.context.place
        self.context.place = Place("control", t.VOID, in_action=True)
        self.context.scopes.append({})
        params = self.declare_params(node.params)
        directionless = False
        for variable, param in zip(params, node.params, strict=True):
            if directionless and param.direction:
                self.context.error(
                    "bad-parameter",
                    param.span,
                    f"'{param.name}' has a direction but follows one without",
                    "parameters from the control plane (no direction) come last",
                )
            directionless = directionless or not param.direction
            base = t.strip(variable.type)
            if (
                not param.direction
                and not isinstance(
                    base, t.Bits | t.BoolType | t.SerializableEnum | t.Enum | t.ErrorType
                )
                and (base is not t.ANYTHING)
            ):
                self.context.error(
                    "bad-parameter",
                    param.span,
                    f"an action's parameter cannot be {variable.type}",
                    "the control plane can give bit<>, int<> and bool",
                )
        body = self.statements.block(node.body)
        self.context.scopes.pop()
        self.context.place = place
        made = c.Action(node.name, params, body, node, top_level)
        if top_level:
            self.context.program.actions.append(made)
        self.context.declare(node.name, made, node.span)
        return made

    # Parsers and controls

    def _block_decl(self, node: s.ParserDecl | s.ControlDecl) -> None:
        self.context.scopes.append({})
        variables = self.type_variables(node.type_params, node.span)
        params = self.param_types(node.params)
        constructor = self.param_types(node.constructor_params)
        self.context.scopes.pop()
        self._optional_only_in_externs(node.constructor_params)
        self._constructed_without_direction(node.constructor_params)
        kind = "parser" if isinstance(node, s.ParserDecl) else "control"
        type_ = t.BlockType(node.name, kind, variables, params, constructor)
        entry = BlockEntry(node, type_, None)
        entry.block = self.block_version(entry, tuple(variables))
        self.context.declare(node.name, entry, node.span)
        if entry.block is not None and not variables:
            self.context.program.blocks.append(entry.block)

    def block_version(
        self, entry: BlockEntry, args: tuple[t.Type, ...]
    ) -> c.Parser | c.Control | None:
        """The typed parser or control for these type arguments."""
        key = type_key(args)
        if key in entry.versions:
            return entry.versions[key]
        node = entry.decl
        self._count_version(node)
        kept, place = self.context.scopes, self.context.place
        self.context.scopes = [
            kept[0],
            {name: Declared(arg) for name, arg in zip(node.type_params, args, strict=True)},
        ]
        params = self.declare_params(node.params)
        constructor = self.declare_params(node.constructor_params, constructor=True)
        binding: Binding = dict(zip(entry.type.type_params, args, strict=True))
        type_ = entry.type
        if binding and not all(isinstance(a, t.TypeVar) for a in args):
            type_ = t.BlockType(
                node.name,
                type_.kind,
                (),
                tuple(p.substituted(binding) for p in type_.params),
                tuple(p.substituted(binding) for p in type_.constructor_params),
                args,
            )
        made: c.Parser | c.Control
        if isinstance(node, s.ParserDecl):
            made = c.Parser(node.name, node, params, constructor, type_)
            entry.versions[key] = made
            self.context.place = Place("parser")
            self._parser_body(made)
        else:
            made = c.Control(node.name, node, params, constructor, type_)
            entry.versions[key] = made
            self.context.place = Place("control", t.VOID)
            self._control_body(made)
        self.context.scopes, self.context.place = kept, place
        return made

    def _locals(self, nodes: tuple[s.Statement, ...], into: list[object]) -> None:
        """The declarations of a parser or control, in order."""
        for node in nodes:
            if isinstance(node, s.Constant):
                self.statements.constant(node)
            elif isinstance(node, s.Variable):
                into.append(self.statements.variable(node))
            elif isinstance(node, s.Instance):
                instance = self.statements.instance(node)
                if instance is not None:
                    into.append(instance)
            elif isinstance(node, s.ActionDecl):
                into.append(self.action(node))
            elif isinstance(node, s.TableDecl):
                into.append(self.tables.table(node))
            elif isinstance(node, s.ValueSet):
                into.append(self._value_set(node))

    def _control_body(self, made: c.Control) -> None:
        self.context.scopes.append({})
        self._locals(made.decl.locals, made.locals)
        self.context.scopes.append({})
        made.body = c.Block(made.decl.body.span, self.statements.statements(made.decl.body.body))
        self.context.scopes.pop()
        self.context.scopes.pop()

    def _value_set(self, node: s.ValueSet) -> c.ValueSet:
        type_ = self.typing.resolve(node.type)
        size = self.typing.constant_int(node.size, "a value set's size")
        base = t.strip(type_)
        if t.width_of(base) is None and type_ is not t.ANYTHING:
            self.context.error(
                "bad-type",
                node.span,
                f"a value set of {type_} cannot be",
                "use bit<>, a tuple or a struct of them",
            )
        made = c.ValueSet(node.name, type_, size or 1, node)
        self.context.declare(node.name, made, node.span)
        return made

    def _parser_body(self, made: c.Parser) -> None:
        """13.4: states of different names, `start` among them."""
        self.context.scopes.append({})
        node = made.decl
        self._locals(node.locals, made.locals)
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
        self.context.scopes.pop()

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
            entry = self.context.lookup(elements[0].name)
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

    # Instances

    def construct(
        self,
        type_expr: s.TypeExpr,
        args: tuple[s.Argument, ...],
        name: str,
        span: Span,
        annotations: s.Annotations,
    ) -> c.Instance | None:
        """Instantiate an extern, parser, control or package."""
        type_args: tuple[t.Type, ...] = ()
        entry = None
        if isinstance(type_expr, s.NamedType):
            entry = self.context.lookup(type_expr.name)
            type_args = tuple(self.typing.resolve(a) for a in type_expr.args)
        call = s.Call(span, s.Name(type_expr.span, name), (), args)
        if isinstance(entry, BlockEntry):
            return self._construct_block(entry, call, type_args, name, type_expr, annotations)
        type_ = self.typing.resolve(type_expr)
        if isinstance(type_, t.Extern):
            return self._construct_extern(type_, call, name, type_expr, annotations)
        if isinstance(type_, t.BlockType) and type_.kind == "package":
            return self._construct_package(type_, call, name, type_expr, annotations, type_args)
        if type_ is not t.ANYTHING:
            if isinstance(type_, t.BlockType):
                self.context.error(
                    "not-instantiable",
                    type_expr.span,
                    f"'{type_}' is a {type_.kind} type without a body",
                    f"instantiate a {type_.kind} that has one",
                )
            else:
                self.context.error(
                    "not-instantiable",
                    type_expr.span,
                    f"'{type_}' cannot be instantiated",
                    "to cast, write (T) value; to declare a variable, T x = value;",
                )
        for arg in args:
            if arg.value is not None:
                self.expressions.expr(arg.value)
        return None

    def _construct_block(
        self,
        entry: BlockEntry,
        call: s.Call,
        type_args: tuple[t.Type, ...],
        name: str,
        type_expr: s.TypeExpr,
        annotations: s.Annotations,
    ) -> c.Instance | None:
        """8.22: a parser or control with a body, its constructor's arguments known."""
        entry.used = True
        type_ = entry.type
        block = entry.block
        binding: Binding = dict.fromkeys(type_.type_params)
        if type_args:
            if len(type_args) != len(type_.type_params):
                self.context.error(
                    "type-arguments",
                    type_expr.span,
                    f"'{type_.name}' takes "
                    f"{len(type_.type_params)} type argument(s), not {len(type_args)}",
                )
                return None
            binding = dict(zip(type_.type_params, type_args, strict=True))
        args = self.calls.arguments(call, type_.constructor_params, binding, f"'{type_.name}'")
        self._check_known(args, type_.constructor_params)
        chosen = tuple(binding[v] or t.ANYTHING for v in type_.type_params)
        if chosen and all(choice is not t.ANYTHING for choice in chosen):
            block = self.block_version(entry, chosen)
            if block is not None:
                type_ = block.type
        return c.Instance(
            name,
            type_,
            block,
            args,
            entry.type.constructor_params,
            call.span,
            type_expr.span,
            annotations,
        )

    def _construct_extern(
        self,
        type_: t.Extern,
        call: s.Call,
        name: str,
        type_expr: s.TypeExpr,
        annotations: s.Annotations,
    ) -> c.Instance | None:
        """11.3: an extern object, its constructor chosen by the arguments."""
        if not type_.constructors:
            self.context.error(
                "not-instantiable",
                type_expr.span,
                f"extern '{type_}' has no constructor",
                "the architecture provides its instances as parameters",
            )
            return None
        if any(method.abstract for method in type_.methods):
            self.context.error(
                "not-instantiable",
                type_expr.span,
                f"extern '{type_}' has abstract methods",
                "they need bodies, which v1model's externs cannot have",
            )
            return None
        if any(arg is t.ANYTHING for arg in type_.args) and _leaves_open(type_expr):
            self.context.error(
                "type-arguments",
                type_expr.span,
                f"the type arguments of '{type_.name}' cannot be inferred",
                "write them out",
            )
        constructor = self.calls.choose(call, list(type_.constructors))
        if constructor is None:
            return None
        binding: Binding = dict.fromkeys(type_.type_params)
        args = self.calls.arguments(call, constructor.params, binding, f"'{type_}'")
        self._check_known(args, constructor.params)
        if type_.type_params:
            chosen = tuple(binding.get(v) or t.ANYTHING for v in type_.type_params)
            if any(a is t.ANYTHING for a in chosen):
                self.context.error(
                    "type-arguments",
                    type_expr.span,
                    f"'{type_.name}' needs {len(type_.type_params)} type argument(s)",
                    f"write {type_.name}<"
                    + ", ".join("bit<32>" for _ in type_.type_params)
                    + ">(...)",
                )
            type_ = t.specialise_extern(type_, chosen)
        return c.Instance(
            name, type_, None, args, constructor.params, call.span, type_expr.span, annotations
        )

    def _check_known(self, args: tuple[c.Expr | None, ...], params: tuple[t.Param, ...]) -> None:
        """What an instance is made with must be known at compile time."""
        for arg, param in zip(args, params, strict=False):
            if arg is not None and not _known(arg):
                self.context.error(
                    "not-constant",
                    arg.span,
                    f"constructor argument '{param.name}' is not known at compile time",
                    "use a number, a 'const' or a constructor parameter",
                )

    def _construct_package(
        self,
        type_: t.BlockType,
        call: s.Call,
        name: str,
        type_expr: s.TypeExpr,
        annotations: s.Annotations,
        type_args: tuple[t.Type, ...],
    ) -> c.Instance | None:
        """11.3.2: a package, its type arguments written or following from what it is given."""
        binding: Binding = dict.fromkeys(type_.type_params)
        params = type_.params
        if len(type_args) == len(type_.type_params):
            binding = dict(zip(type_.type_params, type_args, strict=True))
        matched = self.calls.match(call.args, params, f"package '{type_.name}'", call.span)
        if matched is None:
            return None
        args: list[c.Expr | None] = []
        for index, (param, arg) in enumerate(zip(params, matched, strict=True)):
            if arg is None or arg.value is None:
                args.append(None)
                continue
            value = self.expressions.expr(arg.value)
            self.typing.unify(param.type, value.type, binding)
            want = t.substitute(param.type, {k: v for k, v in binding.items() if v is not None})
            if not self._package_fits(value, want):
                self._package_mismatch(value, param, want, params, index)
            args.append(value)
        needed = {v for p in params if not p.optional for v in _variables(p.type)}
        open_ = [v for v in type_.type_params if v in needed and binding.get(v) is None]
        if open_ and not type_args:
            self.context.error(
                "type-arguments",
                type_expr.span,
                f"nothing tells type argument '{open_[0].name}' of package '{type_.name}'",
                f"write them out: {type_.name}<...>(...)",
            )
        elif type_.type_params:
            chosen = tuple(binding[v] or t.ANYTHING for v in type_.type_params)
            known = dict(zip(type_.type_params, chosen, strict=True))
            type_ = t.BlockType(
                type_.name,
                type_.kind,
                (),
                tuple(p.substituted(known) for p in params),
                type_.constructor_params,
                chosen,
            )
        return c.Instance(
            name, type_, None, tuple(args), params, call.span, type_expr.span, annotations
        )

    def _package_fits(self, value: c.Expr, want: t.Type) -> bool:
        """Whether a value can be a package's argument: a block by its parameters' types."""
        if (
            value.type is t.ANYTHING
            or want is t.ANYTHING
            or (t.has_variables(want) and not (isinstance(want, t.BlockType)))
        ):
            return True
        if isinstance(want, t.BlockType) and isinstance(value.type, t.BlockType):
            if want.kind == "package":
                return (
                    value.type.kind == "package"
                    and value.type.name == want.name
                    and all(
                        mine == its or t.has_variables(its) or t.ANYTHING in (mine, its)
                        for mine, its in zip(value.type.args, want.args, strict=False)
                    )
                )
            return self.typing.block_fits(value.type, want)
        return value.type == want or self.typing.try_coerce(value, want) is not None

    def _package_mismatch(
        self, value: c.Expr, param: t.Param, want: t.Type, params: tuple[t.Param, ...], index: int
    ) -> None:
        """Report an argument that does not fit, with what the package takes."""
        if isinstance(want, t.BlockType) and isinstance(value.type, t.BlockType):
            order = ", ".join(str(p.type) for p in params)
            have_form = ", ".join(f"{p.direction} {p.type}".strip() for p in value.type.params)
            want_form = ", ".join(f"{p.direction} {p.type}".strip() for p in want.params)
            if value.type.kind != want.kind or len(value.type.params) != len(want.params):
                cure = f"the order of arguments is ({order})"
            else:
                cure = f"it must take ({want_form}); the order of arguments is ({order})"
            self.context.error(
                "package-argument",
                value.span,
                f"argument {index + 1} ('{param.name}') must be a {want.kind} of type "
                f"{want}; {value.type.kind} '{value.type.name}' takes ({have_form})",
                cure,
            )
        else:
            self.typing.mismatch(value, want, f"'{param.name}'")

    def _top_instance(self, node: s.Instance) -> None:
        """11.3: externs and packages stand at the top level; `main` is a package."""
        found = self.statements.instance(node)
        if found is None:
            return
        if found.block is not None:
            self.context.error(
                "not-instantiable",
                node.span,
                f"a {'parser' if isinstance(found.block, c.Parser) else 'control'} cannot be "
                "instantiated at the top level",
                "instantiate it inside another, or in the arguments of main",
            )
        self.context.program.instances.append(found)
        if node.name == "main":
            if isinstance(found.type, t.BlockType) and found.type.kind == "package":
                self.context.program.main = found
            else:
                self.context.error(
                    "bad-main",
                    node.span,
                    "'main' must instantiate a package",
                    "write V1Switch(...) main;",
                )

    def _constant(self, node: s.Constant) -> None:
        self.statements.constant(node)


def _variables(type_: t.Type) -> set[t.TypeVar]:
    """The type variables a block's type is named with, or the type itself is."""
    if isinstance(type_, t.TypeVar):
        return {type_}
    return {v for arg in getattr(type_, "args", ()) for v in _variables(arg)}


def _leaves_open(node: s.TypeExpr) -> bool:
    """Whether a type is written with `_` for an argument."""
    return isinstance(node, s.NamedType) and any(
        isinstance(arg, s.BaseType) and arg.name == "_" for arg in node.args
    )


def _names(method: t.Method) -> list[str]:
    return [p.name for p in method.params]


def _known(value: c.Expr) -> bool:
    if isinstance(value, c.Const | c.New | c.InstanceRef):
        return True
    if isinstance(value, c.Ref):
        return value.symbol.direction == "ctor"
    if isinstance(value, c.Aggregate):
        return all(_known(p) for _, p in value.parts)
    if isinstance(value, c.Binary):
        return _known(value.left) and _known(value.right)
    if isinstance(value, c.Cast | c.Unary):
        return _known(value.operand)
    if isinstance(value, c.Call) and isinstance(value.type, t.Extern):
        return all(arg is None or _known(arg) for arg in value.args)  # a factory of objects
    return value.type is t.ANYTHING


def _always_returns(node: c.Statement) -> bool:
    if isinstance(node, c.Return):
        return True
    if isinstance(node, c.Exit):
        return True
    if isinstance(node, c.Block):
        return any(_always_returns(x) for x in node.body)
    if isinstance(node, c.If):
        return node.no is not None and _always_returns(node.yes) and _always_returns(node.no)
    if isinstance(node, c.Switch):
        return any(case.default for case in node.cases) and all(
            _always_returns(case.body) for case in node.cases
        )
    return False


_RULES: dict[type, Callable[..., Any]] = {
    s.Typedef: Declarations._typedef,
    s.StructDecl: Declarations._struct_decl,
    s.EnumDecl: Declarations._enum_decl,
    s.NameList: Declarations._name_list,
    s.ExternDecl: Declarations._extern,
    s.ParserType: Declarations._block_type,
    s.PackageType: Declarations._package,
    s.Function: Declarations._function,
    s.ActionDecl: Declarations._top_action,
    s.ParserDecl: Declarations._block_decl,
    s.ControlDecl: Declarations._block_decl,
    s.Instance: Declarations._top_instance,
    s.Constant: Declarations._constant,
}
