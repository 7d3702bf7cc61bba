"""A run as it was kept: the files of its folder, read back."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, wraps
from itertools import islice, pairwise, starmap, takewhile
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from pydantic import ValidationError

from files import FileError, NoFileError, is_folder, parse_plain_json, read_text, shown
from lab.errors import LabError
from lab.results.energy import weighed
from lab.results.outcome import Note, Outcome, PauseNote, Stock
from lab.results.result import RESULT, SCHEMA, Result
from lab.results.run_folder import flow_rows, work_rows
from lab.scenario.experiment import Experiment
from params.data import Data
from topologies import Fabric, TopologyError
from traffic.collectives import TrafficError, complaint

Row = TypeVar("Row", bound=NamedTuple)
Found = TypeVar("Found")
_ROWS_AT_ONCE = 4096
_MAX_DIGITS, _BEYOND = 20, 1 << 62
_MAX_BYTES = 1 << 31
_DAMAGED = "It may be damaged or of another version of closlab: run the scenario again."


class KeptFlow(NamedTuple):
    """A message."""

    src: str
    dst: str
    bytes: int
    start_ns: int | None  # None: it never began
    fct_ns: int | None  # None: not all of it arrived
    slowdown: float | None  # against being alone; None also where times are a machine's
    step: int = 0
    what: str = ""  # the activity it belongs to


class KeptWork(NamedTuple):
    """What a host did for itself."""

    host: str
    start_ns: int
    end_ns: int
    step: int = 0
    what: str = ""


class KeptRun(Data):
    """A run's result, and what happened when."""

    folder: Path
    result: Result
    flows: tuple[KeptFlow, ...]
    work: tuple[KeptWork, ...]
    notes: tuple[Note, ...]
    stocks: tuple[Stock, ...] = ()
    pauses: tuple[PauseNote, ...] = ()

    @cached_property
    def fabric(self) -> Fabric:
        """The fabric it ran on."""
        return self.result.scenario.fabric()

    @cached_property
    def notes_of(self) -> dict[str, list[Note]]:
        """By direction of a link: its story."""
        found: dict[str, list[Note]] = {}
        for note in self.notes:
            found.setdefault(note.link, []).append(note)
        return found

    @cached_property
    def usual_interval_ns(self) -> int:
        """The time between two looks, as a rule."""
        moments = sorted({note.time_ns for note in self.notes})
        usual = sorted(after - before for before, after in pairwise(moments))
        return usual[len(usual) // 2] if usual else 0

    @cached_property
    def rates(self) -> dict[str, float]:
        """By direction of a link that carried anything: the bytes of a nanosecond at its rate."""
        return {
            use.name: use.bytes / (self.busy[use.name] * self.end_ns)
            for use in self.result.links
            if use.utilisation
        }

    @cached_property
    def busy(self) -> dict[str, float]:
        """By direction: in which share of the time it was in use, at the rate that it had. What
        a fault leaves of it from the first moment to the last is its rate."""
        left: dict[str, float] = {}
        for fault in self.result.scenario.faults:
            if fault.share and fault.link and not fault.at_ns and not fault.for_ns:
                link = next(each for each in self.fabric.links if each.name == fault.link)
                ways = {"up": link.up, "down": link.down}
                for way in [ways[fault.direction]] if fault.direction else link.directions:
                    left[way] = fault.share
        uses = ((use.name, use.utilisation / left.get(use.name, 1.0)) for use in self.result.links)
        return {name: min(1.0, share) for name, share in uses}

    def stood(self, direction: str) -> float:
        """What share of the run a direction stood still, by the class that did so longest."""
        pause = self.result.pfc.by_link.get(direction)
        return pause.longest_ns / self.end_ns if pause else 0.0

    @property
    def end_ns(self) -> int:
        """When it was over."""
        return max(1, self.result.duration_ns)


def once(look: Callable[[KeptRun], Found]) -> Callable[[KeptRun], Found]:
    """Have what is looked for in a run looked for once: it stays with the run."""

    @wraps(look)
    def looked(run: KeptRun) -> Found:
        known: dict[object, Any] = run.__dict__.setdefault("_looked", {})
        if look not in known:
            known[look] = look(run)
        return cast("Found", known[look])

    return looked


def unkept(experiment: Experiment, result: Result, outcome: Outcome) -> KeptRun:
    """A run as it would be read from its folder, if it had been kept in one."""
    has_flows = experiment.scenario.measures.flows
    return KeptRun(
        Path(),
        result,
        flows=tuple(starmap(KeptFlow, flow_rows(experiment, outcome))) if has_flows else (),
        work=tuple(starmap(KeptWork, work_rows(experiment, outcome))) if has_flows else (),
        notes=tuple(outcome.notes),
        stocks=tuple(outcome.stocks),
        pauses=tuple(outcome.pauses),
    )


def read_run(folder: Path) -> KeptRun:
    """Read a run's folder."""
    run = replace(
        read_result(folder),
        flows=tuple(_rows(folder / "flows.csv", KeptFlow)),
        work=tuple(_rows(folder / "work.csv", KeptWork)),
        notes=tuple(_rows(folder / "timeseries.csv", Note)),
        stocks=tuple(_rows(folder / "buffers.csv", Stock)),
        pauses=tuple(_rows(folder / "pauses.csv", PauseNote)),
    )
    links, hosts = _directions(run.fabric), {host.name for host in run.fabric.hosts}
    for file, known, named in (
        ("flows.csv", hosts, {end for flow in run.flows for end in (flow.src, flow.dst)}),
        ("work.csv", hosts, {work.host for work in run.work}),
        ("timeseries.csv", links, {note.link for note in run.notes}),
        ("buffers.csv", {*links, ""}, {stock.link for stock in run.stocks}),
        ("buffers.csv", _switches(run.fabric), {stock.switch for stock in run.stocks}),
        ("pauses.csv", links, {note.link for note in run.pauses}),
    ):
        _refuse_strangers(folder / file, named, known)
    return run


def _directions(fabric: Fabric) -> set[str]:
    return {name for link in fabric.links for name in link.directions}


def _switches(fabric: Fabric) -> set[str]:
    return {switch.name for switch in fabric.switches}


def _refuse_strangers(path: Path, named: Iterable[str], known: Iterable[str]) -> None:
    """Names that the fabric of a run does not have were never written by it."""
    strange = sorted({*named} - {*known})
    if strange:
        raise unreadable(path, f"there is no '{strange[0]}' in its fabric")


def _check_names(path: Path, result: Result) -> None:
    """Everything the result tells of is in the fabric it was seen on, and every link is there."""
    try:
        fabric = result.scenario.fabric()
    except TopologyError as error:
        raise unreadable(path, f"scenario.topology: {error}") from None
    links, switches = _directions(fabric), _switches(fabric)
    names = {use.name for use in result.links}
    _refuse_strangers(path, {*names, *result.pfc.by_link, *result.pfc.storms}, links)
    faults, scenario = result.scenario.faults, result.scenario
    hosts, cables = {host.name for host in fabric.hosts}, {link.name for link in fabric.links}
    _refuse_strangers(path, {each.link for each in faults if each.link}, cables)
    _refuse_strangers(path, {*scenario.link.slow, *scenario.loss.links}, cables)
    _refuse_strangers(path, {each.switch for each in faults if each.switch}, switches)
    tenants = {host for each in scenario.tenants.values() for host in each}
    _refuse_strangers(path, tenants | {each.host for each in faults if each.host}, hosts)
    _refuse_strangers(path, result.drops.by_switch, switches)
    if missing := sorted(links - names):
        raise unreadable(path, f"it does not tell of {missing[0]}")


def read_result(folder: Path) -> KeptRun:
    """Read its result only, without what happened when."""
    path = folder / RESULT
    content = read_json(path, SCHEMA)
    try:
        result = Result.model_validate(content)
    except LabError as error:
        raise unreadable(path, error.message) from None
    except TrafficError as error:
        raise unreadable(path, str(error)) from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise unreadable(path, f"{place}: {complaint(first)}") from None
    _check_names(path, result)
    if result.energy is None:  # kept before there was any
        result = weighed(result)
    return KeptRun(folder, result, (), (), ())


def read_json(path: Path, schema: str) -> dict[str, Any]:
    """What a file holds that says of itself what it is."""
    try:
        found = parse_plain_json(_text(path))
    except ValueError as error:
        raise unreadable(path, str(error)) from None
    if not isinstance(found, dict) or found.get("schema") != schema:
        raise unreadable(path, f"its schema is not {schema}")
    return found


def find_runs(folder: Path) -> list[Path]:
    """The folder itself if it holds a run, else those within that do, in their natural order."""
    if not is_folder(folder) or (folder / RESULT).exists():
        return [folder]
    return sorted((path.parent for path in folder.glob(f"*/{RESULT}")), key=_natural) or [folder]


def _natural(path: Path) -> tuple[int, str]:
    return (int(path.name) if path.name.isdigit() else 0, path.name)


def _text(path: Path) -> str:
    try:
        return read_text(path, _MAX_BYTES)
    except NoFileError:
        raise LabError(
            f"there is no run in {shown(path.parent)}: it has no {path.name}",
            "Name the folder of a run: the one its report lies in, as the run's last line told.",
        ) from None
    except FileError as error:
        raise LabError(str(error), _DAMAGED) from None


def unreadable(path: Path, why: str) -> LabError:
    """That a file is not what it should be."""
    return LabError(
        f"{shown(path)} cannot be read: {why}",
        _DAMAGED,
    )


def _rows(path: Path, kind: type[Row]) -> Iterator[Row]:
    """The lines of a file that a run need not have, by the names of its columns."""
    if not path.exists():
        return
    rows = _cells(path)
    head = next(rows, [])
    wanted = list(takewhile(lambda n: n in head or n not in kind._field_defaults, kind._fields))
    try:
        readers = _READERS | _OWN_READERS.get(kind.__name__, {})
        columns = [(head.index(name), readers.get(name, _whole)) for name in wanted]
    except ValueError as error:
        raise unreadable(path, f"its first line lacks a column: {error}") from None
    names: dict[str, str] = {}  # each kept once: there may be millions of lines
    number = 2
    while block := list(islice(rows, _ROWS_AT_ONCE)):
        try:
            yield from _understood(block, kind, columns, names)
        except (ValueError, IndexError):
            for at, row in enumerate(block, number):
                try:
                    [*_understood([row], kind, columns, names)]
                except (ValueError, IndexError):
                    said = f"line {at} is not understood: {shown(','.join(row))}"
                    raise unreadable(path, said) from None
            raise
        number += len(block)


def _cells(path: Path) -> Iterator[list[str]]:
    try:
        yield from csv.reader(_text(path).splitlines())
    except csv.Error as error:
        raise unreadable(path, str(error)) from None


def _understood(
    rows: Sequence[Sequence[str]],
    kind: type[Row],
    columns: Iterable[tuple[int, Callable[[str], Any]]],
    names: dict[str, str],
) -> list[Row]:
    """Lines, a column at a time: that is quicker than one after the other."""
    found: list[Iterable[Any]] = []
    for at, read in columns:
        cells = [row[at] for row in rows]
        found.append(map(names.setdefault, cells, cells) if read is str else map(read, cells))
    return list(starmap(kind, zip(*found, strict=True)))


def _whole(text: str) -> int:
    found = int(text) if len(text) < _MAX_DIGITS else _BEYOND
    if not 0 <= found < _BEYOND:
        raise ValueError("a number that nobody counted")
    return found


def _int_or_none(text: str) -> int | None:
    return _whole(text) if text else None


def _float_or_none(text: str) -> float | None:
    if not text:
        return None
    found = float(text)
    if not 0 <= found < _BEYOND:  # nor is it none at all
        raise ValueError("a number that nobody measured")
    return found


_READERS: dict[str, Callable[[str], Any]] = {
    "src": str,
    "dst": str,
    "host": str,
    "link": str,
    "switch": str,
    "what": str,
    "start_ns": _int_or_none,
    "fct_ns": _int_or_none,
    "slowdown": _float_or_none,
}
_OWN_READERS: dict[str, dict[str, Callable[[str], Any]]] = {"KeptWork": {"start_ns": _whole}}
