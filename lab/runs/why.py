"""``closlab why``: what a message, a job or a whole run was held up by, proved by taking it away.

The simulator makes the same run again without a candidate; what is gained is that root's share. The
best is kept out, and the others are tried again, until hardly anything is left of the time lost.
Where none alone gives anything back, each of several may be enough to hold it up: then the fewest
are found that do so together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import field
from pathlib import Path

from controller import SettingsError
from files import shown
from lab.engines import RunOptions
from lab.engines.sim.partition import threads_here
from lab.errors import LabError, RunError
from lab.machine.scratch import scratch
from lab.progress import HeardStages, Stage, Stages
from lab.results.alone import Alone
from lab.results.causes import MAX_SHARES, RUN, Share, Why
from lab.results.result import RESULT
from lab.runs import whatif
from lab.runs.run import outcome_of
from lab.runs.whatif import Removal
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from lab.scenario.model import MeasureSettings
from params.data import Data
from topologies import TopologyError
from traffic.collectives import NEVER, Timeline, TrafficError
from views.report import read_run
from views.report.kept import KeptRun, unreadable
from views.report.standing import chain

Takes = Callable[[Collection[Removal]], int]

_MIN = 0.03  # of the time lost, that a share has at least
_HARDLY = 1.02  # times as long as alone, up to which nothing was lost
_NEARLY_ALL = 0.95  # of what is lost: who gives so much back is the root, whatever others would


def why(folder: Path, asked: str | None, stages: Stages, p4: Path | None = None) -> Why:
    """Why something of a kept run was slow: a message as SRC-DST, of a host the one slowed most, a
    job by its name, the whole RUN; else the message slowed most."""
    run = read_run(folder)
    scenario = run.result.scenario
    try:
        catalogue.check(scenario)
    except (LabError, SettingsError, TopologyError, TrafficError) as error:
        raise unreadable(folder / RESULT, f"scenario: {error}") from None
    if "p4" in run.result.provenance and p4 is None:
        raise RunError(
            f"the run had a P4 program of its own, {run.result.provenance['p4']}",
            "Say where that is now: --p4 FOLDER.",
        )
    lightest = MeasureSettings(flows=False, series=False)
    experiment = Experiment.of(scenario.model_copy(update={"measures": lightest}))
    with scratch() as space, stages("Taking away what may be its cause") as stage:
        lab = _Lab(experiment, RunOptions(space, "sim", p4=p4, threads=threads_here()), stage)
        found = _explained(lab, _subject(experiment, lab.made(()).timeline, asked), run)
        stage.note = f"{lab.tried} runs"
    return found


class _Subject(Data):
    """What is asked about."""

    name: str
    numbers: Sequence[int]  # of its transfers
    src: str = ""
    dst: str = ""

    @property
    def message(self) -> int | None:
        """The number of a single message; none: it is more than that."""
        return self.numbers[0] if self.src else None


class _Made(Data):
    """When everything happened in a run, and when it was over."""

    timeline: Timeline
    end_ns: int

    def began_ns(self, subject: _Subject) -> int:
        """When it was first under way."""
        starts = (self.timeline.start_ns[n] for n in subject.numbers)
        return min((start for start in starts if start != NEVER), default=0)

    def whole_ns(self, subject: _Subject) -> int | None:
        """How long it took, if it came to its end."""
        ends = [self.timeline.end_ns[n] for n in subject.numbers]
        return None if NEVER in ends else max(ends) - self.began_ns(subject)

    def took_ns(self, subject: _Subject) -> int:
        """How long it was under way, whether or not it came to its end."""
        whole = self.whole_ns(subject)
        return self.end_ns - self.began_ns(subject) if whole is None else whole


class _Lab(Data, frozen=False):
    """Where the same run is made again, without something."""

    experiment: Experiment
    options: RunOptions
    stage: Stage
    known: dict[frozenset[Removal], _Made] = field(default_factory=dict)

    @property
    def tried(self) -> int:
        """How many runs that took."""
        return len(self.known)

    def made(self, removed: Collection[Removal]) -> _Made:
        """What happens then."""
        key = frozenset(removed)
        if key not in self.known:
            self.stage.tell(f"{self.tried} runs")
            quiet = HeardStages(lambda _: self.stage.look())
            changed, kept = whatif.without(self.experiment, removed)
            outcome = outcome_of(changed, self.options, quiet)
            starts, ends = outcome.timeline.start_ns, outcome.timeline.end_ns
            count = len(self.experiment.schedule)
            timeline = Timeline.gather(
                count, dict(zip(kept, starts, strict=True)), dict(zip(kept, ends, strict=True))
            )
            self.known[key] = _Made(timeline, outcome.end_ns)
        return self.known[key]


def _subject(experiment: Experiment, timeline: Timeline, asked: str | None) -> _Subject:
    """What is meant; of several messages the one slowed most."""
    schedule, alone = experiment.schedule, Alone(experiment)
    names = [host.name for host in experiment.fabric.hosts]
    if asked == RUN:
        return _Subject(RUN, range(len(schedule)))
    jobs = {activity.job for activity in schedule.activities if activity.job}
    if asked in jobs:
        activities = [activity.job for activity in schedule.activities]
        own = [n for n in range(len(schedule)) if activities[schedule.activity[n]] == asked]
        return _Subject(f"job {asked}", own)

    def name(n: int) -> str:
        return f"{names[schedule.src[n]]}-{names[schedule.dst[n]]}"

    def slowness(n: int) -> tuple[bool, float]:
        start, end = timeline.start_ns[n], timeline.end_ns[n]
        return (True, -start) if end == NEVER else (False, (end - start) / alone.takes_ns(n))

    every = [n for n in range(len(schedule)) if schedule.src[n] != schedule.dst[n]]
    hosts = [number for number, host in enumerate(names) if host == asked]
    own = [n for n in every if asked in (None, name(n))]
    own += [n for n in every if schedule.src[n] in hosts or schedule.dst[n] in hosts]
    if not own:
        some = [*dict.fromkeys(name(n) for n in every[:3]), *sorted(jobs)[:3], RUN]
        what = "the run has no message" + (f" and no job {shown(asked)}" if asked else "")
        raise RunError(what, f"There are {', '.join(some)}.")
    begun = [n for n in own if timeline.start_ns[n] != NEVER]
    if not begun:
        raise RunError(f"{name(own[0])} was never begun: what it waits for did not arrive")
    worst = max(begun, key=slowness)
    return _Subject(name(worst), [worst], names[schedule.src[worst]], names[schedule.dst[worst]])


def _explained(lab: _Lab, subject: _Subject, run: KeptRun) -> Why:
    experiment, made, message = lab.experiment, lab.made(()), subject.message
    took, start = made.took_ns(subject), made.began_ns(subject)
    candidates = [*whatif.settings(experiment, start + took)]
    if message is None:
        candidates += whatif.stragglers(experiment)
        candidates += whatif.others(experiment, made.timeline, subject.numbers)
        alone = lab.made(candidates).took_ns(subject)
    else:
        candidates += whatif.messages(experiment, made.timeline, message)
        alone = round(Alone(experiment).takes_ns(message))
    lost = max(0, took - alone)
    shares = _shares(lab, subject, candidates, alone) if took > _HARDLY * alone else []
    seen = _seen(run, subject, start)
    begins, lasts = seen if seen else (start, took)
    return Why(
        what=subject.name,
        src=subject.src,
        dst=subject.dst,
        start_ns=start,
        took_ns=made.whole_ns(subject),
        alone_ns=alone,
        lost_ns=lost,
        measured_ns=lasts if seen and run.result.engine != "sim" else None,
        shares=tuple(shares),
        rest_ns=lost - sum(share.gained_ns for share in shares),
        chain=chain(run, subject.src, begins, begins + lasts) if subject.src else (),
        idle_w=run.result.energy.idle_w if message is None and run.result.energy else None,
        tried=lab.tried,
    )


def _seen(run: KeptRun, subject: _Subject, start_ns: int) -> tuple[int, int] | None:
    """The same message in the run that was kept: when it began, and how long it took."""
    own = [
        (flow.start_ns, flow.fct_ns if flow.fct_ns is not None else run.end_ns - flow.start_ns)
        for flow in run.flows
        if (flow.src, flow.dst) == (subject.src, subject.dst) and flow.start_ns is not None
    ]
    return min(own, key=lambda each: abs(each[0] - start_ns), default=None)


def _shares(
    lab: _Lab, subject: _Subject, candidates: Sequence[Removal], alone_ns: int
) -> list[Share]:
    """What to take away, one after the other, until hardly anything is left."""

    def takes(removed: Collection[Removal]) -> int:
        return lab.made(removed).took_ns(subject)

    found: list[Share] = []
    gone: list[Removal] = []
    left, now = list(candidates), takes(())
    lost = now - alone_ns
    while left and now - alone_ns > _MIN * lost and len(found) < MAX_SHARES:
        best: Sequence[Removal] = ()
        least = now
        for each in left:
            after = takes([*gone, each])
            if after < least:
                best, least = [each], after
            if now - after >= _NEARLY_ALL * (now - alone_ns):
                break
        if now - least < _MIN * lost:
            best = _together(takes, gone, left, _MIN * lost)
            least = takes([*gone, *best])
            if now - least < _MIN * lost:
                break
        elif best[0].parts:
            few = _together(takes, gone, best[0].parts, _MIN * (now - least))
            best = [whatif.joined(few)]
            least = takes([*gone, *best])
        gone += best
        left = [each for each in left if each not in best and not _is_in(each, best)]
        found.append(
            Share(
                roots=tuple(each.root for each in best),
                took_ns=lab.made(gone).whole_ns(subject),
                gained_ns=now - least,
                share=(now - least) / lost,
            )
        )
        now = least
    return found


def _is_in(one: Removal, others: Sequence[Removal]) -> bool:
    """Whether it is messages that are all gone with others."""
    return bool(one.messages) and any(one.messages <= each.messages for each in others)


def _together(
    takes: Takes, gone: Sequence[Removal], left: Sequence[Removal], hardly: float
) -> Sequence[Removal]:
    """The fewest without which nothing is lost, where one is not enough: what makes no difference
    is put back, one by one."""
    best = takes([*gone, *left])
    kept = list(left)
    for each in left:
        others = [one for one in kept if one is not each]
        if others and takes([*gone, *others]) <= best + hardly:
            kept = others
    return kept
