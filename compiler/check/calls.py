"""Typing of calls: functions, methods, actions, constructors, `apply`."""

from __future__ import annotations

from typing import Protocol

from compiler import core as c
from compiler import syntax as s
from compiler import types as t
from compiler.check.base import (
    BlockEntry,
    Constructs,
    Context,
    Declared,
    FunctionEntry,
    GenericStruct,
    Overloads,
    mark_used,
)
from compiler.check.expressions import Expressions
from compiler.check.typing import Binding, Typing, type_key
from compiler.source import Span

_HEADER_METHODS = {"isValid", "setValid", "setInvalid"}
_STACK_METHODS = {"push_front", "pop_front"}
_SIZE_METHODS = {"minSizeInBits", "minSizeInBytes", "maxSizeInBits", "maxSizeInBytes"}


class Inside(Protocol):
    """What calls ask of declarations, which have calls inside."""

    def function_version(self, entry: FunctionEntry, args: tuple[t.Type, ...]) -> c.Function:
        """The typed body of a function for these type arguments."""


class Calls:
    """Types calls."""

    declarations: Inside
    instantiations: Constructs

    def __init__(self, context: Context, typing: Typing, expressions: Expressions) -> None:
        self.context = context
        self.typing = typing
        self.expressions = expressions

    def call(self, node: s.Call) -> c.Expr:
        """Dispatch on what is called."""
        depth, self.context.lvalue_depth = self.context.lvalue_depth, 0
        try:
            function = node.function
            if isinstance(function, s.Name):
                return self._call_name(node, function)
            if isinstance(function, s.Member):
                return self._call_member(node, function)
            self.context.error("not-callable", node.span, "this cannot be called")
            return self.expressions.bad(node)
        finally:
            self.context.lvalue_depth = depth

    def _call_name(self, node: s.Call, name: s.Name) -> c.Expr:
        """`f(...)`: a function, an action, or what is constructed."""
        entry = self.context.lookup(name.name, name.absolute, name.span)
        if isinstance(entry, Overloads):
            return self._call_function(node, entry)
        if isinstance(entry, c.Action):
            return self._call_action(node, entry)
        if isinstance(entry, BlockEntry | Declared | GenericStruct):
            return self._construct_expr(node, name)
        if isinstance(entry, c.Table):
            self.context.error(
                "not-callable",
                node.span,
                f"table '{name.name}' is applied, not called",
                f"write {name.name}.apply()",
            )
        elif entry is None:
            self.context.error(
                "unknown-name",
                name.span,
                f"'{name.name}' is not declared",
                self.context.similar(name.name, self.context.names())
                or "declare it before this line, or include the file that does",
            )
        else:
            self.context.error(
                "not-callable",
                node.span,
                f"'{name.name}' cannot be called",
                f"write {name.name}.apply(...)" if isinstance(entry, c.Instance) else "",
            )
        for arg in node.args:
            if arg.value is not None:
                self.expressions.expr(arg.value)
        return self.expressions.bad(node)

    def _construct_expr(self, node: s.Call, name: s.Name) -> c.Expr:
        type_expr = s.NamedType(name.span, name.name, node.type_args)
        instance = self.instantiations.construct(type_expr, node.args, name.name, node.span, ())
        if instance is None:
            return self.expressions.bad(node)
        return c.New(node.span, instance.type, instance)

    # Members

    def _call_member(self, node: s.Call, member: s.Member) -> c.Expr:  # noqa: PLR0912 - one branch per kind
        """`x.m(...)`: by what x is, a table, block, extern, header or stack (8.18 to 8.21)."""
        name = member.name
        if isinstance(member.base, s.Name):
            entry = self.context.lookup(member.base.name, member.base.absolute, member.base.span)
            if isinstance(entry, c.Table):
                return self._apply_table(node, entry, member)
            if isinstance(entry, BlockEntry):
                return self._apply_type(node, entry, member)
            if isinstance(entry, Declared) and name in _SIZE_METHODS:
                return self._size(node, name, entry.type)
        base = self._method_base(member.base, name)
        type_ = base.type
        if type_ is t.ANYTHING:
            for arg in node.args:
                if arg.value is not None:
                    self.expressions.expr(arg.value)
            return self.expressions.bad(node)
        if isinstance(type_, t.Extern):
            return self._call_method(node, base, type_, member)
        if isinstance(type_, t.BlockType) and name == "apply":
            return self._apply_block(node, base, type_)
        if name in _SIZE_METHODS and t.width_of(type_) is not None:
            return self._size(node, name, type_)
        if name in _HEADER_METHODS and (t.is_header(type_) or t.is_union(type_)):
            if t.is_union(type_) and name == "setValid":
                self.context.error(
                    "unknown-method",
                    member.name_span,
                    "a header union has no method 'setValid'",
                    "call it on one of the union's headers",
                )
            return self._builtin(node, base, name)
        if name in _STACK_METHODS and isinstance(type_, t.Stack):
            return self._stack_method(node, base, name)
        if name == "isValid" and isinstance(type_, t.Stack):
            self.context.error(
                "unknown-method",
                member.name_span,
                "a stack has no validity",
                "ask one element: stack[i].isValid()",
            )
            return self.expressions.bad(node)
        known = (
            sorted(_HEADER_METHODS)
            if t.is_header(type_)
            else (sorted(_STACK_METHODS) if isinstance(type_, t.Stack) else [])
        )
        self.context.error(
            "unknown-method",
            member.name_span,
            f"{type_} has no method '{name}'",
            self.context.similar(name, known)
            or (
                "only headers can be valid or not"
                if name in _HEADER_METHODS
                else f"its methods are: {', '.join(known)}"
                if known
                else ""
            ),
        )
        return self.expressions.bad(node)

    def _method_base(self, node: s.Expr, method: str) -> c.Expr:
        writes = method in ("setValid", "setInvalid", *_STACK_METHODS)
        return self.expressions.lvalue(node, "changed") if writes else self.expressions.expr(node)

    def _size(self, node: s.Call, name: str, type_: t.Type) -> c.Expr:
        width = t.width_of(type_)
        if width is None:
            self.context.error("type-mismatch", node.span, f"{type_} has no size")
            return self.expressions.bad(node)
        if name.startswith("min"):
            width = minimum_width(type_)
        if name.endswith("Bytes"):
            width = (width + 7) // 8
        return c.Const(node.span, t.INT, width)

    def _builtin(self, node: s.Call, base: c.Expr, name: str) -> c.Expr:
        if node.args:
            self.context.error(
                "argument-count", node.span, f"'{name}' takes no arguments", "remove them"
            )
        result = t.BOOL if name == "isValid" else t.VOID
        return c.Call(node.span, result, c.Builtin(name), base, (), ())

    def _stack_method(self, node: s.Call, base: c.Expr, name: str) -> c.Expr:
        if len(node.args) != 1 or node.args[0].value is None:
            self.context.error(
                "argument-count",
                node.span,
                f"'{name}' takes the number of elements",
                f"write {name}(1)",
            )
            return self.expressions.bad(node)
        count = self.typing.constant_int(node.args[0].value, "the number of elements")
        if count is not None and count < 0:
            self.context.error(
                "out-of-range", node.args[0].span, "the number of elements is negative"
            )
        value = c.Const(node.args[0].span, t.BIT32, max(0, count or 0))
        return c.Call(node.span, t.VOID, c.Builtin(name), base, (), (value,))

    def _apply_table(self, node: s.Call, table: c.Table, member: s.Member) -> c.Expr:
        """14.2.2: tables are applied in a control's apply block, without arguments."""
        if member.name != "apply":
            self.context.error(
                "unknown-method",
                member.name_span,
                f"a table has no method '{member.name}'",
                "its one method is apply()",
            )
            return self.expressions.bad(node)
        if self.context.place.kind != "control" or self.context.place.in_action:
            where = "an action" if self.context.place.in_action else f"a {self.context.place.kind}"
            self.context.error(
                "misplaced",
                node.span,
                f"a table cannot be applied in {where}",
                "apply tables in a control's apply block",
            )
        if self.context.place.in_list:
            self.context.error(
                "misplaced",
                node.span,
                "a table cannot be applied in an argument of another table's action",
                f"apply it before: if ({table.name}.apply().hit) {{ ... }}",
            )
        if node.args:
            self.context.error(
                "argument-count",
                node.span,
                "apply() of a table takes no arguments",
                "actions' parameters come from the entries",
            )
        table.used = True
        return c.Call(
            node.span, t.TableResult("apply_result", table), c.TableApply(table), None, (), ()
        )

    def _apply_type(self, node: s.Call, entry: BlockEntry, member: s.Member) -> c.Expr:
        """14.4: a control or parser without constructor parameters applied by its type."""
        assert isinstance(member.base, s.Name)
        if member.name != "apply":
            self.context.error(
                "unknown-method",
                member.name_span,
                f"'{entry.decl.name}' has no method '{member.name}'",
                "its one method is apply(...)",
            )
            return self.expressions.bad(node)
        type_expr = s.NamedType(member.base.span, member.base.name, ())
        instance = self.instantiations.construct(
            type_expr, (), member.base.name, member.base.span, ()
        )
        if instance is None:
            return self.expressions.bad(node)
        base = c.InstanceRef(node.span, instance.type, instance)
        return self._apply_block(node, base, entry.type)

    def _apply_block(self, node: s.Call, base: c.Expr, type_: t.BlockType) -> c.Expr:
        """14.4: parsers apply parsers, controls apply controls."""
        if type_.kind == "package":
            self.context.error("unknown-method", node.span, "a package cannot be applied")
            return self.expressions.bad(node)
        wanted = "parser" if type_.kind == "parser" else "control"
        if self.context.place.kind != wanted or self.context.place.in_action:
            where = "an action" if self.context.place.in_action else f"a {self.context.place.kind}"
            self.context.error(
                "misplaced",
                node.span,
                f"a {wanted} cannot be applied in {where}",
                f"apply it in a {wanted}'s " + ("state" if wanted == "parser" else "apply block"),
            )
        if isinstance(base, c.InstanceRef):
            base.instance.used = True
        args = self.arguments(node, type_.params, {}, f"'{type_.name}'")
        target = base.instance if isinstance(base, c.InstanceRef) else None
        callee = c.BlockApply(target)  # type: ignore[arg-type]
        return c.Call(node.span, t.VOID, callee, base, (), args)

    def _call_method(self, node: s.Call, base: c.Expr, type_: t.Extern, member: s.Member) -> c.Expr:
        """8.21: a method of an extern object, by its name and arguments."""
        candidates = [m for m in type_.methods if m.name == member.name]
        if not candidates:
            names = [m.name for m in type_.methods]
            self.context.error(
                "unknown-method",
                member.name_span,
                f"{type_} has no method '{member.name}'",
                self.context.similar(member.name, names)
                or (f"its methods are: {', '.join(dict.fromkeys(names))}" if names else ""),
            )
            return self.expressions.bad(node)
        method = self.choose(node, candidates)
        if method is None:
            return self.expressions.bad(node)
        self.context.lead(member.name_span, method.decl.span if method.decl else None)
        return self._call_signature(node, method, c.ExternCall(method, type_), base)

    # Functions and actions

    def _call_function(self, node: s.Call, entry: Overloads) -> c.Expr:
        """8.21: a function, by the number and names of the arguments."""
        candidates = [*entry.methods, *(f.signature for f in entry.functions)]
        method = self.choose(node, candidates)
        if method is None:
            return self.expressions.bad(node)
        self.context.lead(node.function.span, method.decl.span if method.decl else None)
        for function in entry.functions:
            if function.signature is method:
                return self._call_with_body(node, function)
        if method.name == "verify" and self.context.place.kind != "parser":
            self.context.error(
                "misplaced",
                node.span,
                "'verify' can be called in parsers only",
                "in a control, test the condition with 'if'",
            )
        if method.name == "static_assert":
            return self._static_assert(node, method)
        return self._call_signature(node, method, c.ExternCall(method), None)

    def _static_assert(self, node: s.Call, method: t.Method) -> c.Expr:
        args = self.arguments(node, method.params, {}, "'static_assert'")
        if not args or not isinstance(args[0], c.Const):
            self.context.error(
                "not-constant", node.span, "static_assert needs a condition known at compile time"
            )
        elif not args[0].value:
            text = args[1].value if len(args) > 1 and isinstance(args[1], c.Const) else ""
            self.context.error(
                "static-assert", node.span, f"static assertion failed: {text}".rstrip(": ")
            )
        return c.Const(node.span, t.BOOL, True)

    def choose(self, node: s.Call, candidates: list[t.Method]) -> t.Method | None:
        """The overload that fits the arguments' number and names."""
        fitting = [m for m in candidates if _accepts(m.params, node.args)]
        if len(fitting) > 1 and node.type_args:
            fitting = [m for m in fitting if len(m.type_params) == len(node.type_args)] or fitting
        if len(fitting) > 1:
            self.context.error(
                "ambiguous",
                node.span,
                f"this call may mean any of {len(fitting)} forms of '{candidates[0].name}'",
                "name the arguments; the forms are: " + "; ".join(map(signature, fitting)),
            )
        if fitting:
            return fitting[0]
        if len(candidates) == 1:
            return candidates[0]
        counts = sorted({len(m.params) for m in candidates})
        self.context.error(
            "argument-count",
            node.span,
            f"no form of '{candidates[0].name}' takes {len(node.args)} argument(s)",
            "it takes "
            + " or ".join(map(str, counts))
            + ": "
            + "; ".join(signature(m) for m in candidates),
        )
        for arg in node.args:
            if arg.value is not None:
                self.expressions.expr(arg.value)
        return None

    def _call_signature(
        self,
        node: s.Call,
        method: t.Method,
        callee: c.ExternCall,
        base: c.Expr | None,
    ) -> c.Expr:
        """A call of what has no body: arguments, type arguments, what is returned."""
        binding = self._bind(node, method)
        if binding is None:
            return self.expressions.bad(node)
        args = self.arguments(node, method.params, binding, f"'{method.name}'")
        if callee.extern is not None and callee.extern.name == "packet_in":
            self._check_extract(method, args)
            self._check_lookahead(node, method, binding)
        if callee.extern is not None and callee.extern.name == "packet_out":
            self._check_emit(args)
        type_args = tuple(binding.get(v) or t.ANYTHING for v in method.type_params)
        returns = t.substitute(method.returns, binding)
        if (
            any(a is t.ANYTHING for a in type_args)
            and isinstance(method.returns, t.TypeVar)
            and (binding.get(method.returns) in (None, t.ANYTHING))
        ):
            if not any(a is None for a in args):
                self.context.error(
                    "type-arguments",
                    node.span,
                    f"the type argument of '{method.name}' cannot be inferred",
                    f"write it out: {method.name}<T>(...)",
                )
            returns = t.ANYTHING
        return c.Call(node.span, returns, callee, base, type_args, args)

    def _check_lookahead(self, node: s.Call, method: t.Method, binding: Binding) -> None:
        """13.8.3: T is known, and of fixed width."""
        if method.name not in ("lookahead", "extract"):
            return
        for type_ in binding.values():
            if type_ is None or type_ is t.ANYTHING:
                self.context.error(
                    "type-arguments",
                    node.span,
                    f"the type argument of '{method.name}' cannot be inferred",
                    f"write it out: {method.name}<T>(...)",
                )
            elif method.name == "lookahead" and not isinstance(type_, t.TypeVar):
                width = t.width_of(type_)
                if width is None or width != minimum_width(type_):
                    self.context.error(
                        "type-mismatch",
                        node.span,
                        f"'lookahead' needs a type of fixed width, not {type_}",
                        "extract what varies in length",
                    )

    def _check_emit(self, args: tuple[c.Expr | None, ...]) -> None:
        for arg in args:
            if arg is not None and not _can_be_emitted(arg.type):
                self.context.error(
                    "type-mismatch",
                    arg.span,
                    f"'emit' cannot send a value of type {arg.type}",
                    "it sends headers, stacks, unions, and structs of them",
                )

    def _check_extract(self, method: t.Method, args: tuple[c.Expr | None, ...]) -> None:
        """13.8: a header, and the length of its varbit if it has one."""
        if method.name != "extract" or not args or args[0] is None:
            return
        target = args[0]
        type_ = t.strip(target.type)
        if type_ is t.ANYTHING or isinstance(type_, t.TypeVar):
            return
        if not t.is_header(type_) or not isinstance(type_, t.Struct):
            self.context.error(
                "bad-extract",
                target.span,
                f"extract needs a header, not {type_}",
                "extract the headers inside it one by one",
            )
            return
        varies = any(isinstance(t.strip(f.type), t.Varbit) for f in type_.fields)
        if varies and len(args) == 1:
            self.context.error(
                "bad-extract",
                target.span,
                f"header {type_} has a varbit field",
                "call extract(header, length of the varbit field in bits)",
            )
        elif not varies and len(args) == 2:
            self.context.error(
                "bad-extract",
                target.span,
                f"header {type_} has no varbit field",
                "call extract(header)",
            )

    def _bind(self, node: s.Call, method: t.Method) -> Binding | None:
        """8.21: type arguments as written; those not written are inferred from arguments."""
        binding: Binding = dict.fromkeys(method.type_params)
        if node.type_args:
            if len(node.type_args) != len(method.type_params):
                self.context.error(
                    "type-arguments",
                    node.span,
                    f"'{method.name}' takes "
                    f"{len(method.type_params)} type argument(s), "
                    f"not {len(node.type_args)}",
                    f"its form is: {signature(method)}",
                )
                return None
            for variable, given in zip(method.type_params, node.type_args, strict=True):
                type_ = self.typing.resolve(given)
                binding[variable] = None if type_ is t.ANYTHING else type_
                if isinstance(type_, t.InfInt | t.StringType) and any(
                    p.direction and p.type == variable for p in method.params
                ):
                    self.context.error(
                        "bad-parameter",
                        given.span,
                        f"'{method.name}' has parameters with a direction of this type, which no "
                        f"{type_} can be passed to",
                        "give a type with a width",
                    )
        return binding

    def _call_with_body(self, node: s.Call, entry: FunctionEntry) -> c.Expr:
        entry.used = True
        method = entry.signature
        binding = self._bind(node, method)
        if binding is None:
            return self.expressions.bad(node)
        args = self.arguments(node, method.params, binding, f"'{method.name}'")
        type_args = tuple(binding.get(v) or t.ANYTHING for v in method.type_params)
        function = self.declarations.function_version(entry, type_args)
        return c.Call(node.span, function.returns, function, None, type_args, args)

    def _call_action(self, node: s.Call, action: c.Action) -> c.Expr:
        if self.context.place.kind != "control":
            self.context.error(
                "misplaced",
                node.span,
                f"an action cannot be called in a {self.context.place.kind}",
                "use a function",
            )
        if node.type_args:
            self.context.error("type-arguments", node.span, "an action takes no type arguments")
        action.used = True
        params = tuple(param_of(v) for v in action.params)
        args = self.arguments(node, params, {}, f"action '{action.name}'")
        return c.Call(node.span, t.VOID, action, None, (), args)

    # Arguments

    def arguments(
        self,
        node: s.Call,
        params: tuple[t.Param, ...],
        binding: Binding,
        what: str,
    ) -> tuple[c.Expr | None, ...]:
        """Match arguments to parameters, infer, convert."""
        matched = self.match(node.args, params, what, node.span)
        if matched is None:
            for arg in node.args:
                if arg.value is not None:
                    self.expressions.expr(arg.value)
            return ()
        values: list[c.Expr | None] = []
        for param, given in zip(params, matched, strict=True):
            values.append(self._argument(param, given, binding))
        for variable, bound in list(binding.items()):
            if bound is None:
                binding[variable] = t.ANYTHING
            elif _has_int(bound):
                self.context.error(
                    "type-arguments",
                    node.span,
                    f"{what} takes any type here, but a number is given without one",
                    "write the number with its width: 32w...",
                )
                binding[variable] = t.ANYTHING
        return tuple(
            self._convert(value, t.substitute(param.type, binding), param)
            for param, value in zip(params, values, strict=True)
        )

    def _argument(self, param: t.Param, arg: s.Argument | None, binding: Binding) -> c.Expr | None:
        """6.7: a value for `in`, something writable for `out` and `inout`, or the default."""
        if arg is None:
            if param.default is not None:
                return self.expressions.expr(param.default)
            return None
        if arg.value is None:
            if param.direction != "out" and not param.optional:
                self.context.error(
                    "argument-missing",
                    arg.span,
                    f"'_' can stand for an 'out' argument only, and '{param.name}' is not",
                    "give a value",
                )
            return None
        if isinstance(arg.value, s.Default) and arg.value.word == "...":
            return c.DefaultValue(arg.span, t.ANYTHING)
        if param.direction in ("out", "inout"):
            value = self.expressions.lvalue(arg.value, f"passed as '{param.direction}'")
            if param.direction == "inout":
                mark_used(value)
        else:
            want = t.substitute(param.type, {k: v for k, v in binding.items() if v is not None})
            if isinstance(arg.value, s.ListExpr | s.StructExpr) and not t.has_variables(want):
                value = self.expressions.expr(arg.value, want)
            elif isinstance(want, t.Extern) and isinstance(arg.value, s.Call):
                value = self.expressions.expr(arg.value, None)
            else:
                value = self.expressions.expr(arg.value)
        self.typing.unify(param.type, value.type, binding)
        return value

    def _convert(self, value: c.Expr | None, want: t.Type, param: t.Param) -> c.Expr | None:
        """6.7: what `out` and `inout` take is of the very type; `in` converts as assignments do."""
        if value is None:
            return None
        if param.direction in ("out", "inout"):
            if value.type != want and t.ANYTHING not in (want, value.type):
                self._bad_out(value, want, param)
            return value
        if param.direction and isinstance(want, t.InfInt | t.StringType):
            self.context.error(
                "bad-parameter",
                value.span,
                f"'{param.name}' has a direction, so no value of type {want} can be passed",
                "it takes what has a width",
            )
            return value
        if isinstance(want, t.StructLiteral):
            self.context.error(
                "type-arguments",
                value.span,
                f"the type of this structure cannot be inferred for '{param.name}'",
                "say which it is: (S) { ... }",
            )
            return value
        if isinstance(want, t.BlockType) and not isinstance(param.type, t.BlockType):
            self.context.error(
                "type-mismatch", value.span, f"{want.kind} '{want}' cannot be passed here"
            )
            return value
        return self.typing.coerce(value, want, f"'{param.name}'")

    def _bad_out(self, value: c.Expr, want: t.Type, param: t.Param) -> None:
        cure = "an 'out' argument's type must match exactly"
        one, other = value.type, want
        code = "type-mismatch"
        if isinstance(one, t.Bits) and isinstance(other, t.Bits):
            code = "width-mismatch"
            cure = f"pass a variable of type {want} and cast it afterwards"
        self.context.error(
            code,
            value.span,
            f"'{param.name}' is '{param.direction}' of type {want}, found {value.type}",
            cure,
        )

    def match(
        self, args: tuple[s.Argument, ...], params: tuple[t.Param, ...], what: str, span: Span
    ) -> list[s.Argument | None] | None:
        """Arguments in parameter order; None where one is left out."""
        named = [a for a in args if a.name is not None]
        if named and len(named) != len(args):
            self.context.error(
                "argument-names", span, "arguments are either all named or none is", "name them all"
            )
            return None
        if not named:
            required = sum(1 for p in params if not p.optional and p.default is None)
            if not required <= len(args) <= len(params):
                self._wrong_count(args, params, what, span)
                return None
            return [*args, *[None] * (len(params) - len(args))]
        by_name = {a.name: a for a in args}
        if len(by_name) != len(args):
            self.context.error("duplicate", span, "an argument is named twice", "remove one")
            return None
        for arg in args:
            if not any(p.name == arg.name for p in params):
                self.context.error(
                    "argument-names",
                    arg.span,
                    f"{what} has no parameter '{arg.name}'",
                    self.context.similar(arg.name or "", [p.name for p in params]),
                )
                return None
            self.context.lead(arg.span, next(p.span for p in params if p.name == arg.name))
        for param in params:
            if param.name not in by_name and not param.optional and param.default is None:
                self.context.error(
                    "argument-count",
                    span,
                    f"argument '{param.name}' of {what} is missing",
                    f"add {param.name} = ...",
                )
                return None
        return [by_name.get(p.name) for p in params]

    def _wrong_count(
        self, args: tuple[s.Argument, ...], params: tuple[t.Param, ...], what: str, span: Span
    ) -> None:
        form = ", ".join(f"{p.direction} {p.type} {p.name}".strip() for p in params)
        self.context.error(
            "argument-count",
            span,
            f"{what} takes {len(params)} argument(s), not {len(args)}",
            f"its parameters are: ({form})",
        )

    # Constructors


def _accepts(params: tuple[t.Param, ...], args: tuple[s.Argument, ...]) -> bool:
    names = {a.name for a in args if a.name is not None}
    if names:
        return names <= {p.name for p in params} and all(
            p.name in names or p.optional or p.default is not None for p in params
        )
    required = sum(1 for p in params if not p.optional and p.default is None)
    return required <= len(args) <= len(params)


def param_of(variable: c.Variable) -> t.Param:
    """A parameter's type from its variable."""
    return t.Param(
        variable.name,
        variable.direction,
        variable.type,
        variable.optional,
        variable.default,
        variable.span,
    )


def signature(method: t.Method) -> str:
    """How a function is called, for messages."""
    params = ", ".join(f"{p.direction} {p.type} {p.name}".strip() for p in method.params)
    return f"{method.name}({params})"


def _has_int(type_: t.Type) -> bool:
    """Whether numbers without width are among the parts of what was inferred."""
    if isinstance(type_, t.Tuple):
        return any(map(_has_int, type_.elements))
    return isinstance(type_, t.InfInt)


def _can_be_emitted(type_: t.Type) -> bool:
    if isinstance(type_, t.Stack | t.TypeVar | t.Anything) or t.is_header(type_):
        return True
    if isinstance(type_, t.Tuple):
        return all(map(_can_be_emitted, type_.elements))
    return isinstance(type_, t.Struct) and all(_can_be_emitted(f.type) for f in type_.fields)


def minimum_width(type_: t.Type) -> int:
    """The least number of bits a value can take up."""
    base = t.underlying(type_)
    if isinstance(base, t.Varbit):
        return 0
    if isinstance(base, t.Struct):
        widths = [minimum_width(f.type) for f in base.fields]
        return min(widths, default=0) if base.kind == "header_union" else sum(widths)
    if isinstance(base, t.Stack):
        return base.size * minimum_width(base.element)
    return t.width_of(base) or 0


__all__ = ["Calls", "signature", "type_key"]
