"""Speed, in CPU time: a long program must compile in seconds, ours in less than one."""

import time
from pathlib import Path

import pytest

from compiler import compile_program
from lab.machine.speed import processor_slowness

from .programs import bench, compile_text

pytestmark = pytest.mark.clock

ROOT = Path(__file__).resolve().parents[2]


def test_the_fabric_program_compiles_in_a_second() -> None:
    start = time.process_time()
    compiled = compile_program(ROOT / "p4src" / "fabric.p4")
    assert compiled.json_text
    assert compiled.p4info.tables
    assert time.process_time() - start < 1.0 * processor_slowness()


def test_three_thousand_lines_in_four_seconds(tmp_path: Path) -> None:
    tables = "\n".join(
        f"""
    action set_{i}(bit<8> v) {{
        hdr.data.d = hdr.data.d + v;
        if (hdr.data.a > {i}) {{
            hdr.data.b = hdr.data.b ^ (bit<32>)v;
        }}
    }}
    table t_{i} {{
        key = {{
            hdr.data.a : exact;
            hdr.data.c : exact;
        }}
        actions = {{
            set_{i};
            NoAction;
        }}
        default_action = NoAction();
        size = 64;
    }}"""
        for i in range(150)
    )
    apply = "\n".join(
        f"        if (hdr.data.e != {i}) {{\n            t_{i}.apply();\n        }}"
        for i in range(150)
    )
    text = bench(apply, tables)
    assert text.count("\n") > 3000
    start = time.process_time()
    compiled = compile_text(tmp_path, text)
    assert compiled.json_text
    assert time.process_time() - start < 4.0 * processor_slowness()
