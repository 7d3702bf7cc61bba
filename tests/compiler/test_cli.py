"""`closlab p4c`: flags, exit codes, files."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from compiler.cli import main

from .programs import STAGES

ROUTER = str(STAGES / "router.p4")
ROOT = Path(__file__).resolve().parents[2]


def test_the_flags_a_makefile_for_p4c_uses(tmp_path: Path) -> None:
    out, info = tmp_path / "x.json", tmp_path / "x.p4info.txt"
    assert (
        main(
            [
                "--p4v",
                "16",
                "--std",
                "p4-16",
                "--target",
                "bmv2",
                "--arch",
                "v1model",
                "--emit-externs",
                "--Wdisable=unused",
                "-I",
                str(tmp_path),
                "-DX=1",
                "-U",
                "X",
                "--p4runtime-files",
                f"{info},{tmp_path / 'x.bin'}",
                "-o",
                str(out),
                ROUTER,
            ]
        )
        == 0
    )
    assert json.loads(out.read_text())["program"] == ROUTER
    assert "RouterIngress.routes" in info.read_text()
    assert (tmp_path / "x.bin").stat().st_size > 100


def test_errors_give_exit_code_1_and_write_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "bad.p4"
    source.write_text("const bit<8> x = ;\n")
    out = tmp_path / "bad.json"
    assert main([str(source), "-o", str(out)]) == 1
    assert "bad.p4:1:18: error[syntax]" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["--nonsense", ROUTER],
        ["-o"],
        [ROUTER, ROUTER],
        [ROUTER, "--std", "14"],
        [ROUTER, "--arch", "psa"],
        [ROUTER, "--dump", "nothing"],
        [ROUTER, "--p4runtime-files", "x.unknown"],
    ],
)
def test_a_bad_command_gives_exit_code_2(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    assert "usage: closlab p4c" in capsys.readouterr().err


def test_a_missing_program_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no/such/program.p4"]) == 1
    assert "no/such/program.p4 cannot be read" in capsys.readouterr().err


def test_an_output_that_cannot_be_written_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([ROUTER, "-o", str(tmp_path / "no" / "x.json")]) == 1
    assert "cannot write" in capsys.readouterr().err


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert main(["--help"]) == 0
    assert "--p4runtime-files" in capsys.readouterr().out


def test_warnings_can_be_errors_or_silent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "x.p4"
    source.write_text(
        (STAGES / "small.p4")
        .read_text()
        .replace("std.egress_spec = 1;", "std.egress_spec = 1; bit<8> unused;")
    )
    assert main([str(source)]) == 0
    assert "warning[unused]" in capsys.readouterr().err
    assert main([str(source), "--Werror"]) == 1
    capsys.readouterr()
    assert main([str(source), "--Wdisable=unused", "--Werror"]) == 0
    assert main([str(source), "--Wdisable"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "stage", ["preprocess", "tokens", "syntax", "types", "lower", "json", "p4info"]
)
def test_dump_prints_every_stage(stage: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([ROUTER, "--dump", stage]) == 0
    assert "routes" in capsys.readouterr().out


def test_preprocess_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([ROUTER, "-E"]) == 0
    assert "(bit<16>)4" in capsys.readouterr().out


def test_python_dash_m_compiler() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "compiler", "--version"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0
    assert "closlab p4c" in done.stdout
