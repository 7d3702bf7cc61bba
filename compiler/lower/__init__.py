"""Lowering: from the typed tree of `main` to the low-level program.

All parts fill the blocks of one `Builder`. Each part holds, by name, those that it lowers with;
three lead back: a call within an expression is carried out as a statement is, and statements apply
tables, parsers and controls.
"""

from __future__ import annotations

from compiler import core as c
from compiler import ir
from compiler import syntax as s
from compiler import types as t
from compiler.diagnostics import Diagnostics
from compiler.instances import BlockInstance, Instances, annotation
from compiler.lower.base import Builder, Frame, LoweringError
from compiler.lower.expressions import Expressions, convert
from compiler.lower.externs import Externs
from compiler.lower.graph import reachable, simplify
from compiler.lower.loops import fold_loops
from compiler.lower.parsers import Parsers
from compiler.lower.shared import share
from compiler.lower.statements import Statements
from compiler.lower.storage import Storage
from compiler.lower.tables import Tables
from compiler.lower.values import Record, Val, scalar_type
from compiler.source import Span
from params.data import Data

__all__ = ["lower"]

_MAKES_VALID = {
    "extract",
    "extract_VL",
    "add_header",
    "assign_header",
    "assign_union",
    "assign_header_stack",
    "assign_union_stack",
    "push",
    "pop",
}
_STAGES = ("parser", "verify", "ingress", "egress", "update", "deparser")


class Switch(Data, eq=False, frozen=False):
    """Lowers the six programmable parts of a V1Switch."""

    builder: Builder
    externs: Externs
    statements: Statements
    blocks: Parsers

    def run(self, main: c.Instance) -> None:
        """Lower `main`."""
        blocks = self._stages(main)
        if blocks is None:
            return
        self.externs.guards = []
        headers, metadata, standard = self._parameters(blocks["parser"].decl, main.span)
        self._field_lists(blocks["parser"].decl, metadata)
        self._parser(blocks["parser"], [headers, metadata, standard])
        self._pipeline("ingress", blocks["ingress"], [headers, metadata, standard])
        self._pipeline("egress", blocks["egress"], [headers, metadata, standard])
        self._deparser(blocks["deparser"], [headers])
        self._checksums("update", blocks["update"], [headers, metadata])
        self._checksums("verify", blocks["verify"], [headers, metadata])
        self._check_names()
        self._check_meters()

    def _check_meters(self) -> None:
        """A direct meter has a table, and an action of that table reads it."""
        for each in self.builder.program.objects:
            if each.kind != "direct_meter" or not each.used:
                continue
            if each.table is None:
                self.builder.error(
                    "bad-property",
                    each.span,
                    f"direct meter '{each.name}' belongs to no table",
                    f"add 'meters = {each.name.rpartition('.')[2]};' to the table it measures",
                )
            elif each.meter_target is None:
                self.builder.error(
                    "bad-property",
                    each.table.span,
                    f"no action of table '{each.table.name}' reads its meter '{each.name}'",
                    "call its read() in an action of the table, or remove it",
                )

    def _check_names(self) -> None:
        """Names the control plane knows must be told apart."""
        actions: dict[str, c.Action | None] = {}
        for action in self.builder.program.actions:
            if actions.setdefault(action.name, action.origin) is not action.origin:
                self._same_name("actions", action.name, action.span)
        tables: set[str] = set()
        for table in self.builder.program.tables:
            if table.name in tables:
                self._same_name("tables", table.name, table.span)
            tables.add(table.name)

    def _same_name(self, what: str, name: str, span: Span) -> None:
        self.builder.error(
            "duplicate-name",
            span,
            f"two {what} are both named '{name}' for the control plane",
            'give one of them another name with @name("...")',
        )

    def _stages(self, main: c.Instance) -> dict[str, BlockInstance] | None:
        """The six blocks `main` was given, each an instance with what is in it."""
        package = main.type.name if isinstance(main.type, t.Named) else str(main.type)
        if package != "V1Switch":
            self.builder.diagnostics.error(
                "unknown-architecture",
                main.span,
                f"package '{package}' is not known here",
                "the architecture supported is v1model: write V1Switch(...) main;",
            )
            return None
        found: dict[str, BlockInstance] = {}
        for stage, arg in zip(_STAGES, main.args, strict=False):
            block = self._stage(arg)
            if block is None:
                if arg is not None:
                    self.builder.diagnostics.error(
                        "package-argument", arg.span, "this is not a parser or control with a body"
                    )
                return None
            found[stage] = block
            self.builder.instances.stages.append(block)
        return found if len(found) == len(_STAGES) else None

    def _stage(self, arg: c.Expr | None) -> BlockInstance | None:
        instance = None
        if isinstance(arg, c.New | c.InstanceRef):
            instance = arg.instance
        if instance is None or instance.block is None:
            return None
        return self.builder.instances.block(instance, instance.block.name, None)

    def _parameters(self, decl: c.Parser | c.Control, span: Span) -> tuple[Val, Val, Val]:
        """Places for headers, metadata and standard metadata, which all six blocks share."""
        types = [t.strip(v.type) for v in decl.params]
        if len(types) != 4 or not isinstance(types[3], t.Struct):
            self.builder.diagnostics.error(
                "package-argument",
                span,
                "the parser does not take (packet_in, out H, inout M, inout standard_metadata_t)",
            )
            raise LoweringError
        headers_type, metadata_type = types[1], types[2]
        standard = self.builder.storage.standard_metadata(types[3])
        if not isinstance(headers_type, t.Struct) or headers_type.kind != "struct":
            raise self.builder.fail(
                decl.params[1].span,
                f"the headers parameter is {headers_type}, not a struct",
                "declare a struct of headers",
                "bad-parameter",
            )
        if not isinstance(metadata_type, t.Struct) or metadata_type.kind != "struct":
            raise self.builder.fail(
                decl.params[2].span,
                f"the metadata parameter is {metadata_type}, not a struct",
                "declare a struct",
                "bad-parameter",
            )
        for each in headers_type.fields:
            if scalar_type(each.type) is not None or isinstance(t.strip(each.type), t.Tuple):
                raise self.builder.fail(
                    each.span or decl.params[1].span,
                    f"field '{each.name}' of the headers struct is {each.type}",
                    "it may hold headers, stacks and unions; keep scalars in metadata",
                    "bad-parameter",
                )
        headers = self.builder.storage.headers(headers_type)
        return headers, self.builder.storage.user_metadata(metadata_type), standard

    def _field_lists(self, decl: c.Parser | c.Control, metadata: Val) -> None:
        lists: dict[int, list[ir.Value]] = {}
        self._collect_lists(t.strip(decl.params[2].type), metadata, lists, ())
        for index, fields in lists.items():
            self.builder.program.field_lists.append(
                ir.FieldList(f"field_list{index}", index, tuple(fields))
            )

    def _collect_lists(
        self, type_: t.Type, place: Val, lists: dict[int, list[ir.Value]], outer: tuple[int, ...]
    ) -> None:
        """What `@field_list(n)` puts into list n; on a structure, all that it holds."""
        if not isinstance(type_, t.Struct) or not isinstance(place, Record):
            return
        for each in type_.fields:
            found = annotation(each.annotations, "field_list")
            indices = outer
            if found is not None:
                indices += tuple(a.value for a in found.args if isinstance(a, s.Number))
            part = place.fields[each.name]
            if isinstance(part, ir.Value):
                for index in indices:
                    lists.setdefault(index, []).append(part)
            elif isinstance(part, Record):
                self._collect_lists(t.strip(each.type), part, lists, indices)
            elif indices:
                for leaf in self.externs.flatten(part, each.span or decl_span(type_)):
                    for index in indices:
                        lists.setdefault(index, []).append(leaf)

    def _bind(self, instance: BlockInstance, places: list[Val]) -> None:
        params = [p for p in instance.decl.params if not isinstance(p.type, t.Extern)]
        for variable, place in zip(params, places, strict=False):
            self.builder.env[variable] = place

    def _start(self, mode: str, pipeline: str, instance: BlockInstance) -> None:
        self.builder.mode, self.builder.pipeline, self.builder.current = mode, pipeline, instance
        self.builder.block = ir.Block()
        self.builder.frames, self.builder.loops, self.builder.in_loop = [], [], 0

    def _graph(
        self, mode: str, name: str, instance: BlockInstance, places: list[Val]
    ) -> ir.Block | None:
        """Where a control's blocks begin; None if one could not be lowered, which was told."""
        self._start(mode, name, instance)
        self._bind(instance, places)
        entry = self.builder.block
        try:
            frame = Frame(ir.Block())
            self.builder.frames.append(frame)
            self.blocks.run_block(instance, frame)
            self.builder.jump(None, ir.Block())
        except LoweringError:
            return None
        return entry

    def _parser(self, instance: BlockInstance, places: list[Val]) -> None:
        self._start("parser", "parser", instance)
        self._bind(instance, places)
        entry = self.builder.block
        assert isinstance(instance.decl, c.Parser)
        try:
            self.statements.locals(instance)
            self.blocks.run_states(instance.decl, instance, None, "")
        except LoweringError:
            return
        first = simplify(entry, merge_named=False)
        self.builder.program.parser = first
        self.builder.program.states = reachable(first)
        self._branches()

    def _branches(self) -> None:
        """A parse state branches on fields only, so a condition becomes a field first."""
        flag: ir.Value | None = None
        for block in self.builder.program.states:
            if isinstance(block.end, ir.Branch):
                if flag is None:
                    flag = self.builder.storage.scalar("branch", t.BIT1)
                value = convert(block.end.condition, t.BIT1)
                block.ops.append(ir.Operation("assign", (flag, value), block.end.span))
                cases = [
                    ir.SelectCase(((1, 1),), None, block.end.yes),
                    ir.SelectCase((None,), None, block.end.no),
                ]
                block.end = ir.Select((flag,), cases)

    def _pipeline(self, name: str, instance: BlockInstance, places: list[Val]) -> None:
        """Ingress or egress: one graph, its tables joined and its loops folded."""
        entry = self._graph("control", name, instance, places)
        if entry is None:
            return
        share(entry, self.builder.storage, self.builder.diagnostics)
        entry = fold_loops(entry, self.builder.storage, instance.decl.decl.span)
        first = simplify(entry) or ir.Block(end=ir.Jump(None))
        self.builder.program.pipelines.append(
            ir.Pipeline(name, first, instance.decl.decl.span, instance.path)
        )

    def _deparser(self, instance: BlockInstance, places: list[Val]) -> None:
        """The headers to emit, in order: BMv2 knows no more of a deparser."""
        self.builder.program.deparser_span = instance.decl.decl.span
        entry = self._graph("deparser", "deparser", instance, places)
        if entry is None:
            return
        first = simplify(entry)
        emitted: dict[str, Span] = {}
        for block in reachable(first):
            for op in block.ops:
                if op.op != "emit":
                    self.builder.error(
                        "bad-deparser",
                        op.span,
                        "a deparser can do nothing but emit",
                        "compute it in egress or in the checksum control",
                    )
                else:
                    assert isinstance(op.args[0], ir.Name)
                    self.builder.program.deparser.append(op.args[0].name)
                    emitted.setdefault(op.args[0].name, op.span)
            if not isinstance(block.end, ir.Jump):
                span = getattr(block.end, "span", None) or instance.decl.decl.span
                self.builder.error(
                    "bad-deparser",
                    span,
                    "a deparser cannot branch",
                    "emit every header: those that are not valid are left out anyway",
                )
                return
        self._check_emitted(emitted)

    def _check_emitted(self, emitted: dict[str, Span]) -> None:
        """A header nothing ever makes valid is never sent."""
        blocks = [*self.builder.program.states]
        for pipeline in self.builder.program.pipelines:
            for block in reachable(pipeline.entry):
                blocks += [block, *reachable(block.inner)]
        for action in self.builder.program.actions:
            blocks += reachable(action.entry)
        made: set[str] = set()
        for block in blocks:
            for op in block.ops:
                if op.op in _MAKES_VALID and isinstance(op.args[0], ir.Name | ir.Element):
                    first = op.args[0]
                    made.add(first.name if isinstance(first, ir.Name) else first.stack)
        seen: set[str] = set()
        for name, span in emitted.items():
            stem = name.partition("[")[0]
            owners = {name, stem, name.rpartition(".")[0], stem.partition(".")[0]}
            if not owners & made and stem not in seen:
                seen.add(stem)
                self.builder.diagnostics.warning(
                    "never-valid",
                    span,
                    f"header '{stem}' is emitted, but nothing makes it valid",
                    "extract it in the parser, or call setValid() where it is filled in",
                )

    def _checksums(self, name: str, instance: BlockInstance, places: list[Val]) -> None:
        """A checksum control: its calls are noted by the externs, nothing may be left over."""
        entry = self._graph("checksum", name, instance, places)
        if entry is None:
            return
        for block in reachable(simplify(entry)):
            for op in block.ops:
                self.builder.error(
                    "bad-checksum",
                    op.span,
                    "only checksum calls can stand here",
                    "compute it in ingress or egress",
                )
                return


def decl_span(type_: t.Struct) -> Span:
    """Where a struct is declared."""
    assert type_.decl is not None
    return type_.decl.span


def lower(program: c.Program, diagnostics: Diagnostics) -> tuple[ir.Program, Instances]:
    """Lower a checked program."""
    lowered = ir.Program()
    instances = Instances(lowered, diagnostics)
    instances.top_level = program.instances
    storage = Storage(lowered, diagnostics)
    builder = Builder(lowered, storage, instances, program, diagnostics)
    expressions = Expressions(builder)
    externs = Externs(builder, expressions)
    statements = expressions.statements = Statements(builder, expressions, externs)
    tables = statements.tables = Tables(builder, expressions, statements)
    blocks = statements.blocks = Parsers(builder, expressions, externs, statements, tables)
    switch = Switch(builder, externs, statements, blocks)
    if program.main is not None:
        try:
            switch.run(program.main)
        except LoweringError:
            diagnostics.check()
    return lowered, instances
