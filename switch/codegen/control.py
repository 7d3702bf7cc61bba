"""Controls: the graph of tables and branches as labels and jumps, most of which fall through.

A jump back is a loop of the program. The turns of all loops that a packet takes in a stage, those
within actions too, are counted together, and one that takes more than it may is dropped: a switch
must go on whatever its program does.
"""

from __future__ import annotations

from .. import bmv2
from ..bmv2 import ActionCall, Conditional, Pipeline, Table
from ..place import JsonError
from .action import jumps_back, trace_text, turn
from .expression import Exprs
from .names import Names, spoken
from .unit import Unit


class ControlWriter:
    """Writes the function of one pipeline."""

    def __init__(self, unit: Unit, pipeline: Pipeline) -> None:
        self.unit = unit
        self.pipeline = pipeline
        self.order = topological(pipeline)
        scope = Names()
        self.labels = {name: scope.new(f"node_{name}") for name in self.order}
        self.wanted: set[str] = set()
        self.position = {name: i for i, name in enumerate(self.order)}
        self.here = 0

    def emit(self) -> str:
        """The whole control."""
        blocks: list[tuple[str, list[str]]] = []
        for i, name in enumerate(self.order):
            following = self.order[i + 1] if i + 1 < len(self.order) else None
            self.here = i
            blocks.append((name, self.node(name, following)))
        lines = []
        for name, body in blocks:
            if name in self.wanted:
                lines.append(f"{self.labels[name]}:")
            lines += [f"    {s}" for s in body]
        function = self.pipeline.name
        variables = self.unit.declared(function)
        done = ["done:"] if any("goto done;" in s for s in lines) else []
        return "\n".join(
            [
                f"SW_INLINE void control_{function}(struct sw_run *r, struct phv *h)",
                "{",
                *variables,
                f'    SW_TRACE(r, "{function}");',
                *lines,
                *done,
                "    (void)h;",
                "}",
            ]
        )

    def go(self, name: str | None, following: str | None) -> list[str]:
        """Jump to a node, unless it comes next anyway."""
        if name == following:
            return []
        if name is None:
            return ["goto done;"]
        self.wanted.add(name)
        if self.position[name] <= self.here:
            return [turn("goto done;", f"goto {self.labels[name]};")]
        return [f"goto {self.labels[name]};"]

    def node(self, name: str, following: str | None) -> list[str]:
        """The code of a node."""
        node = self.pipeline.nodes[name]
        if isinstance(node, bmv2.Conditional):
            return self.conditional(node, following)
        if isinstance(node, bmv2.ActionCall):
            return self.call(node, following)
        return self.table(node, following)

    def conditional(self, node: Conditional, following: str | None) -> list[str]:
        """A branch."""
        try:
            condition = Exprs(self.unit).boolean(node.condition)
        except JsonError as error:
            raise JsonError(f"conditional {node.name!r}: {error}") from None
        said = trace_text(node.source) or spoken(f"if {node.name}")
        trace = f'SW_TRACE(r, "  {said}: %s", {condition} ? "true" : "false");'
        if node.true_next == following:
            away = self.go(node.false_next, following)
            test = f"if (!{condition})"
        else:
            away = self.go(node.true_next, following)
            test = (
                f"if {condition}"
                if condition.startswith("(") and whole(condition)
                else f"if ({condition})"
            )
        lines = [trace]
        if away:
            lines += [test, f"    {away[0]}"]
        if node.true_next != following:
            lines += self.go(node.false_next, following)
        return lines

    def call(self, node: ActionCall, following: str | None) -> list[str]:
        """An action called without a table."""
        lines = [f"{self.unit.call(f'do_{self.unit.actions[node.action]}')};"]
        if exits(self.unit, node.action):
            lines += ["if (r->pkt->exited)", "    goto done;"]
        return lines + self.go(node.next_node, following)

    def table(self, node: Table, following: str | None) -> list[str]:
        """A table, and where its outcome leads."""
        call = self.unit.call(f"apply_{self.unit.tables[node.name]}")
        can_exit = any(exits(self.unit, a) for a in node.runnable)
        leave = ["if (r->pkt->exited)", "    goto done;"] if can_exit else []
        if "__HIT__" in node.next_tables or "__MISS__" in node.next_tables:
            hit, miss = node.next_tables.get("__HIT__"), node.next_tables.get("__MISS__")
            if hit == miss:
                return [f"{call};", *leave, *self.go(hit, following)]
            return self.two_ways(call, leave, hit, miss, following)
        actions = [
            a for a in node.runnable if self.unit.program.actions[a].name in node.next_tables
        ]
        exits_to = {a: node.next_tables[self.unit.program.actions[a].name] for a in actions}
        targets = set(exits_to.values())
        if node.profile is not None:
            targets.add(node.base_default_next)
        if len(targets) <= 1:
            target = next(iter(targets), node.base_default_next)
            looks = "if (SW_TRACES) " if self.is_idle(node) else ""
            return [f"{looks}{call};", *leave, *self.go(target, following)]
        return self.many_ways(node, call, leave, exits_to, following)

    def is_idle(self, node: Table) -> bool:
        """Whether looking something up there changes nothing, so that it need not be done."""
        measures = node.with_counters or node.direct_meter is not None or node.support_timeout
        acts = any(self.unit.program.actions[a].body for a in node.runnable)
        return not measures and not acts and node.profile is None

    def two_ways(
        self, call: str, leave: list[str], hit: str | None, miss: str | None, following: str | None
    ) -> list[str]:
        """Go by hit or miss."""
        if leave:
            lines = [f"r->hit = {call};", *leave]
            call = "r->hit"
        else:
            lines = []
        if hit == following:
            return [*lines, f"if (!{call})", f"    {self.go(miss, following)[0]}"]
        lines += [f"if ({call})", f"    {self.go(hit, following)[0]}"]
        return lines + self.go(miss, following)

    def many_ways(
        self,
        node: Table,
        call: str,
        leave: list[str],
        exits_to: dict[int, str | None],
        following: str | None,
    ) -> list[str]:
        """Go by the action that ran."""
        lines = []
        if leave:
            lines += [f"r->ran = {call};", *leave]
            call = "r->ran"
        lines.append(f"switch ({call}) {{")
        for action, target in exits_to.items():
            lines.append(f"case ACTION_{self.unit.actions[action]}:")
            lines += [f"    {s}" for s in self.go(target, following) or ["break;"]]
        lines.append("default:")
        lines += [f"    {s}" for s in self.go(node.base_default_next, following) or ["break;"]]
        lines.append("}")
        return lines


def whole(condition: str) -> bool:
    """Whether the first parenthesis closes at the end."""
    depth = 0
    for i, char in enumerate(condition):
        depth += (char == "(") - (char == ")")
        if depth == 0:
            return i == len(condition) - 1
    return False


def exits(unit: Unit, action: int) -> bool:
    """Whether an action may end the control."""
    found = unit.program.actions[action]
    return any(p.op == "exit" for p in found.body) or jumps_back(found)


def topological(pipeline: Pipeline) -> list[str]:
    """Nodes in an order in which control only goes forward, loops aside; true branches first."""
    if pipeline.init is None:
        return []
    done: set[str] = set()
    order: list[str] = []
    work: list[tuple[str, list[str]]] = []

    def enter(name: str) -> None:
        following = [s for s in bmv2.successors(pipeline.nodes[name]) if s is not None]
        work.append((name, list(dict.fromkeys(following))))
        done.add(name)

    enter(pipeline.init)
    while work:
        name, left = work[-1]
        # The last successor is visited first, so that the first one ends up next to its branch.
        while left and left[-1] in done:
            left.pop()
        if left:
            enter(left.pop())
        else:
            order.append(name)
            work.pop()
    return order[::-1]
