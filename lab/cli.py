"""The command line: ``closlab CMD``.

Commands are thin. Those that only pass their words on (``p4c``, ``switch``, ``stf``) are handled
before typer looks at them, because they take other tools' flags. What a command needs is imported
when it is called, so that ``closlab list`` does not wait for gRPC.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import sys
import textwrap
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from lab.errors import LabError, RunError

if TYPE_CHECKING:
    from lab.engines import RunOptions
    from lab.scenario import Scenario


class _Commands(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        """Run a command; typer would not say that it was interrupted."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise typer.Exit(_tell_interruption()) from None


def _tell_interruption() -> int:
    print("closlab: interrupted", file=sys.stderr)
    return 130


app = typer.Typer(
    cls=_Commands,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _tell_version(asked: bool) -> None:
    if asked:
        print(f"closlab {version('closlab')}")
        raise typer.Exit


@app.callback()
def closlab(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_tell_version, is_eager=True, help="Say which this is."),
    ] = False,
) -> None:
    """A lossless-Ethernet lab: a Clos of P4 switches under RoCEv2 traffic."""


Out = Annotated[Path | None, typer.Option("--out", help="Folder for the results.")]
Json = Annotated[bool, typer.Option("--json", help="Tell the result to a machine.")]
Seed = Annotated[int | None, typer.Option("--seed", help="Instead of the scenario's seed.")]


@app.command()
def demo(out: Out = None, seed: Seed = None) -> None:
    """Show what pauses do, and send through a real fabric."""
    from rich.console import Console

    from lab import tools
    from lab.demo import compare_pauses

    tools.require_compiler()
    tools.require_emulation()
    folder = _make_out(out, "demo")
    console = Console(stderr=True)
    changes = () if seed is None else (f"seed={seed}",)
    report = compare_pauses(folder, changes, console)
    console.print("\nThe same P4 on real namespaces and packets:", highlight=False)
    try:
        _run("hello", changes, None, folder / "hello", engine="mininet", prompt=False)
    finally:
        console.print(f"The incast, side by side: {report}", highlight=False, soft_wrap=True)


@app.command()
def run(
    scenario: Annotated[str, typer.Argument(help="A name from 'closlab list', or a .yaml file.")],
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a key.")
    ] = None,
    seed: Seed = None,
    out: Out = None,
    engine: Annotated[str, typer.Option("--engine", help="mininet or sim.")] = "mininet",
    switch: Annotated[
        str, typer.Option("--switch", help="soft (ours) or bmv2 (mininet).")
    ] = "soft",
    dilation: Annotated[
        int | None,
        typer.Option("--dilation", min=1, help="Slow time down so many times (mininet)."),
    ] = None,
    pcap: Annotated[bool, typer.Option("--pcap", help="Keep what crosses each link.")] = False,
    pcap_link: Annotated[
        list[str] | None,
        typer.Option("--pcap-link", metavar="LINK", help="Keep what crosses one."),
    ] = None,
    p4: Annotated[
        Path | None,
        typer.Option("--p4", metavar="DIR", help="Your own copy of p4src, instead of it."),
    ] = None,
    prompt: Annotated[
        bool, typer.Option("--cli", help="Stay at the mininet> prompt instead of measuring.")
    ] = False,
    is_json: Json = False,
) -> None:
    """Run a scenario. Ends with 0; 1: not everything arrived; 3: do not trust this run."""
    links = ["all"] if pcap else pcap_link or []
    _run(
        scenario,
        (*(changes or ()), *([f"measures.pcap=[{','.join(links)}]"] if links else [])),
        seed,
        out,
        engine=engine,
        switch=switch,
        prompt=prompt,
        is_json=is_json,
        dilation=dilation,
        p4=p4,
    )


@app.command()
def compare(
    folders: Annotated[list[Path], typer.Argument(help="Of runs, or of several runs.")],
    out: Out = None,
    is_json: Json = False,
) -> None:
    """Put runs side by side, in a table and a report."""
    from lab.compare import compare as compare_runs

    compare_runs(folders, lambda: _make_out(out, "compare"), is_json=is_json)


@app.command()
def report(
    folders: Annotated[list[Path], typer.Argument(help="Of runs, or of several runs.")],
) -> None:
    """Write the reports of runs anew."""
    from lab.report import find_runs, write_report

    for folder in folders:
        for found in find_runs(folder):
            print(write_report(found))


@app.command()
def draw(
    scenario: Annotated[str, typer.Argument(help="A name from 'closlab list', or a .yaml file.")],
    picture: Annotated[Path, typer.Argument(help="To write: .dot, or .png where Graphviz is.")],
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a key.")
    ] = None,
) -> None:
    """Draw a scenario's fabric, with the ports at the ends of each cable."""
    import topologies
    from lab.catalogue import load

    try:
        topologies.draw(load(scenario, tuple(changes or ())).topology.build(), picture)
    except topologies.TopologyError as error:
        raise RunError(str(error)) from None
    except OSError as error:
        raise RunError(f"{picture} cannot be written: {error.strerror}") from None


@app.command()
def sweep(
    scenario: Annotated[str, typer.Argument(help="A name from 'closlab list', or a .yaml file.")],
    vary: Annotated[
        list[str] | None,
        typer.Option("--vary", metavar="KEY=V,V", help="Values to try, or FIRST..LAST."),
    ] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a key.")
    ] = None,
    processes: Annotated[int | None, typer.Option("--processes", min=1)] = None,
    out: Out = None,
) -> None:
    """Simulate a scenario under several seeds or values."""
    from rich.console import Console

    from lab import tools
    from lab.sweep import sweep as run_sweep

    tools.require_compiler()
    folder = _make_out(out, f"sweep-{Path(scenario).stem}")
    console = Console(stderr=True)
    raise typer.Exit(run_sweep(scenario, changes or (), vary or (), folder, processes, console))


@app.command()
def agree(
    cases: Annotated[list[str] | None, typer.Argument(help="Parts of cases' titles.")] = None,
    dilation: Annotated[int | None, typer.Option("--dilation", min=1)] = None,
    seed: Seed = None,
    out: Out = None,
) -> None:
    """Compare the simulator with Mininet."""
    from rich.console import Console

    from lab import tools
    from lab.agree import agree as run_agree

    tools.require_compiler()
    tools.require_emulation()
    folder = _make_out(out, "agree")
    raise typer.Exit(run_agree(cases or (), folder, dilation, seed, Console(stderr=True)))


@app.command()
def claims(
    names: Annotated[list[str] | None, typer.Argument(help="Which; without, all.")] = None,
    processes: Annotated[int | None, typer.Option("--processes", min=1)] = None,
    out: Out = None,
    is_json: Json = False,
) -> None:
    """Put to the test what the field says about AI fabrics."""
    from rich.console import Console

    from lab import tools
    from lab.claims import claims as try_claims

    tools.require_compiler()
    folder = _make_out(out, "claims")
    console = Console(stderr=True)
    raise typer.Exit(try_claims(names or (), folder, processes, console, is_json=is_json))


@app.command("list")
def list_(
    names: Annotated[list[str] | None, typer.Argument(help="Tell all of these.")] = None,
    is_json: Json = False,
) -> None:
    """List the scenarios that ship; of those named, what to watch."""
    from lab import catalogue

    wanted = names or catalogue.names()
    abouts = {name: catalogue.load(name).about.strip() for name in wanted}
    if is_json:
        print(json.dumps([{"name": name, "about": about} for name, about in abouts.items()]))
        return
    if names:
        for name, about in abouts.items():
            told = textwrap.fill(about, 98, break_on_hyphens=False)
            print(f"{name}\n{textwrap.indent(told, '  ')}")
            print(f"\n  closlab run {name} --engine sim\n")
        return
    width = max(map(len, abouts))
    for name, about in abouts.items():
        print(f"{name:{width}} {about.partition('. ')[0].rstrip('.')}.")
    print("\ncloslab list NAME tells what to watch, and what to compare with.")


@app.command()
def explain(
    key: Annotated[str | None, typer.Argument(help="Such as pfc, pfc.enabled.")] = None,
) -> None:
    """Say what a scenario's keys mean."""
    from lab.explain import explain as text_for

    print(text_for(key))


@app.command(context_settings={"ignore_unknown_options": True})
def enter(
    node: Annotated[str | None, typer.Argument(help="A host or switch; else the capsule.")] = None,
    command: Annotated[list[str] | None, typer.Argument(help="Instead of a shell.")] = None,
    lab: Annotated[str | None, typer.Option("--lab", help="Which, if several run.")] = None,
) -> None:
    """Step inside the running lab, or run a command there."""
    from lab import running

    words = command or [os.environ.get("SHELL", "/bin/sh")]
    found = running.find(lab)
    argv = found.node_command(node, words) if node else found.enter_command(words)
    os.execvp(argv[0], argv)


@app.command()
def pcap(
    link: Annotated[str, typer.Argument(help="Such as leaf1-spine2.")],
    file: Annotated[
        Path | None, typer.Option("--out", help="Instead of LINK.pcap; - is standard output.")
    ] = None,
    packets: Annotated[
        int | None, typer.Option("--packets", min=1, help="Stop after so many.")
    ] = None,
    lab: Annotated[str | None, typer.Option("--lab", help="Which, if several run.")] = None,
) -> None:
    """Record what crosses a link of the running lab."""
    from lab import running

    found = running.find(lab)
    words = [found.link_interface(link), str(file or f"{link}.pcap"), str(packets or 0)]
    argv = found.enter_command([sys.executable, "-m", "lab.tap", *words])
    os.execvp(argv[0], argv)


@app.command()
def frames(
    kind: Annotated[str | None, typer.Argument(help="One of those listed without it.")] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="LAYER.FIELD=VALUE", help="Change it.")
    ] = None,
    interface: Annotated[
        str | None, typer.Option("--send", metavar="INTERFACE", help="Send it there.")
    ] = None,
    count: Annotated[int, typer.Option("--count", min=1, help="Send it so many times.")] = 1,
    file: Annotated[
        Path | None, typer.Option("--pcap", metavar="FILE", help="Show those of a capture.")
    ] = None,
    most: Annotated[int, typer.Option("--most", min=1, help="So many of a capture.")] = 10,
) -> None:
    """Show and dissect the packets of the fabric, or send one."""
    from rich.console import Console

    from lab import frames

    console = Console()
    if file is not None:
        frames.show_pcap(console, file, most)
    elif kind is None:
        frames.list_kinds(console)
    else:
        packet = frames.make(kind, changes or ())
        frames.show(console, bytes(packet), kind)
        if interface is not None:
            frames.send([packet] * count, interface)


@app.command(context_settings={"ignore_unknown_options": True})
def shell(
    switch: Annotated[str, typer.Argument(help="Such as leaf1.")],
    arguments: Annotated[list[str] | None, typer.Argument(help="For p4runtime-shell.")] = None,
    lab: Annotated[str | None, typer.Option("--lab", help="Which, if several run.")] = None,
) -> None:
    """Open p4runtime-shell on a switch of the running lab."""
    from lab import running
    from lab.shell import shell_command

    argv = shell_command(running.find(lab), switch, arguments or [])
    os.execvp(argv[0], argv)


@app.command(context_settings={"ignore_unknown_options": True})
def test(
    arguments: Annotated[list[str] | None, typer.Argument(help="For pytest.")] = None,
    slow: Annotated[bool, typer.Option("--slow", help="Only the long sweeps.")] = False,
    reference: Annotated[
        bool, typer.Option("--reference", help="Only those that ask p4c and BMv2.")
    ] = False,
) -> None:
    """Run the tests: without words in two turns, what a clock judges apart."""
    from lab.paths import ROOT
    from lab.processes import in_turn
    from lab.tools import require_reference

    if reference:
        require_reference()
    kind = f"{'' if slow else 'not '}slow and {'' if reference else 'not '}reference"
    pytest = [sys.executable, "-m", "pytest", "-m"]
    os.chdir(ROOT)
    if slow or reference or arguments:
        os.execv(sys.executable, [*pytest, kind, *(arguments or [])])
    # All processors for what only computes; then, one by one, what is held against a clock.
    clock = "(mininet or clock)"
    together = ["-n", str(len(os.sched_getaffinity(0))), "--dist", "loadfile"]
    turns = [[*pytest, f"{kind} and not {clock}", *together], [*pytest, f"{kind} and {clock}"]]
    raise typer.Exit(in_turn(turns))


# Listed for --help only: _passed_on sees their words first.
@app.command()
def p4c() -> None:
    """Compile P4_16, with p4c-bm2-ss's flags."""


@app.command()
def switch() -> None:
    """Run one switch, with simple_switch_grpc's flags."""


@app.command()
def stf() -> None:
    """Run a packet test: closlab stf PROG TEST.stf."""


@app.command()
def bench() -> None:
    """Measure: closlab bench [NAME]."""


@app.command()
def shims(
    folder: Annotated[Path, typer.Argument(help="Put it first in PATH.")],
) -> None:
    """Write programs named p4c, simple_switch_grpc..."""
    from switch.shims import write_shims

    for path in write_shims(folder):
        print(path)


def _passed_on(name: str) -> Callable[[list[str]], int] | None:
    """The function that takes a command's words as they are, if it is such a command."""
    match name:
        case "p4c":
            from compiler.cli import main as compile_main

            return compile_main
        case "switch":
            from switch.cli import main as switch_main

            return switch_main
        case "stf":
            from lab.stf import main as stf_main

            return stf_main
        case "bench":
            from lab.bench import main as bench_main

            return bench_main
        case _:
            return None


def _run(
    name: str,
    changes: tuple[str, ...],
    seed: int | None,
    out: Path | None,
    *,
    engine: str,
    prompt: bool,
    switch: str = "soft",
    is_json: bool = False,
    dilation: int | None = None,
    p4: Path | None = None,
) -> None:
    """Check everything that can be checked, then run."""
    from lab import catalogue, tools
    from lab.engines import ENGINES, SWITCHES, RunOptions
    from lab.program import source_in
    from lab.run import INTERRUPTED, KEPT
    from lab.scenario import in_vain

    for what, chosen_one, known in (("engine", engine, ENGINES), ("switch", switch, SWITCHES)):
        if chosen_one not in known:
            raise RunError(
                f"there is no {what} '{chosen_one}'", f"Choose one of {', '.join(known)}."
            )
    if engine == "sim" and switch != "soft":
        raise RunError(
            "the simulator's switches are our own", "Leave --switch out, or --engine sim."
        )
    if seed is not None:
        changes = (*changes, f"seed={seed}")
    chosen = catalogue.load(name, changes)
    source_in(p4)
    tools.require_compiler()
    if engine == "mininet":
        tools.require_emulation()
        if switch == "bmv2":
            tools.require_bmv2()
    elif prompt:
        raise RunError("the simulator has no prompt", "Leave --cli out, or the engine.")
    folder = _make_out(out, chosen.name)
    options = RunOptions(
        out=folder,
        engine=engine,
        switch=switch,
        prompt=prompt,
        is_json=is_json,
        dilation=dilation,
        p4=p4,
    )
    for file in KEPT:  # what an earlier run left there is no result of this one
        (folder / file).unlink(missing_ok=True)
    shutil.rmtree(folder / "pcaps", ignore_errors=True)
    for text in in_vain(chosen):
        print(f"closlab: {text}", file=sys.stderr)
    code = _simulate(chosen, options) if engine == "sim" else _run_in_capsule(chosen, options)
    if code == INTERRUPTED and not (folder / KEPT[0]).exists():
        print("closlab: interrupted before anything was measured: no result", file=sys.stderr)
        if out is None:
            shutil.rmtree(folder, ignore_errors=True)
    raise typer.Exit(code)


def _simulate(chosen: Scenario, options: RunOptions) -> int:
    from rich.console import Console

    from lab.run import INTERRUPTED, run_simulated

    try:
        return run_simulated(chosen, options, Console(stderr=True))
    except KeyboardInterrupt:
        return INTERRUPTED


def _run_in_capsule(chosen: Scenario, options: RunOptions) -> int:
    from lab.capsule import run_in_capsule
    from lab.running import Registration

    registration = Registration(chosen.name)

    def inside() -> int:
        from lab.run import run_emulated

        return run_emulated(chosen, options, registration)

    try:
        code = run_in_capsule(inside, registration.announce)
    finally:
        registration.withdraw()
    if code == 137:
        raise RunError("the run was killed; nothing of it is left behind")
    return code


def _make_out(out: Path | None, name: str) -> Path:
    """The run's folder; without a choice one of its own, made now so that no other run takes it."""
    try:
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            if not os.access(out, os.W_OK):
                raise PermissionError
            return out
        stamp = time.strftime("%Y%m%d-%H%M%S")
        for suffix in ("", *(f"-{number}" for number in range(2, 100))):
            own = Path("runs") / f"{name}-{stamp}{suffix}"
            try:
                own.mkdir(parents=True)
            except FileExistsError:
                continue
            atexit.register(_remove_if_empty, own, os.getpid())
            return own
    except OSError as error:
        raise RunError(
            f"the results cannot be written to {out or 'runs/'}: {error.strerror or 'not allowed'}",
            "Give a folder you may write to with --out DIR.",
        ) from None
    raise RunError("too many runs in the same second", "Give each its folder with --out DIR.")


def _remove_if_empty(folder: Path, owner: int) -> None:
    """A run that came to nothing leaves no folder."""
    if os.getpid() == owner:
        with suppress(OSError):
            folder.rmdir()


def main() -> None:
    """Run the command line."""
    try:
        handler = _passed_on(sys.argv[1]) if len(sys.argv) > 1 else None
        if handler is not None:
            sys.exit(handler(sys.argv[2:]))
        app(prog_name="closlab")
    except LabError as error:
        error.show()
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(_tell_interruption())
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
