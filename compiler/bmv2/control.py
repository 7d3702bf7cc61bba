"""Pipelines: tables, conditions and actions.

BMv2 runs a graph of tables and conditions. Straight-line code has to live in an action, and an
action in a table, so every block with operations becomes an action of its own in a table without
key that runs nothing else. Inside actions, branches become BMv2's jump primitives.
"""

from __future__ import annotations

from typing import Any

from compiler import ir
from compiler import types as t
from compiler.bmv2.expression import argument, expression, hex_text, target
from compiler.bmv2.position import Positions
from compiler.diagnostics import Diagnostics
from compiler.lower.graph import reachable, simplify, successors
from compiler.source import Span

_WRITES_FIRST = {
    "assign",
    "assign_VL",
    "register_read",
    "modify_field_rng_uniform",
    "modify_field_with_hash_based_offset",
}


class Controls:
    """Writes pipelines and collects the actions they need."""

    def __init__(
        self, program: ir.Program, positions: Positions, diagnostics: Diagnostics, stem: str
    ) -> None:
        self.program = program
        self.positions = positions
        self.diagnostics = diagnostics
        self.stem = "".join(ch if ch.isalnum() else "" for ch in stem) or "code"
        self.actions: list[dict[str, Any]] = []
        self.ids: dict[int, int] = {}
        self._tables = 0
        self._conditions = 0
        self._names: set[str] = set()
        for action in program.actions:
            self.ids[id(action)] = len(self.actions)
            self.actions.append(self._action(action))
        self._profiles: dict[str, dict[str, Any]] = {}

    # Actions

    def _action(self, action: ir.Action) -> dict[str, Any]:
        return {
            "name": action.name,
            "id": len(self.actions),
            "runtime_data": [
                {"name": name, "bitwidth": t.width_of(type_) or 1} for name, type_ in action.params
            ],
            "primitives": self._linear(simplify(action.entry)),
        }

    def _linear(self, entry: ir.Block | None) -> list[dict[str, Any]]:
        """An action's blocks in a row, with jumps where the row is left."""
        blocks = _layout(entry)
        starts: dict[int, int] = {}
        code: list[dict[str, Any]] = []
        jumps: list[tuple[dict[str, Any], ir.Block | None]] = []

        def jump(target: ir.Block | None, condition: ir.Value | None = None) -> None:
            op: dict[str, Any] = {"op": "_jump", "parameters": []}
            if condition is not None:
                op = {"op": "_jump_if_zero", "parameters": [argument(condition)]}
            jumps.append((op, target))
            code.append(op)

        for index, block in enumerate(blocks):
            following = blocks[index + 1] if index + 1 < len(blocks) else None
            starts[id(block)] = len(code)
            code += [self.primitive(op) for op in block.ops]
            end = block.end
            if isinstance(end, ir.Branch):
                jump(end.no, end.condition)
                if end.yes is not following:
                    jump(end.yes)
            elif isinstance(end, ir.Jump) and end.target is not following:
                jump(end.target)
        while code and code[-1]["op"] == "_jump" and jumps[-1][1] is None:
            code.pop()
            jumps.pop()
        for op, place in jumps:
            at = len(code) if place is None else starts[id(place)]
            op["parameters"].append({"type": "hexstr", "value": hex_text(at, 4)})
        return code

    def primitive(self, op: ir.Operation) -> dict[str, Any]:
        """One primitive call."""
        args = [argument(a) for a in op.args]
        if op.op in _WRITES_FIRST:
            args[0] = target(op.args[0])
        return {"op": op.op, "parameters": args, **self.positions.info(op.span)}

    # Pipelines

    def pipeline(self, pipeline: ir.Pipeline, index: int) -> dict[str, Any]:
        """One pipeline."""
        self._profiles = {}
        blocks = reachable(pipeline.entry)
        entries = {id(b): self._entry_name(b) for b in blocks}
        tables: list[dict[str, Any]] = []
        conditions: list[dict[str, Any]] = []
        for block in blocks:
            self._node(block, entries, tables, conditions)
        return {
            "name": pipeline.name,
            "id": index,
            **self.positions.info(pipeline.span),
            "init_table": entries[id(pipeline.entry)][0],
            "tables": tables,
            "action_profiles": list(self._profiles.values()),
            "conditionals": conditions,
        }

    def _unique(self, name: str) -> str:
        chosen, count = name, 0
        while chosen in self._names:
            chosen = f"{name}_{count}"
            count += 1
        self._names.add(chosen)
        return chosen

    def _entry_name(self, block: ir.Block) -> tuple[str | None, str | None]:
        """The node a block starts with, and the one its terminator is."""
        end_name: str | None = None
        if isinstance(block.end, ir.Apply):
            end_name = block.end.table.name
        elif isinstance(block.end, ir.Branch):
            self._conditions += 1
            end_name = f"node_{self._conditions + 1}"
        if block.ops or block.inner:
            line = self.positions.line(_place(block))
            return f"tbl_{self._unique(f'{self.stem}l{line}')}", end_name
        return end_name, end_name

    def _node(
        self,
        block: ir.Block,
        entries: dict[int, tuple[str | None, str | None]],
        tables: list[dict[str, Any]],
        conditions: list[dict[str, Any]],
    ) -> None:
        first, last = entries[id(block)]

        def name(target: ir.Block | None) -> str | None:
            return None if target is None else entries[id(target)][0]

        end = block.end
        if block.ops or block.inner:
            assert first is not None
            following = name(end.target) if isinstance(end, ir.Jump) else last
            tables.append(self._code_table(first, block, following))
        if isinstance(end, ir.Branch):
            conditions.append(
                {
                    "name": last,
                    "id": len(conditions),
                    **self.positions.info(end.span),
                    "expression": expression(end.condition),
                    "true_next": name(end.yes),
                    "false_next": name(end.no),
                }
            )
        elif isinstance(end, ir.Apply):
            tables.append(self._table(end, name))

    def _code_table(self, name: str, block: ir.Block, following: str | None) -> dict[str, Any]:
        action_name = name.removeprefix("tbl_")
        span = _place(block)
        code = self._linear(simplify(block.inner)) if block.inner else []
        code += [self.primitive(op) for op in block.ops]
        action = {
            "name": action_name,
            "id": len(self.actions),
            "runtime_data": [],
            "primitives": code,
        }
        self.actions.append(action)
        self._tables += 1
        return {
            "name": name,
            "id": self._tables - 1,
            **self.positions.info(span),
            "key": [],
            "match_type": "exact",
            "type": "simple",
            "max_size": 1024,
            "with_counters": False,
            "support_timeout": False,
            "direct_meters": None,
            "action_ids": [action["id"]],
            "actions": [action_name],
            "base_default_next": following,
            "next_tables": {action_name: following},
            "default_entry": {
                "action_id": action["id"],
                "action_const": True,
                "action_data": [],
                "action_entry_const": True,
            },
        }

    # Tables

    def _table(self, end: ir.Apply, name: Any) -> dict[str, Any]:
        table = end.table
        self._tables += 1
        made: dict[str, Any] = {
            "name": table.name,
            "id": self._tables - 1,
            **self.positions.info(table.span),
            "key": [self._key(k) for k in table.keys],
            "match_type": match_type(table),
            "type": "simple",
            "max_size": table.size,
            "with_counters": table.counter is not None,
            "support_timeout": table.timeout,
            "direct_meters": table.meter.name if table.meter is not None else None,
            "action_ids": [self.ids[id(a)] for a in table.actions],
            "actions": [a.name for a in table.actions],
        }
        self._implementation(table, made)
        self._next(end, name, made)
        if table.default is not None and table.implementation is None:
            index, data = table.default
            made["default_entry"] = {
                "action_id": self.ids[id(table.actions[index])],
                "action_const": table.default_const,
                "action_data": _action_data(table.actions[index], data),
                "action_entry_const": table.default_const,
            }
        elif (
            table.default is not None
            and table.core is not None
            and any(p.name == "default_action" for p in table.core.decl.properties)
        ):
            self.diagnostics.warning(
                "unsupported",
                table.span,
                f"BMv2 ignores the default action of '{table.name}', "
                "which has an action profile or selector",
                "set it from the control plane",
            )
        if table.entries is not None:
            made["entries"] = [self._entry(e, table, i) for i, e in enumerate(table.entries)]
        return made

    def _key(self, key: ir.Key) -> dict[str, Any]:
        assert isinstance(key.value, ir.FieldRef)
        kind = "ternary" if key.match == "optional" else key.match
        return {
            "match_type": kind,
            "name": key.name,
            "target": [key.value.header, key.value.name],
            "mask": None,
        }

    def _implementation(self, table: ir.Table, made: dict[str, Any]) -> None:
        profile = table.implementation
        if profile is None:
            return
        selector = profile.kind == "action_selector"
        made["type"] = "indirect_ws" if selector else "indirect"
        made["action_profile"] = profile.name
        if profile.name in self._profiles:
            return
        entry: dict[str, Any] = {
            "name": profile.name,
            "id": len(self._profiles),
            **self.positions.info(profile.span),
            "max_size": profile.args.get("size", 0),
        }
        if selector:
            entry["selector"] = {
                "algo": profile.args.get("algorithm", "crc16"),
                "input": [argument(v) for v in profile.selector],
            }
        self._profiles[profile.name] = entry

    def _next(self, end: ir.Apply, name: Any, made: dict[str, Any]) -> None:
        if end.by_hit:
            made["base_default_next"] = None
            made["next_tables"] = {"__HIT__": name(end.hit), "__MISS__": name(end.miss)}
            return
        following = name(end.after)
        by_action = {action: name(place) for action, place in end.by_action.items()}
        made["base_default_next"] = following
        made["next_tables"] = {a.name: by_action.get(a.name, following) for a in end.table.actions}

    def _entry(self, entry: ir.Entry, table: ir.Table, index: int) -> dict[str, Any]:
        keys: list[dict[str, Any]] = []
        for key, values in zip(table.keys, entry.keys, strict=False):
            size = (key.width + 7) // 8
            if key.match == "exact":
                keys.append({"match_type": "exact", "key": hex_text(values[0], size)})
            elif key.match == "lpm":
                keys.append(
                    {
                        "match_type": "lpm",
                        "key": hex_text(values[0], size),
                        "prefix_length": values[1],
                    }
                )
            elif key.match == "range":
                keys.append(
                    {
                        "match_type": "range",
                        "start": hex_text(values[0], size),
                        "end": hex_text(values[1], size),
                    }
                )
            else:
                keys.append(
                    {
                        "match_type": "ternary",
                        "key": hex_text(values[0], size),
                        "mask": hex_text(values[1], size),
                    }
                )
        priority = entry.priority if entry.priority is not None else index + 1
        return {
            **self.positions.info(entry.span),
            "match_key": keys,
            "action_entry": {
                "action_id": self.ids[id(table.actions[entry.action])],
                "action_data": _action_data(table.actions[entry.action], entry.data),
            },
            "priority": priority,
        }


def _place(block: ir.Block) -> Span | None:
    return block.ops[0].span if block.ops and not block.inner else block.span


def match_type(table: ir.Table) -> str:
    """The kind of a table, from the kinds of its keys."""
    kinds = {key.match for key in table.keys}
    if "range" in kinds:
        return "range"
    if kinds & {"ternary", "optional"}:
        return "ternary"
    return "lpm" if "lpm" in kinds else "exact"


def _action_data(action: ir.Action, values: tuple[int, ...]) -> list[str]:
    """An action's arguments as bits, for BMv2 ends on negative ones."""
    widths = [t.width_of(type_) or 1 for _, type_ in action.params]
    return [hex_text(v & (1 << w) - 1) for v, w in zip(values, widths, strict=True)]


def _layout(entry: ir.Block | None) -> list[ir.Block]:
    """An action's blocks in reverse postorder: each after those that lead to it, loops aside."""
    found: list[ir.Block] = []
    seen: set[int] = set()
    work: list[tuple[ir.Block | None, bool]] = [(entry, False)]
    while work:
        block, done = work.pop()
        if block is None:
            continue
        if done:
            found.append(block)
        elif id(block) not in seen:
            seen.add(id(block))
            work.append((block, True))
            work.extend((following, False) for following in successors(block))
    return found[::-1]
