"""Lowering: what the graph looks like, and that structure does not change meaning."""

import random
from pathlib import Path

import pytest

from compiler import ir
from compiler import types as t
from compiler.lower.graph import reachable, simplify
from compiler.lower.parsers import range_masks
from compiler.source import NOWHERE

from .programs import bench, compile_text


def lowered(folder: Path, apply: str, locals_: str = "", top: str = "") -> ir.Program:
    program = compile_text(folder, bench(apply, locals_, top), "lower").ir
    assert program is not None
    return program


def ops(block: ir.Block | None) -> list[str]:
    return [op.op for b in reachable(block) for op in b.ops]


def test_straight_line_code_stays_in_one_block(tmp_path: Path) -> None:
    program = lowered(
        tmp_path,
        """
        bit<32> n;
        r.read(n, 0);
        n = n + 1;
        r.write(0, n);""",
        "register<bit<32>>(1) r;",
    )
    assert len(reachable(program.pipelines[0].entry)) == 1
    assert ops(program.pipelines[0].entry) == ["register_read", "assign", "register_write"]


def test_an_argument_is_passed_by_reference_where_that_cannot_be_told(tmp_path: Path) -> None:
    program = lowered(tmp_path, "bump(hdr.data.d);", "", "void bump(inout bit<8> x) { x = x + 1; }")
    (op,) = program.pipelines[0].entry.ops
    assert op.args[0] == ir.FieldRef(op.args[0].type, "data", "d")


def test_overlapping_arguments_are_copied(tmp_path: Path) -> None:
    program = lowered(
        tmp_path,
        "both(hdr.data.d, hdr.data.d);",
        "",
        "void both(inout bit<8> x, inout bit<8> y) { x = 1; y = 2; }",
    )
    assert ops(program.pipelines[0].entry) == ["assign"] * 6


def test_a_constant_condition_leaves_no_branch(tmp_path: Path) -> None:
    program = lowered(tmp_path, "if (1 == 1) { hdr.data.d = 1; } else { hdr.data.d = 2; }")
    (block,) = reachable(program.pipelines[0].entry)
    assert [op.args[1] for op in block.ops] == [ir.Lit(block.ops[0].args[0].type, 1)]


def test_a_table_behind_a_false_condition_is_gone(tmp_path: Path) -> None:
    program = lowered(
        tmp_path,
        "if (false) { t.apply(); }",
        "action a() {} table t { actions = { a; } default_action = a(); }",
    )
    assert program.tables == []


def test_a_loop_without_tables_is_one_block(tmp_path: Path) -> None:
    program = lowered(tmp_path, "for (bit<8> i in 1 .. 9) { hdr.data.d = hdr.data.d + i; }")
    blocks = reachable(program.pipelines[0].entry)
    assert [b.inner is not None for b in blocks].count(True) == 1
    assert all(isinstance(b.end, ir.Jump) for b in blocks)


def test_exit_in_a_loop_leaves_by_another_way(tmp_path: Path) -> None:
    program = lowered(
        tmp_path,
        """
        for (bit<8> i in 1 .. 9) {
            if (i == hdr.data.e) { exit; }
        }
        hdr.data.d = 1;""",
    )
    blocks = reachable(program.pipelines[0].entry)
    assert any(isinstance(b.end, ir.Branch) for b in blocks)


def test_scalars_get_names_of_their_own(tmp_path: Path) -> None:
    program = lowered(
        tmp_path, "{ bit<8> x = 1; hdr.data.d = x; } { bit<8> x = 2; hdr.data.e = x; }"
    )
    assert [name for name, _, _ in program.scalars] == ["x", "x_0"]


def test_metadata_keep_the_names_the_control_plane_may_know(tmp_path: Path) -> None:
    text = bench("meta.port = 1;").replace(
        '#include "include/data.p4"',
        '#define OWN_METADATA\nstruct metadata { bit<9> port; }\n#include "include/data.p4"',
    )
    program = compile_text(tmp_path, text, "lower").ir
    assert program is not None
    assert program.scalars[0][0] == "metadata.port"


def test_range_masks_cover_exactly_the_range() -> None:
    for low, high in ((0, 0), (0, 255), (3, 9), (1, 254), (128, 255), (100, 100), (7, 8)):
        masks = range_masks(low, high, 8)
        covered = {x for x in range(256) for value, mask in masks if x & mask == value}
        assert covered == set(range(low, high + 1))


def test_range_masks_are_few() -> None:
    assert range_masks(0, 0xFFFF, 16) == [(0, 0)]
    assert len(range_masks(1, 0xFFFE, 16)) == 30


def drawn_graph(seed: int) -> tuple[ir.Block, int]:
    """Blocks of which half do nothing, each leading to later ones; and how many there are."""
    rng = random.Random(seed)
    blocks = [ir.Block() for _ in range(rng.randint(2, 9))]
    for number, block in enumerate(blocks):
        if rng.random() < 0.5:
            block.ops.append(ir.Operation(f"do{number}", (), NOWHERE))
        one, other = (rng.choice([*blocks[number + 1 :][:3], None]) for _ in range(2))
        condition = ir.Lit(t.BOOL, number)  # which one it is; the walk decides
        block.end = rng.choice([ir.Jump(one), ir.Branch(condition, one, other, NOWHERE)])
    return blocks[0], len(blocks)


def walk(block: ir.Block | None, chosen: int, *, is_simple: bool) -> list[str]:
    """What is done along the way that the bits of a number choose.

    BMv2 has tables and conditions: of a block that is neither, nothing is left to lead on.
    """
    done = []
    while block is not None:
        done += [op.op for op in block.ops]
        if isinstance(block.end, ir.Branch):
            assert isinstance(block.end.condition, ir.Lit)
            bit = chosen >> block.end.condition.value & 1
            block = block.end.yes if bit else block.end.no
        else:
            assert isinstance(block.end, ir.Jump)
            block = None if is_simple and not block.ops else block.end.target
    return done


@pytest.mark.parametrize("seed", range(0, 2000, 500))
def test_a_simple_graph_does_what_the_drawn_one_does(seed: int) -> None:
    for each in range(seed, seed + 500):
        entry, size = drawn_graph(each)
        chosen = {random.Random(each + n).getrandbits(size) for n in range(8)}
        before = {bits: walk(entry, bits, is_simple=False) for bits in chosen}
        first = simplify(entry)
        assert {bits: walk(first, bits, is_simple=True) for bits in chosen} == before, each
