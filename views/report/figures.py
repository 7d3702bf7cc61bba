"""Single figures as files, for a paper or slides: SVG or PDF, in vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from lab.errors import LabError
from views.report import plots
from views.report.buffers import buffer
from views.report.climbing import climbing
from views.report.cluster import cluster
from views.report.kept import KeptRun
from views.report.messages import messages
from views.report.pdf import to_pdf
from views.report.plots import Limits
from views.report.slowdowns import slowdowns
from views.report.svg import Drawing
from views.report.topology import topology

PICTURES: Mapping[str, tuple[str, Callable[[KeptRun, Limits], Drawing | None]]] = {
    "fabric": ("how busy every link was", lambda run, _: topology(run)),
    "queues": ("the longest queues, marks and drops over time", plots.queues),
    "pauses": (
        "who stood still and when",
        lambda run, limits: climbing(run, limits.end_ns, limits.zoom),
    ),
    "buffer": (
        "the fullest buffer over time",
        lambda run, limits: buffer(run, limits.end_ns, limits.buffer, limits.buffer_scales),
    ),
    "completion": (
        "the share of messages complete within a time",
        lambda run, _: plots.completion_times([(run.result.scenario.name, run)]),
    ),
    "slowdowns": (
        "how many times as long as alone messages took, by size",
        lambda run, _: slowdowns(run),
    ),
    "messages": ("what each host did when", lambda run, limits: messages(run, limits.end_ns)),
    "cluster": ("which job had which hosts when", lambda run, _: cluster(run)),
    "balance": ("how upward traffic was shared", lambda run, _: plots.balance(run)),
    "drops": ("packets dropped, by reason", plots.drops),
    "telemetry": ("time and queues at hops, as telemetry told", plots.telemetry),
}
_WRITERS: Mapping[str, Callable[[Drawing], bytes]] = {
    ".svg": lambda drawing: drawing.to_svg().encode(),
    ".pdf": to_pdf,
}

Figures = Mapping[str, tuple[str, Callable[[], Drawing | None]]]  # by name: what they show


def figures_of(run: KeptRun) -> Figures:
    """Those of a run."""
    limits = Limits.of([run])
    return {name: (what, partial(draw, run, limits)) for name, (what, draw) in PICTURES.items()}


def figure(figures: Figures, name: str) -> Drawing:
    """One of them by its name."""
    if name not in figures:
        raise LabError(f"there is no figure '{name}'", f"Choose one of {', '.join(figures)}.")
    drawing = figures[name][1]()
    if drawing is None:
        there = [each for each, (_, draw) in figures.items() if draw()]
        raise LabError(
            f"there is nothing to draw as '{name}': no such thing happened, or it was not measured",
            f"There are {', '.join(there)}.",
        )
    return drawing


def write_figure(drawing: Drawing, path: Path) -> None:
    """Write a figure, as what the file's name says."""
    write = _WRITERS.get(path.suffix.lower())
    if write is None:
        raise LabError(
            f"{path}: a figure is written as {' or '.join(_WRITERS)}", f"Such as -o {path.stem}.pdf"
        )
    try:
        path.write_bytes(write(drawing))
    except OSError as error:
        raise LabError(f"{path} cannot be written: {error.strerror}") from None
