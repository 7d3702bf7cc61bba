"""From BMv2 JSON to a `Program`: names resolved, sizes checked, every complaint with its place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from files import parse_json

from . import bmv2
from .layout import KEY_WORDS_MAX, WORD, key_layout
from .place import At, JsonError

ERROR_BITS = 32  # of standard_metadata.parser_error


def read_program(source: bytes | str | dict[str, Any]) -> bmv2.Program:
    """Read and check a program."""
    if isinstance(source, dict):
        return _Reader(At(source, "$")).program()
    try:
        root = parse_json(source)
    except ValueError as error:
        raise JsonError(f"not JSON: {error}") from None
    return _Reader(At(root, "$")).program()


def error_number(at: At) -> int:
    """An error's number, of as many bits as the field that holds it."""
    number = at.number()
    if not 0 <= number < 1 << ERROR_BITS:
        raise at.fail(f"an error's number has {ERROR_BITS} bits, this is {number}")
    return number


class _Reader:
    """Builds a `Program`; each method reads one section of the JSON."""

    def __init__(self, root: At) -> None:
        self.root = root
        self.headers: dict[str, bmv2.Header] = {}
        self.stacks: dict[str, bmv2.Stack] = {}
        self.unions: dict[str, bmv2.Union] = {}
        self.union_stacks: dict[str, bmv2.UnionStack] = {}
        self.registers: dict[str, bmv2.Register] = {}
        self.value_sets: dict[str, bmv2.ValueSet] = {}
        self.counters: dict[str, bmv2.Counter] = {}
        self.meters: dict[str, bmv2.Meter] = {}
        self.calculations: dict[str, bmv2.Calculation] = {}
        self.actions: tuple[bmv2.Action, ...] = ()
        self.action_index: dict[int, int] = {}
        self.profiles: dict[str, bmv2.Profile] = {}

    def section(self, name: str) -> Iterator[At]:
        """A top-level list; absent is empty."""
        at = self.root.get(name)
        return iter(()) if at.is_null else at.items()

    def program(self) -> bmv2.Program:
        self.check_version()
        self.load_headers()
        self.load_externs()
        errors = {a.text(): error_number(b) for a, b in (e.pair() for e in self.section("errors"))}
        self.actions = tuple(self.action(at) for at in self.section("actions"))
        self.action_index = {a.id: i for i, a in enumerate(self.actions)}
        pipelines = {p.name: p for p in (self.pipeline(at) for at in self.section("pipelines"))}
        for name in ("ingress", "egress"):
            if name not in pipelines:
                raise self.root.get("pipelines").fail(f"there is no pipeline named {name!r}")
        lists = (self.field_list(at) for at in self.section("field_lists"))
        return bmv2.Program(
            headers=self.headers,
            stacks=self.stacks,
            unions=self.unions,
            union_stacks=self.union_stacks,
            errors=errors,
            parser=self.only("parsers", self.parser),
            deparser=self.only("deparsers", self.deparser),
            value_sets=self.value_sets,
            counters=self.counters,
            meters=self.meters,
            registers=self.registers,
            calculations=self.calculations,
            checksums=tuple(self.checksum(at) for at in self.section("checksums")),
            field_lists={f.id: f for f in lists},
            digests=tuple(self.field_list(at) for at in self.section("learn_lists")),
            actions=self.actions,
            profiles=self.profiles,
            pipelines=pipelines,
            aliases=dict(self.alias(at) for at in self.section("field_aliases")),
            action_index=self.action_index,
        )

    def only(self, section: str, load: Any) -> Any:
        """The one element of a section."""
        found = list(self.section(section))
        if len(found) != 1:
            raise self.root.get(section).fail(f"expected one element, found {len(found)}")
        return load(found[0])

    def check_version(self) -> None:
        meta = self.root.get("__meta__")
        if meta.is_null:
            return
        version = list(meta.get("version", [2, 0]).items())
        if not version or version[0].number() != 2:
            raise meta["version"].fail("this switch reads version 2 of the format")

    # Headers

    def load_headers(self) -> None:
        types = {t.name: t for t in (self.header_type(at) for at in self.section("header_types"))}
        by_id: dict[int, bmv2.Header] = {}
        for at in self.section("headers"):
            type_name = at["header_type"].text()
            if type_name not in types:
                raise at["header_type"].fail(f"there is no header type {type_name!r}")
            name = at["name"].text()
            if name in self.headers:
                raise at["name"].fail(f"there are two headers named {name!r}")
            header = bmv2.Header(name, types[type_name], at.get("metadata", False).flag())
            if not header.is_metadata and header.type.fixed_bits % 8:
                raise at.fail(f"{header.type.fixed_bits} bits are not a whole number of bytes")
            self.headers[name] = by_id[at["id"].number()] = header
        for at in self.section("header_stacks"):
            names = tuple(by_id_or_fail(by_id, i).name for i in at["header_ids"].items())
            if not names:
                raise at["header_ids"].fail("a stack needs at least one header")
            stack = bmv2.Stack(at["name"].text(), self.headers[names[0]].type, names)
            self.stacks[stack.name] = stack
        self.load_unions(by_id)

    def load_unions(self, by_id: dict[int, bmv2.Header]) -> None:
        kinds = {
            at["name"].text(): [m.pair()[0].text() for m in at["headers"].items()]
            for at in self.section("header_union_types")
        }
        unions: dict[int, bmv2.Union] = {}
        for at in self.section("header_unions"):
            kind = at["union_type"].text()
            ids = list(at["header_ids"].items())
            if kind not in kinds or len(ids) != len(kinds[kind]):
                raise at.fail(f"it does not have the members of union type {kind!r}")
            members = zip(kinds[kind], (by_id_or_fail(by_id, i).name for i in ids), strict=True)
            union = bmv2.Union(at["name"].text(), tuple(members))
            self.unions[union.name] = unions[at["id"].number()] = union
        for at in self.section("header_union_stacks"):
            names = tuple(by_id_or_fail(unions, i).name for i in at["header_union_ids"].items())
            if not names:
                raise at["header_union_ids"].fail("a stack needs at least one union")
            self.union_stacks[at["name"].text()] = bmv2.UnionStack(at["name"].text(), names)

    def header_type(self, at: At) -> bmv2.HeaderType:
        raw = [list(f.items()) for f in at["fields"].items()]
        if any(len(parts) not in (2, 3) for parts in raw):
            raise at["fields"].fail("a field is [name, width] or [name, width, is signed]")
        fixed = sum(f[1].size() for f in raw if f[1].value != "*")
        fields = []
        for parts in raw:
            signed = len(parts) == 3 and bool(parts[2].value)  # a truth value, or 0 or 1
            if parts[1].value == "*":
                most = at["max_length"].size() * 8 - fixed
                fields.append(bmv2.Field(parts[0].text(), max(most, 0), signed, True))
            else:
                fields.append(bmv2.Field(parts[0].text(), parts[1].size(1), signed))
        if len({f.name for f in fields}) != len(fields):
            raise at["fields"].fail("two fields have the same name")
        if sum(f.is_varbit for f in fields) > 1:
            raise at["fields"].fail("a header can have one field of variable length")
        return bmv2.HeaderType(at["name"].text(), tuple(fields))

    # Externs

    def load_externs(self) -> None:
        for at in self.section("extern_instances"):
            raise at.fail(f"extern {at.get('type', '?').value!r} is not part of v1model")
        for at in self.section("register_arrays"):
            register = bmv2.Register(at["name"].text(), at["size"].size(), at["bitwidth"].size(1))
            self.registers[register.name] = register
        for at in self.section("parse_vsets"):
            value_set = bmv2.ValueSet(at["name"].text(), at["compressed_bitwidth"].size(1))
            self.value_sets[value_set.name] = value_set
        for at in self.section("counter_arrays"):
            counter = bmv2.Counter(at["name"].text(), at.get("size", 0).size(), self.binding(at))
            self.counters[counter.name] = counter
        for at in self.section("meter_arrays"):
            meter = self.meter(at)
            self.meters[meter.name] = meter
        for at in self.section("calculations"):
            inputs = tuple(self.calc_input(i) for i in at["input"].items())
            calculation = bmv2.Calculation(at["name"].text(), at["algo"].text(), inputs)
            self.check_algo(at["algo"])
            self.calculations[calculation.name] = calculation

    def check_algo(self, at: At) -> None:
        if at.text() not in bmv2.HASHES:
            raise at.fail(
                f"hash {at.text()!r} is not known; known are {', '.join(sorted(bmv2.HASHES))}"
            )

    def binding(self, at: At) -> str | None:
        is_direct = at.get("is_direct", False).flag()
        return at["binding"].text() if is_direct else None

    def meter(self, at: At) -> bmv2.Meter:
        kind = at["type"].text()
        if kind not in ("bytes", "packets"):
            raise at["type"].fail(f"expected bytes or packets, found {kind!r}")
        direct = self.binding(at)
        target = at.get("result_target")
        return bmv2.Meter(
            name=at["name"].text(),
            size=at.get("size", 0).size(),
            rates=at.get("rate_count", 2).size(),
            counts_bytes=kind == "bytes",
            binding=direct,
            result=self.field_ref(target) if direct and not target.is_null else None,
        )

    def calc_input(self, at: At) -> bmv2.CalcInput:
        kind = at["type"].text()
        if kind == "payload":
            return bmv2.CalcInput(None)
        expr = self.expr(at)
        if isinstance(expr, bmv2.Const):
            width = at["bitwidth"].size(1)
            return bmv2.CalcInput(bmv2.Const(expr.value & ((1 << width) - 1)), width)
        if isinstance(expr, bmv2.FieldRef):
            return bmv2.CalcInput(expr, self.width_of(expr))
        if isinstance(expr, bmv2.HeaderRef):
            return bmv2.CalcInput(expr)
        raise at.fail(f"a calculation cannot take a {kind!r}")

    def checksum(self, at: At) -> bmv2.Checksum:
        name = at["calculation"].text()
        if name not in self.calculations:
            raise at["calculation"].fail(f"there is no calculation {name!r}")
        condition = at.get("if_cond")
        return bmv2.Checksum(
            name=at["name"].text(),
            target=self.field_ref(at["target"]),
            calculation=name,
            update=at.get("update", True).flag(),
            verify=at.get("verify", True).flag(),
            condition=None if condition.is_null else self.expr(condition),
        )

    def field_list(self, at: At) -> bmv2.FieldList:
        fields = tuple(self.expr(e) for e in at["elements"].items())
        return bmv2.FieldList(at["id"].number(), at["name"].text(), fields)

    def alias(self, at: At) -> tuple[str, bmv2.FieldRef]:
        name, target = at.pair()
        return name.text(), self.field_ref(target)

    # Expressions

    def field_ref(self, at: At) -> bmv2.FieldRef:
        header_at, field_at = at.pair()
        header, name = header_at.text(), field_at.text()
        if header not in self.headers:
            raise header_at.fail(f"there is no header {header!r}")
        if name != bmv2.VALID_FIELD and self.headers[header].field(name) is None:
            raise field_at.fail(f"header {header!r} has no field {name!r}")
        return bmv2.FieldRef(header, name)

    def width_of(self, ref: bmv2.FieldRef) -> int:
        found = self.headers[ref.header].field(ref.field)
        return found.width if found else 1

    def named(self, at: At, among: dict[str, Any], what: str) -> str:
        name = at.text()
        if name not in among:
            raise at.fail(f"there is no {what} {name!r}")
        return name

    def expr(self, at: At) -> bmv2.Expr:  # noqa: PLR0912 - one branch per kind of value
        kind, value = at["type"].text(), at["value"]
        match kind:
            case "field":
                return self.field_ref(value)
            case "hexstr":
                return bmv2.Const(value.hex())
            case "bool":
                return bmv2.BoolConst(value.flag())
            case "string":
                return bmv2.StringConst(value.text())
            case "header":
                return bmv2.HeaderRef(self.named(value, self.headers, "header"))
            case "header_stack":
                if isinstance(value.value, str) and value.value in self.union_stacks:
                    return bmv2.UnionStackRef(value.text())
                return bmv2.StackRef(self.named(value, self.stacks, "header stack"))
            case "header_union":
                return bmv2.UnionRef(self.named(value, self.unions, "header union"))
            case "header_union_stack":
                return bmv2.UnionStackRef(
                    self.named(value, self.union_stacks, "header union stack")
                )
            case "stack_field":
                return self.stack_field(value)
            case "union_stack_field":
                return self.union_stack_field(value)
            case "local" | "runtime_data":
                return bmv2.Param(value.size())
            case "lookahead":
                offset, width = value.pair()
                return bmv2.Lookahead(offset.size(), width.size(1))
            case "register":
                name, index = value.pair()
                cell = self.named(name, self.registers, "register array")
                return bmv2.RegisterCell(cell, self.expr(index))
            case "parameters_vector" | "field_list":
                if kind == "parameters_vector" and value.value == {}:
                    return bmv2.Vector(())  # p4c writes an empty one so
                return bmv2.Vector(tuple(self.expr(item) for item in value.items()))
            case "expression":
                return self.operation(value)
            case "calculation" | "register_array" | "counter_array" | "meter_array":
                return self.object_ref(kind, value)
        raise at["type"].fail(f"values of type {kind!r} are not known")

    def object_ref(self, kind: str, at: At) -> bmv2.ObjectRef:
        among: dict[str, dict[str, Any]] = {
            "calculation": self.calculations,
            "register_array": self.registers,
            "counter_array": self.counters,
            "meter_array": self.meters,
        }
        return bmv2.ObjectRef(kind, self.named(at, among[kind], kind.replace("_", " ")))

    def stack_field(self, at: At) -> bmv2.StackField:
        stack_at, field_at = at.pair()
        stack = self.stacks[self.named(stack_at, self.stacks, "header stack")]
        if all(f.name != field_at.text() for f in stack.type.fields):
            raise field_at.fail(f"the headers of stack {stack.name!r} have no such field")
        return bmv2.StackField(stack.name, field_at.text())

    def union_stack_field(self, at: At) -> bmv2.UnionStackField:
        parts = list(at.items())
        if len(parts) != 3:
            raise at.fail("expected a union stack, a member and a field")
        stack = self.union_stacks[self.named(parts[0], self.union_stacks, "header union stack")]
        members = dict(self.unions[stack.unions[0]].members)
        header = self.headers[members[self.named(parts[1], members, "union member")]]
        if header.field(parts[2].text()) is None:
            raise parts[2].fail(f"member {parts[1].text()!r} has no such field")
        return bmv2.UnionStackField(stack.name, parts[1].text(), parts[2].text())

    def operation(self, at: At) -> bmv2.Expr:
        members = at.members()
        if "op" not in members:
            return self.expr(at)  # compilers wrap an expression in another now and then
        op = at["op"].text()
        if op not in bmv2.UNARY_OPS and op not in bmv2.BINARY_OPS and op != "?":
            raise at["op"].fail(f"operation {op!r} is not known")
        left_at, right_at = at.get("left"), at.get("right")
        left = None if left_at.is_null else self.expr(left_at)
        if op in ("access_field", "access_union_header"):
            return bmv2.Op(op, left, bmv2.Const(right_at.size()))
        right = None if right_at.is_null else self.expr(right_at)
        if right is None or (op in bmv2.BINARY_OPS and left is None and op not in ("+", "-")):
            raise at.fail(f"operation {op!r} lacks an operand")
        if op == "?":
            return bmv2.Op(op, left, right, self.expr(at["cond"]))
        if left is None and op in ("+", "-"):
            left = bmv2.Const(0)
        return bmv2.Op(op, left, right)

    # Code

    def primitive(self, at: At) -> bmv2.Primitive:
        args = tuple(self.expr(a) for a in at["parameters"].items())
        return bmv2.Primitive(at["op"].text(), args, self.source(at.get("source_info")), at.path)

    def source(self, at: At) -> bmv2.Source | None:
        if at.is_null:
            return None
        text = at.get("source_fragment", "").text()
        return bmv2.Source(at.get("filename", "").text(), at.get("line", 0).number(), text)

    def action(self, at: At) -> bmv2.Action:
        params = tuple(
            bmv2.ActionParam(p["name"].text(), p["bitwidth"].size(1))
            for p in at["runtime_data"].items()
        )
        body = tuple(self.primitive(p) for p in at["primitives"].items())
        action = bmv2.Action(at["id"].number(), at["name"].text(), params, body)
        for primitive in body:
            for arg in primitive.args:
                if any(p.index >= len(params) for p in bmv2.params_in(arg)):
                    raise JsonError(f"{primitive.path}: the action has {len(params)} parameters")
        return action

    def parser(self, at: At) -> bmv2.Parser:
        states = tuple(self.parse_state(s) for s in at["parse_states"].items())
        names = {s.name for s in states}
        init = at.get("init_state")
        for state_at, state in zip(at["parse_states"].items(), states, strict=True):
            for transition in state.transitions:
                if transition.next_state is not None and transition.next_state not in names:
                    raise state_at.fail(f"there is no state {transition.next_state!r}")
        if not init.is_null and init.text() not in names:
            raise init.fail(f"there is no state {init.text()!r}")
        return bmv2.Parser(at["name"].text(), None if init.is_null else init.text(), states)

    def parse_state(self, at: At) -> bmv2.ParseState:
        return bmv2.ParseState(
            name=at["name"].text(),
            ops=tuple(self.parser_op(o) for o in at["parser_ops"].items()),
            key=tuple(self.expr(k) for k in at.get("transition_key", []).items()),
            transitions=tuple(self.transition(t) for t in at["transitions"].items()),
        )

    def parser_op(self, at: At) -> bmv2.ParserOp:
        op = at["op"].text()
        args = list(at["parameters"].items())
        if op in ("extract", "extract_VL"):
            return self.extract(at, op, args)
        if op == "primitive":
            if len(args) != 1:
                raise at["parameters"].fail("expected one primitive")
            return bmv2.ParserOp(op, (), at.path, primitive=self.primitive(args[0]))
        counts = {"set": 2, "verify": 2, "advance": 1, "shift": 1}
        if op not in counts:
            raise at["op"].fail(f"parser operation {op!r} is not known")
        if len(args) != counts[op]:
            raise at["parameters"].fail(f"{op!r} takes {counts[op]}, found {len(args)}")
        if op == "shift":
            return bmv2.ParserOp("advance", (bmv2.Const(args[0].size() * 8),), at.path)
        return bmv2.ParserOp(op, tuple(self.expr(a) for a in args), at.path)

    def extract(self, at: At, op: str, args: list[At]) -> bmv2.ParserOp:
        if len(args) != (1 if op == "extract" else 2):
            raise at["parameters"].fail(f"wrong number of parameters for {op!r}")
        kind, value = args[0]["type"].text(), args[0]["value"]
        member = ""
        target: bmv2.Expr
        match kind:
            case "regular":
                target = bmv2.HeaderRef(self.named(value, self.headers, "header"))
            case "stack":
                target = bmv2.StackRef(self.named(value, self.stacks, "header stack"))
            case "union_stack":
                stack, member_at = value.pair()
                target = bmv2.UnionStackRef(
                    self.named(stack, self.union_stacks, "header union stack")
                )
                member = member_at.text()
            case _:
                raise args[0]["type"].fail(f"cannot extract to a {kind!r}")
        rest = tuple(self.expr(a) for a in args[1:])
        return bmv2.ParserOp(op, (target, *rest), at.path, member)

    def transition(self, at: At) -> bmv2.Transition:
        next_at = at["next_state"]
        next_state = None if next_at.is_null else next_at.text()
        value = at.get("value")
        kind = at.get("type", "default" if value.value == "default" else "hexstr").text()
        mask_at = at.get("mask")
        mask = None if mask_at.is_null else mask_at.hex()
        match kind:
            case "default":
                return bmv2.Transition(None, None, None, next_state, True)
            case "hexstr":
                return bmv2.Transition(value.hex(), mask, None, next_state)
            case "parse_vset":
                name = self.named(value, self.value_sets, "value set")
                return bmv2.Transition(None, mask, name, next_state)
        raise at["type"].fail(f"transition {kind!r} is not known")

    def deparser(self, at: At) -> bmv2.Deparser:
        order = tuple(self.named(h, self.headers, "header") for h in at["order"].items())
        primitives = tuple(self.primitive(p) for p in at.get("primitives", []).items())
        return bmv2.Deparser(at["name"].text(), order, primitives)

    # Pipelines

    def pipeline(self, at: At) -> bmv2.Pipeline:
        for profile_at in at.get("action_profiles", []).items():
            profile = self.profile(profile_at)
            self.profiles[profile.name] = profile
        nodes: dict[str, bmv2.Table | bmv2.Conditional | bmv2.ActionCall] = {}
        for table_at in at["tables"].items():
            table = self.table(table_at)
            nodes[table.name] = table
        for cond_at in at.get("conditionals", []).items():
            conditional = bmv2.Conditional(
                cond_at["name"].text(),
                self.expr(cond_at["expression"]),
                self.node_name(cond_at["true_next"]),
                self.node_name(cond_at["false_next"]),
                self.source(cond_at.get("source_info")),
            )
            nodes[conditional.name] = conditional
        for call_at in at.get("action_calls", []).items():
            call = bmv2.ActionCall(
                call_at["name"].text(),
                self.action_at(call_at["action_id"]),
                self.node_name(call_at["next_node"]),
            )
            nodes[call.name] = call
        pipeline = bmv2.Pipeline(at["name"].text(), self.node_name(at["init_table"]), nodes)
        check_graph(at, pipeline)
        return pipeline

    def node_name(self, at: At) -> str | None:
        return None if at.is_null else at.text()

    def action_at(self, at: At) -> int:
        if at.number() not in self.action_index:
            raise at.fail(f"there is no action with id {at.number()}")
        return self.action_index[at.number()]

    def profile(self, at: At) -> bmv2.Profile:
        selector = at.get("selector")
        size = at.get("max_size", 1024).size()
        if selector.is_null:
            return bmv2.Profile(at["name"].text(), size, None, ())
        self.check_algo(selector["algo"])
        inputs = tuple(self.calc_input(i) for i in selector["input"].items())
        return bmv2.Profile(at["name"].text(), size, selector["algo"].text(), inputs)

    def table(self, at: At) -> bmv2.Table:
        keys = tuple(self.key(k) for k in at["key"].items())
        bits = WORD * key_layout([self.width_of(key.target) for key in keys]).words
        if bits > WORD * KEY_WORDS_MAX:
            most = WORD * KEY_WORDS_MAX
            raise at["key"].fail(
                f"the key takes {bits:,} bits; this switch matches at most {most:,}"
            )
        if "action_ids" in at.members():
            actions = tuple(self.action_at(a) for a in at["action_ids"].items())
        else:
            ids = {a.name: i for i, a in enumerate(self.actions)}
            actions = tuple(ids[self.named(a, ids, "action")] for a in at["actions"].items())
        kind = at.get("type", "simple").text()
        profile = (
            None if kind == "simple" else at.get("action_profile", at.value.get("act_prof_name"))
        )
        meter = at.get("direct_meters")
        entries = at.get("entries")
        default = at.get("default_entry")
        next_tables = at["next_tables"]
        return bmv2.Table(
            name=at["name"].text(),
            match=self.match_type(at["match_type"]),
            keys=keys,
            actions=actions,
            size=at.get("max_size", 1024).size(),
            with_counters=at.get("with_counters", False).flag(),
            support_timeout=at.get("support_timeout", False).flag(),
            direct_meter=None if meter.is_null else self.named(meter, self.meters, "meter array"),
            profile=None if profile is None else self.named(profile, self.profiles, "profile"),
            next_tables={k: self.node_name(next_tables[k]) for k in next_tables.members()},
            base_default_next=self.node_name(at.get("base_default_next")),
            default=None if default.is_null else self.default(default),
            entries=None
            if entries.is_null
            else tuple(self.const_entry(e, keys) for e in entries.items()),
        )

    def match_type(self, at: At) -> str:
        kind = at.text()
        if kind == "optional":
            return "ternary"
        if kind not in ("exact", "lpm", "ternary", "range", "valid"):
            raise at.fail(f"match type {kind!r} is not known")
        return "exact" if kind == "valid" else kind

    def key(self, at: At) -> bmv2.Key:
        target_at = at["target"]
        if at["match_type"].text() == "valid":
            header_at = target_at.pair()[0] if isinstance(target_at.value, list) else target_at
            target = bmv2.FieldRef(self.named(header_at, self.headers, "header"), bmv2.VALID_FIELD)
        else:
            target = self.field_ref(target_at)
        mask = at.get("mask")
        name = at.get("name", f"{target.header}.{target.field}")
        return bmv2.Key(
            name.text() if not name.is_null else f"{target.header}.{target.field}",
            self.match_type(at["match_type"]),
            target,
            None if mask.is_null else mask.hex(),
        )

    def default(self, at: At) -> bmv2.Default:
        action = self.action_at(at["action_id"])
        is_const = at.get("action_const", False).flag()
        return bmv2.Default(action, self.action_data(at.get("action_data", []), action), is_const)

    def action_data(self, at: At, action: int) -> tuple[int, ...]:
        data = tuple(d.hex() for d in at.items())
        params = self.actions[action].params
        if len(data) != len(params):
            name = self.actions[action].name
            raise at.fail(f"action {name!r} takes {len(params)} arguments, found {len(data)}")
        return tuple(d & ((1 << p.width) - 1) for d, p in zip(data, params, strict=True))

    def const_entry(self, at: At, keys: tuple[bmv2.Key, ...]) -> bmv2.ConstEntry:
        matches = list(at["match_key"].items())
        if len(matches) != len(keys):
            raise at["match_key"].fail(f"the table has {len(keys)} keys, found {len(matches)}")
        action_at = at["action_entry"]
        action = self.action_at(action_at["action_id"])
        return bmv2.ConstEntry(
            tuple(self.key_match(m, k) for m, k in zip(matches, keys, strict=True)),
            at.get("priority", 0).number(),
            action,
            self.action_data(action_at.get("action_data", []), action),
        )

    def key_match(self, at: At, key: bmv2.Key) -> bmv2.KeyMatch:
        width = self.width_of(key.target)
        full = (1 << width) - 1
        match key.match:
            case "lpm":
                return bmv2.KeyMatch(at["key"].hex() & full, at["prefix_length"].size())
            case "ternary":
                return bmv2.KeyMatch(at["key"].hex() & full, at["mask"].hex() & full)
            case "range":
                return bmv2.KeyMatch(at["start"].hex() & full, at["end"].hex() & full)
        if at["match_type"].text() == "valid":
            return bmv2.KeyMatch(int(at["key"].flag()), 1)
        return bmv2.KeyMatch(at["key"].hex() & full, full)


def by_id_or_fail(among: dict[int, Any], at: At) -> Any:
    """The object with an id."""
    if at.number() not in among:
        raise at.fail(f"there is nothing with id {at.number()}")
    return among[at.number()]


def check_graph(at: At, pipeline: bmv2.Pipeline) -> None:
    """Refuse edges to nowhere. Cycles are the program's loops."""
    work = [] if pipeline.init is None else [pipeline.init]
    seen = set(work)
    while work:
        name = work.pop()
        if name not in pipeline.nodes:
            raise at.fail(f"control goes to {name!r}, which is no table or conditional here")
        new = {n for n in bmv2.successors(pipeline.nodes[name]) if n is not None} - seen
        seen |= new
        work += sorted(new)
