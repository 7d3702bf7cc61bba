"""What a command does not need it does not import: the slow ones are half a second each."""

import ast
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from bench import bgp, start, switches, whole
from lab import cli

ROOT = Path(__file__).parents[2]
SLOW = (
    *("scapy", "grpc", "finsy", "rich", "mininet.net", "compiler"),
    *("views.report", "switch.codegen", "lab.scenario.model"),
)
# What a simulated run has no use for until its time begins, and mostly never.
LATER = (
    *("scapy", "mininet.net", "compiler", "starlette", "uvicorn", "prometheus_client"),
    *("views.report", "views.live.server", "lab.engines.mininet.engine", "lab.claims", "course"),
    *("switch.bmv2", "switch.read", "switch.codegen", "switch.translation", "switch.stf"),
    *("networkx", "matplotlib"),
)


@pytest.mark.by_day(4)
@pytest.mark.parametrize(
    ("module", "may"),
    [
        ("lab.cli", ()),
        ("lab.scenario.catalogue", ("lab.scenario.model",)),
        ("views.report", ("views.report", "lab.scenario.model")),
        ("lab.engines.sim.engine", ("grpc", "finsy", "rich", "lab.scenario.model")),
        ("lab.commands.run", ()),  # whose words a shell asks for
        ("lab.commands.list", ()),
        ("lab.commands.execution", ("grpc", "finsy", "rich", "lab.scenario.model")),
    ],
)
def test_nothing_slow_is_imported_in_vain(module: str, may: tuple[str, ...]) -> None:
    code = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {name for name in SLOW if name in done.stdout.split()} <= {*may}


def test_help_tells_what_commands_say_of_themselves_and_reads_no_metadata() -> None:
    code = "import sys, lab.cli; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "importlib.metadata" not in done.stdout.split()
    for name in cli.COMMANDS:
        tree = ast.parse((ROOT / "lab" / "commands" / f"{cli._file_of(name)}.py").read_text())
        functions = (node for node in tree.body if isinstance(node, ast.FunctionDef))
        said = next(node for node in functions if node.name in ("command", "main"))
        assert cli._title(name) == ast.get_docstring(said)


def test_a_simulated_run_begins_without_what_it_has_no_use_for(tmp_path: Path) -> None:
    code = start.CASES["run"].code
    telling = code.replace("os._exit(0)", "(print(*sys.modules, flush=True), os._exit(0))")
    assert telling != code
    for _ in range(2):  # the first may have to translate the program
        done = subprocess.run(
            [sys.executable, "-c", telling, str(tmp_path)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
    assert "lab.engines.sim.engine" in done.stdout.split()
    assert [name for name in LATER if name in done.stdout.split()] == []


def test_what_the_benchmark_times_ends_where_a_run_begins(tmp_path: Path) -> None:
    """Switches have their program, and nothing is simulated yet."""
    command = [sys.executable, "-c", start.CASES["run"].code, str(tmp_path)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    assert (tmp_path / "fabric.json").is_file()
    assert not (tmp_path / "result.json").exists()


def test_a_whole_run_is_told_phase_by_phase(capfd: pytest.CaptureFixture[str]) -> None:
    assert whole.main(["--k", "4"]) == 0
    *phases, last = capfd.readouterr().out.splitlines()
    assert [line[:34].strip() for line in phases[:1] + phases[-3:]] == [
        *("scenario, schedule", "Simulating", "proved, put together, written", "report")
    ]
    memory = [int(line.split()[-2]) for line in phases]
    assert memory == sorted(memory) and last.startswith("all")


@pytest.mark.parametrize("benchmark", [bgp, start, switches])
def test_a_benchmark_refuses_a_case_that_it_does_not_have(
    benchmark: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        benchmark.main(["everything"])
    assert refused.value.code == 2
    errors = capsys.readouterr().err
    assert f"none is called 'everything'; there are {next(iter(named(benchmark)))}, " in errors


def named(benchmark: ModuleType) -> list[str]:
    return [getattr(case, "name", case) for case in benchmark.CASES]
