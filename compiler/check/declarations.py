"""Typing of declarations: types, externs, functions, actions, parsers and controls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compiler import core as c
from compiler import syntax as s
from compiler import types as t
from compiler.check.base import (
    BlockEntry,
    Constant,
    Context,
    Declared,
    FunctionEntry,
    GenericStruct,
    Overloads,
    Place,
)
from compiler.check.expressions import Expressions
from compiler.check.instantiations import known
from compiler.check.names import Member
from compiler.check.statements import Statements
from compiler.check.states import States
from compiler.check.tables import Tables
from compiler.check.typing import Binding, Typing, type_key
from compiler.source import Span
from params.data import Data

MAX_NEW_TYPES = 100  # each made of the one before
MAX_VERSIONS = 1000  # of generic functions and blocks, one for each choice of type arguments


class Declarations(Data, eq=False, frozen=False):
    """Types declarations."""

    context: Context
    typing: Typing
    expressions: Expressions
    statements: Statements
    tables: Tables
    states: States

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
            if t.newness(type_) >= MAX_NEW_TYPES:
                self.context.error(
                    "too-deep",
                    node.span,
                    f"more than {MAX_NEW_TYPES} types stand on one another here",
                    "make new types of bit<> and bool themselves",
                )
                type_ = base
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
        numbers = type_.members if isinstance(type_, t.SerializableEnum) else {}
        for name, _, span, _ in node.members:
            self.context.note(span, Member(name, node.name, type_, numbers.get(name)))

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
                self.context.note(span, self.context.scopes[-1][name])
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
            self.context.note(span, Member(name, node.name))

    def type_variables(self, names: tuple[s.Word, ...], span: Span) -> tuple[t.TypeVar, ...]:
        """Fresh type variables, declared in the current scope."""
        self.context.owners += 1
        for index, name in enumerate(names):
            if name in names[:index]:
                self.context.error(
                    "duplicate", span, f"type parameter '{name}' is declared twice", "rename one"
                )
        variables = tuple(t.TypeVar(str(name), self.context.owners) for name in names)
        self.context.scopes[-1] |= self.context.type_arguments(names, variables)
        return variables

    def param_types(self, nodes: tuple[s.Parameter, ...]) -> tuple[t.Param, ...]:
        """Parameters as types, with the rules that hold for all of them."""
        found: list[t.Param] = []
        names: set[str] = set()
        for node in nodes:
            type_ = self.typing.resolve(node.type)
            is_new = node.name not in names
            names.add(node.name)
            if not is_new:
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
            param = t.Param(node.name, node.direction, type_, optional, node.default, node.span)
            self.context.note(node.span, param)
            found.append(param)
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
        if not known(value) and not isinstance(value, c.DefaultValue | c.Invalid):
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
        made = t.Method(
            node.name, variables, params, returns, node.annotations, node.abstract, node
        )
        self.context.note(node.span, made)
        return made

    def _extern(self, node: s.ExternDecl) -> None:
        """7.2.10: an extern's constructors and methods, told apart by their parameters' names."""
        self.context.scopes.append({})
        variables = self.type_variables(node.type_params, node.span)
        own = t.Extern(node.name, variables, (), ())
        self.context.scopes[-1][node.name] = Declared(own)
        self.context.note(node.span, self.context.scopes[-1][node.name])
        self.context.place.declares = own
        constructors = tuple(self.method(m) for m in node.constructors)
        for each in node.constructors:
            self.context.lead(each.span, node.span)
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
        known: set[tuple[str, ...]] = set()
        for made in methods:
            named = (made.name, *_names(made))
            is_new = named not in known
            known.add(named)
            if not is_new:
                assert made.decl is not None
                self.context.error(
                    "duplicate",
                    made.decl.span,
                    f"method '{made.name}' with these parameters is already declared",
                    "rename one, or give it another number of parameters",
                )
        known.clear()
        for made in constructors:
            named = tuple(_names(made))
            is_new = named not in known
            known.add(named)
            if not is_new:
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

    def _block_type(self, node: s.ParserType | s.PackageType) -> None:
        self.context.scopes.append({})
        variables = self.type_variables(node.type_params, node.span)
        params = self.param_types(node.params)
        self.context.scopes.pop()
        made = (
            t.BlockType(node.name, "package", variables, params, params)
            if isinstance(node, s.PackageType)
            else t.BlockType(node.name, node.kind, variables, params)
        )
        self.context.declare(node.name, Declared(made), node.span)

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
        self.context.scopes = [kept[0], self.context.type_arguments(node.type_params, args)]
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

    def _count_version(self, node: s.Function | s.ParserDecl | s.ControlDecl) -> None:
        """Each choice of type arguments is typed anew, which may double with every level."""
        self.context.versions += bool(node.type_params)
        if self.context.versions > MAX_VERSIONS:
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
        self.context.scopes = [kept[0], self.context.type_arguments(node.type_params, args)]
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
        self.context.scopes.append({})
        self._locals(made.decl.locals, made.locals)
        self.states.states(made)
        self.context.scopes.pop()

    # Instances

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


def _names(method: t.Method) -> list[str]:
    return [p.name for p in method.params]


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
    s.PackageType: Declarations._block_type,
    s.Function: Declarations._function,
    s.ActionDecl: Declarations._top_action,
    s.ParserDecl: Declarations._block_decl,
    s.ControlDecl: Declarations._block_decl,
    s.Instance: Declarations._top_instance,
    s.Constant: Declarations._constant,
}
