"""Typing of instantiations: externs, parsers, controls and packages, made at compile time."""

from __future__ import annotations

from typing import Protocol

from compiler import core as c
from compiler import syntax as s
from compiler import types as t
from compiler.check.base import BlockEntry, Context, consists_of
from compiler.check.calls import Calls
from compiler.check.expressions import Expressions
from compiler.check.typing import Binding, Typing
from compiler.source import Span


class Inside(Protocol):
    """What instantiations ask of declarations, which have some inside."""

    def block_version(
        self, entry: BlockEntry, args: tuple[t.Type, ...]
    ) -> c.Parser | c.Control | None:
        """The typed parser or control for these type arguments."""


class Instantiations:
    """Types instantiations."""

    declarations: Inside

    def __init__(
        self, context: Context, typing: Typing, expressions: Expressions, calls: Calls
    ) -> None:
        self.context = context
        self.typing = typing
        self.expressions = expressions
        self.calls = calls

    def construct(
        self,
        type_expr: s.TypeExpr,
        args: tuple[s.Argument, ...],
        name: str,
        span: Span,
        annotations: s.Annotations,
    ) -> c.Instance | None:
        """11.3: `T(args) name`; None where T cannot be instantiated."""
        type_args: tuple[t.Type, ...] = ()
        entry = None
        if isinstance(type_expr, s.NamedType):
            entry = self.context.lookup(type_expr.name, span=type_expr.span)
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
            block = self.declarations.block_version(entry, chosen)
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
            if arg is not None and not known(arg):
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


def known(value: c.Expr) -> bool:
    """Whether a value is known when instances are made."""
    return consists_of(value, _is_known)


def _is_known(part: c.Expr) -> bool:
    if isinstance(part, c.Call) and isinstance(part.type, t.Extern):
        return all(arg is None or known(arg) for arg in part.args)  # a factory of objects
    return isinstance(part, c.Const | c.New | c.InstanceRef) or part.type is t.ANYTHING
