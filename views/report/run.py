"""The report of one run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, permutations
from pathlib import Path

import yaml

from lab.errors import LabError
from lab.results.cautions import cautions
from lab.results.result import CAUSES, REPORT, Flows, Result
from lab.scenario import glossary
from lab.scenario.lists import lists_of
from lab.scenario.questions import Question
from params.quantity import duration, energy, percent, size, summed
from views.report import page, words
from views.report.again import KEPT_AS, command, made_from, needs_file
from views.report.climbing import the_rest
from views.report.differences import since_shipped
from views.report.figures import PICTURES
from views.report.kept import KeptRun, read_run
from views.report.moments import moments
from views.report.numbers import BY_KEY, FIGURES, Figure, times
from views.report.page import Panel
from views.report.paper import PORTRAIT
from views.report.plots import BINS, Limits
from views.report.suspects import circle, storming, victims
from views.report.topology import caption, parts
from views.report.traces import traces
from views.report.verdict import verdict

CLUSTER = "The cluster"
MESSAGES = "Messages and work"
QUEUES = "Queues, marks and drops"
PAUSES = "Pauses as they climb"
BUFFER = "A buffer and its thresholds"
COMPLETION_TIMES = "Completion times"
BALANCE = "Load balance"
AS_IT_SHIPS = "The scenario as it ships: "
UNMEASURED = "Not measured"
_FIRST = (  # what one looks at first
    "duration_ns",
    "gpu_utilisation",
    "drops.total",
    "pfc.xoff_frames",
    "flows.slowdown.max",
    "collective.busbw_gbps",
    "roce.retransmitted_packets",
    "ecn.marked_packets",
    "flows.slowdown.p50",
)
_MAX_FIRST = 6
_HEAD = 140.0  # of paper: a page's title, the frame of its story, and the figures below
_MAX_LINKS = 512  # whose figures are told
_MAX_LISTS, _MAX_OPEN = 512, 16  # that are told, and that are not folded


def write_report(folder: Path) -> Path:
    """Write a run's report into its folder."""
    return write_and_tell(folder)[0]


def write_and_tell(folder: Path) -> tuple[Path, str]:
    """The same; where it is, and what it begins with."""
    run = read_run(folder)
    path = folder / REPORT
    if path.is_fifo():  # who writes to one waits for a reader
        raise LabError(f"{path} is a pipe, and the report is to be written there", "Remove it.")
    sentence = verdict(run)
    text = page.document(f"{run.result.scenario.name} · closlab", _body(run, sentence))
    path.write_text(text)
    return path, sentence


def _body(run: KeptRun, sentence: str) -> Iterator[str]:
    result, scenario = run.result, run.result.scenario
    yield page.heading(1, scenario.name)
    changes = since_shipped(run)
    what, _, more = " ".join(scenario.about.split()).partition(". ")
    about = f"{AS_IT_SHIPS if changes else ''}{what.rstrip('.')}." if what else ""
    here = f"Here with {changes}." if scenario.about and changes else ""
    yield from (page.paragraph(said, "about") for said in (about, here) if said)
    doubts = list(cautions(result))
    suspicious = not result.fidelity.ok or result.ended or doubts or result.flows.failed
    if scenario.question:
        yield page.paragraph(scenario.question.words, "question")
    kind = "story verdict warning" if suspicious else "story verdict"
    yield page.paragraph(page.undivided(sentence), kind)
    yield from (page.paragraph(doubt, "story warning") for doubt in doubts)
    if result.skipped:
        yield page.paragraph(result.skipped.text, "about")
    yield page.tiles((figure.name, figure.text(result)) for figure in _first(result))
    if (run.folder / CAUSES).exists():
        from views.report import why  # which few runs have asked

        yield from why.sections(run.folder)
    shown = panels(run, Limits.of([run]))
    above = _HEAD + PORTRAIT.text(sentence, 1.2, inset=24)
    above += summed(PORTRAIT.text(said) for said in (about, here, *doubts) if said)
    shown_first, others = _arranged(run, [panel for panel in shown if panel.drawing or panel.parts])
    yield page.grid(shown_first, 2, "two")
    above += max((panel.high(PORTRAIT) for panel in shown_first), default=0.0)
    yield page.columns(others, above)
    yield page.script(shown)
    yield page.folded("All that the figures say", page.listing(words.sentences(run)))
    if more:
        yield page.folded("What the scenario is to show", page.paragraph(more))
    yield from (
        page.paragraph(f"{panel.title}: {panel.instead}", "about")
        for panel in shown
        if not panel.drawing and panel.instead.startswith(UNMEASURED)
    )
    yield page.heading(2, "All figures")
    apply = [figure for figure in FIGURES if figure.of(result) is not None]
    yield page.halves(("figure", "value"), [(figure.name, figure.text(result)) for figure in apply])
    if result.control:
        yield page.heading(2, "Routing")
        yield from (page.paragraph(said, "about") for said in result.control.sentences())
    if result.parts:
        yield page.heading(2, "The parts of the traffic")
        yield _parts_table(result.parts)
    yield from _segment_lists(run)
    if every_trace := traces(run):
        yield page.folded("Every message, work and pause", page.traces(every_trace))
    is_whole = len(result.links) <= _MAX_LINKS
    yield page.folded(
        "Every link" if is_whole else f"The {_MAX_LINKS} busiest links", links_table(run)
    )
    yield page.folded("The scenario", scenario_text(run))
    yield meanings()
    yield footer({scenario.name: run})


def _arranged(run: KeptRun, shown: Sequence[Panel]) -> tuple[Sequence[Panel], Sequence[Panel]]:
    """The fabric and what answers the question, side by side; and the rest."""
    titles = {panel.title: panel for panel in shown}
    wanted = [titles[title] for title in _answering(run) if title in titles]
    first = [*shown[:1], *(panel for panel in (*wanted, *shown[1:]) if panel is not shown[0])][:2]
    if run.result.cluster:  # of which the fabric tells least
        first.reverse()
    return first, [panel for panel in shown if all(panel is not each for each in first)]


def _answering(run: KeptRun) -> Sequence[str]:
    """The titles of panels that answer what is asked, the best first."""
    result = run.result
    if circle(run) or storming(run) or victims(run):
        return PAUSES, MESSAGES
    if result.cluster:
        return (CLUSTER,)
    match result.scenario.question:
        case Question.BALANCE:
            return BALANCE, MESSAGES
        case Question.LOSSLESS:
            return (QUEUES,) if result.drops.total else (BUFFER, QUEUES)
        case Question.COSTS if result.drops.total or result.scenario.link.slow:
            return QUEUES, MESSAGES
    return MESSAGES, PAUSES


def _first(result: Result) -> list[Figure]:
    """The few figures that matter; that nothing was dropped always does."""
    keys = list(_FIRST)
    if result.scenario.question is Question.SPEED:  # a narrow screen has the first three
        keys.sort(key=lambda key: key != "collective.busbw_gbps")
    if result.cluster:
        keys[:0] = ["cluster.queued_ns.max", "cluster.slowdown.max"]
    found = [BY_KEY[key] for key in keys if BY_KEY[key].of(result) or key == "drops.total"]
    return found[:_MAX_FIRST]


def panels(run: KeptRun, limits: Limits) -> list[Panel]:
    """What there is to see of a run, in the order of looking."""
    drawn = {name: draw(run, limits) for name, (_, draw) in PICTURES.items()}
    fabric = drawn["fabric"]
    unfolded, first = parts(run)
    return [
        Panel(
            "The fabric",
            fabric,
            caption(run.fabric),
            moments=moments(run, fabric) if fabric else "",
        ),
        Panel(
            CLUSTER,
            drawn["cluster"],
            "A row a host, a box for each time that a job had it; below, how many jobs waited.",
        ),
        Panel(
            MESSAGES,
            drawn["messages"],
            "A row a host, a box a message from when it was posted until its last byte had "
            "arrived, to whom, and how many times as long as alone; rest on one to read more.",
            instead=_instead(run, "flows"),
        ),
        Panel(
            "The fabric, part by part",
            None,
            "A row a switch, a cell a link: above what goes up, below what goes down, and a bar as "
            "long as the share of the run it stood still. A name unfolds its part.",
            parts=unfolded,
            first=first,
        ),
        Panel(
            QUEUES,
            drawn["queues"],
            "The longest queues of data, named after the link they wait for; below, packets marked "
            f"and dropped at the same time scale, each bar a {BINS}th of it.",
            instead=_instead(run, "series"),
        ),
        Panel(
            PAUSES,
            drawn["pauses"],
            "Who stood still and when (a pause storm, if it spreads), a row for each direction, "
            "below the one whose pause led to it; XOFF and XON are 802.1Qbb's. A packet that would "
            "lift what a port holds beyond XOFF has its sender stopped.",
            instead="No direction stood still.",
            more=the_rest(run, limits.end_ns),
        ),
        Panel(
            BUFFER,
            drawn["buffer"],
            "Of the switch that held most: what is shared, the headroom for what comes after XOFF, "
            "and the fullest queue of each class, with the threshold that sinks as others fill up.",
            instead="No buffer was filled to speak of.",
        ),
        Panel(
            COMPLETION_TIMES,
            drawn["completion"],
            "The share of messages that were complete within a time.",
            instead=_instead(run, "flows"),
        ),
        Panel(
            "Slowdowns by size",
            drawn["slowdowns"],
            "How many times as long as alone messages took; a point is a tenth of them, from the "
            "smallest to the largest.",
        ),
        Panel(
            BALANCE,
            drawn["balance"],
            "How each switch shared what it sent up; the lines between bars are even shares.",
        ),
        Panel("Drops", drawn["drops"], instead="No packet was dropped."),
        Panel(
            "Telemetry by hop",
            drawn["telemetry"],
            "Of packets that carried telemetry half stayed no longer than the bar, 99 % no longer "
            "than the line, and none longer than the dot; so with the queues they saw.",
            instead=_instead(run, "telemetry", is_wanted=bool(run.result.scenario.telemetry.share)),
        ),
    ]


def _instead(run: KeptRun, measure: str, *, is_wanted: bool = True) -> str:
    """Why there is nothing to draw."""
    if is_wanted and not getattr(run.result.scenario.measures, measure):
        return f"{UNMEASURED}, for measures.{measure} is false."
    if measure == "series" and run.result.switch == "bmv2":
        return f"{UNMEASURED}: BMv2 does not tell how its queues are, nor what it has counted when."
    return "No queue was seen." if measure == "series" else "Nothing to show."


def _parts_table(parts: Mapping[str, Flows]) -> str:
    """How each part of the traffic fared."""
    rows = [
        (
            name,
            f"{part.completed:,} of {part.count:,}",
            *((duration(part.fct_ns.p50), duration(part.fct_ns.max)) if part.fct_ns else ("", "")),
            *((times(part.slowdown.p50), times(part.slowdown.max)) if part.slowdown else ("", "")),
        )
        for name, part in parts.items()
    ]
    head = ("part", "complete", "median", "longest", "median slowdown", "worst slowdown")
    return page.table(head, rows)


def _segment_lists(run: KeptRun) -> Iterator[str]:
    """By which switches each list of micro-segments leads; many of them are folded."""
    hosts = run.fabric.hosts
    between = ((run.fabric.node(flow.src), run.fabric.node(flow.dst)) for flow in run.flows)
    pairs = between if run.flows else permutations(hosts, 2)
    found = [*islice(lists_of(run.result.scenario, pairs), _MAX_LISTS + 1)]
    if not found:
        return
    rows = [
        (str(each.begins), each.what, each.written, " ".join(map(str, each.way.path)), each.taken)
        for each in found[:_MAX_LISTS]
    ]
    title = "Segment lists" if len(found) <= _MAX_LISTS else f"The first {_MAX_LISTS} segment lists"
    table = page.table(("at", "for what", "list", "by", "taken"), rows, "texts")
    yield page.folded(title, table) if len(rows) > _MAX_OPEN else page.heading(2, title) + table


def links_table(run: KeptRun) -> str:
    """All directions of all links; of very many the busiest."""
    by_link = run.result.pfc.by_link
    rows: list[Sequence[str]] = []
    links = run.result.links
    if len(links) > _MAX_LINKS:
        links = tuple(sorted(links, key=lambda use: -use.bytes)[:_MAX_LINKS])
    for use in links:
        pause = by_link.get(use.name)
        rows.append(
            (
                use.name,
                f"{use.packets:,}",
                size(use.bytes),
                percent(use.utilisation),
                size(use.max_queue_bytes) if use.max_queue_bytes else "",
                f"{pause.xoff_frames:,}" if pause else "",
                duration(pause.paused_ns) if pause else "",
                energy(use.energy_j or 0),
            )
        )
    head = (
        *("link", "packets", "carried", "busy", "longest queue", "pause frames", "paused"),
        "energy of its port",
    )
    return page.table(head, rows)


def scenario_text(run: KeptRun) -> str:
    """The scenario in full, defaults included, as it can be run again."""
    content = run.result.scenario.model_dump(mode="json", exclude_none=True)
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # the same, and quicker, where it is
    text = yaml.dump(content, Dumper=dumper, sort_keys=False, default_flow_style=None, width=100)
    return page.preformatted(text)


def meanings() -> str:
    """The words of the field that a report uses, for who meets them first here."""
    rows = [(f"{w.name} ({w.also})" if w.also else w.name, w.meaning) for w in glossary.WORDS]
    return page.folded("The words", page.table(("word", "what it means"), rows, "texts"))


def footer(runs: Mapping[str, KeptRun]) -> str:
    """Where the figures of runs come from, each with its name if there are several."""
    parts = []
    for name, run in runs.items():
        said = "Measured by " if len(runs) == 1 else f"{name}: "
        note = f"with its scenario saved as {KEPT_AS}" if needs_file(run) else ""
        parts.append(page.paragraph(f"{said}{made_from(run)}. Times are {_whose(run)}."))
        parts.append(page.again(command(run), note))
    return f"<footer>{''.join(parts)}</footer>"


def _whose(run: KeptRun) -> str:
    """Whose time it is that passed."""
    result = run.result
    whose = "the fabric's own"
    if result.engine != "sim":
        whose += f", which passed {result.dilation:,.0f} times slower"
    return whose
