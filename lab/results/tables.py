"""What a run found out, as tables on the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from lab.results.cautions import cautions
from lab.results.cluster import ClusterResult
from lab.results.inference import InferenceResult
from lab.results.percentiles import Percentiles
from lab.results.result import InNetwork, LinkUse, Result, Security
from lab.scenario.model import Scenario, remarks
from params.quantity import duration, energy, percent, size
from topologies import Fabric, Node, NodeKind

_BAR_WIDTH = 14
_MAX_LINKS = 64


def result_tables(console: Console, fabric: Fabric, result: Result) -> None:
    """Print what a run found out."""
    console.print()
    if len(fabric.links) <= _MAX_LINKS:
        console.print(_link_table(fabric, result))
    console.print(_summary(result), highlight=False, soft_wrap=True)


def _link_table(fabric: Fabric, result: Result) -> Table:
    """What became of each link; beside a leaf's uplinks, how they share its traffic."""
    uses = {use.name: use for use in result.links}
    table = Table(
        title="Links: packets they carried, longest queue, time paused, joules of both ports",
        title_justify="left",
    )
    table.add_column("link", no_wrap=True)
    for heading in ("up", "down", "queue", "paused", "energy"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("of its leaf's packets", no_wrap=True)
    for link in sorted(fabric.links, key=lambda link: (link.a, link.b, link.number)):
        up, down = (uses[name] for name in link.directions)
        longest = max(up.max_queue_bytes or 0, down.max_queue_bytes or 0)
        paused_ns = sum(
            result.pfc.by_link[name].paused_ns
            for name in link.directions
            if name in result.pfc.by_link
        )
        share = ""
        if link.b.kind is NodeKind.SPINE:
            share = _share_bar(up.packets, _sent_up(fabric, link.a, uses))
        table.add_row(
            link.name,
            f"{up.packets:,}",
            f"{down.packets:,}",
            size(longest) if longest else "",
            duration(paused_ns) if paused_ns else "",
            energy((up.energy_j or 0) + (down.energy_j or 0)),
            share,
        )
    return table


def _sent_up(fabric: Fabric, leaf: Node, uses: dict[str, LinkUse]) -> int:
    return sum(
        uses[link.up].packets
        for link in fabric.links
        if link.a == leaf and link.b.kind is NodeKind.SPINE
    )


def _share_bar(sent: int, total: int) -> str:
    if total == 0:
        return ""
    filled = round(_BAR_WIDTH * sent / total)
    return f"{'█' * filled}{'░' * (_BAR_WIDTH - filled)} {100 * sent / total:3.0f} %"


def _summary(result: Result) -> str:
    flows, roce, drops = result.flows, result.roce, result.drops
    whole = "[green]" if flows.failed == 0 else "[red]"
    checked = ", every byte and ICRC right" if result.engine == "mininet" else ""
    lines = [
        f"{whole}{flows.completed} of {flows.count} messages arrived whole[/]{checked}: "
        f"{roce.data_packets:,} packets, {roce.data_bytes:,} bytes, "
        f"{roce.out_of_order_packets:,} out of order, {roce.retransmitted_packets:,} sent again"
    ]
    lines = [*(lines if flows.count else ()), *_in_network(result.inc)] or lines
    lines += _security(result.security)
    if result.ended:
        lines.insert(0, f"[yellow]Not whole: {result.ended}[/]")
    if flows.fct_ns:
        lines.append(f"Completion times: {_times(flows.fct_ns)}")
    if result.collective and result.collective.busbw_gbps:
        lines.append(
            f"{result.collective.op} ({result.collective.algorithm}): "
            f"{result.collective.busbw_gbps:.1f} Gb/s of bus bandwidth"
        )
    lines += _inference(result.inference)
    if result.cluster:
        lines += _cluster(result.cluster)
    elif result.jct_ns:
        busy = f", GPUs busy {result.gpu_utilisation:.0%}" if result.gpu_utilisation else ""
        lines.append(f"Job completion time: {duration(result.jct_ns)}{busy}")
    if drops.total:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in drops.by_reason.items())
        lines.append(f"[red]{drops.total:,} packets dropped[/]: {reasons}")
    else:
        lines.append("No switch dropped a packet.")
    if result.pfc.by_link:
        lines.append(
            f"{result.pfc.xoff_frames:,} pause frames of switches, {len(result.pfc.by_link)} "
            f"directions paused, {duration(result.pfc.paused_ns)} of standing still in all"
        )
    lines += _link_level(result)
    if result.pfc.storms:
        queues = ", ".join(f"{link} ({times:,} times)" for link, times in result.pfc.storms.items())
        lines.append(f"[red]The watchdog let go queues[/] that were paused too long: {queues}")
    if result.ecn.marked_packets:
        lines.append(f"{result.ecn.marked_packets:,} packets marked")
    if result.telemetry and result.telemetry.hop_latency_ns:
        lines.append(
            f"{result.telemetry.reports:,} telemetry reports; a hop took: "
            + _times(result.telemetry.hop_latency_ns)
        )
    lines += _energy(result)
    lines += result.control.sentences() if result.control else ()
    lines += [f"[yellow]In vain[/]: {text}" for text in remarks(result.scenario)]
    lines += _left_out(result.scenario)
    lines += [result.skipped.text] if result.skipped else []
    lines += [f"[yellow]{caution}[/]" for caution in cautions(result)]
    if not result.fidelity.ok:
        lines.append(f"[yellow]Do not trust this run[/]: {result.fidelity.note}")
    return "\n".join(lines)


def _energy(result: Result) -> Iterator[str]:
    """What it took, and how much of that whether or not anything was sent."""
    if taken := result.energy:
        bit = f"{energy(taken.per_bit_j)} a bit, " if taken.per_bit_j else ""
        yield (
            f"Energy: {energy(taken.total_j)} (switches {energy(taken.switches_j)}, optics "
            f"{energy(taken.optics_j)}, adapters {energy(taken.adapters_j)}), {bit}"
            f"{percent(taken.idle_share)} of it as idle ports take it, too"
        )


def _in_network(inc: InNetwork | None) -> Iterator[str]:
    """What switches added up."""
    if inc is None:
        return
    wrong = f"[red]{inc.wrong_results:,} of them wrong[/]" if inc.wrong_results else "all right"
    yield (
        f"In the network: {inc.parts:,} parts of hosts, {inc.parts_again:,} sent again; "
        f"{inc.added_by_switches:,} packets went into sums; {inc.results:,} results, {wrong}"
    )
    if inc.added_by_hosts:
        yield f"[yellow]Without a tree[/] hosts added up {inc.added_by_hosts:,} parts of others"
    if inc.without_result:
        yield f"[red]{inc.without_result:,} hosts' collectives came to nothing[/]"


def _security(found: Security | None) -> Iterator[str]:
    """What it cost to encrypt."""
    if found is not None:
        keys = f", keys changed {found.rekeyed} times" if found.rekeyed else ""
        yield (
            f"Encrypted in {found.domains} secure domains{keys}: {found.header_bytes} bytes more a "
            f"packet, {found.sent_bytes:,} in all; {found.refused_packets:,} packets refused"
        )


def _inference(served: InferenceResult | None) -> Iterator[str]:
    """What became of requests."""
    if served is None:
        return
    yield f"{served.completed} of {served.completed + served.failed} requests were answered"
    if served.ttft_ns:
        yield f"From a request to its first token: {_times(served.ttft_ns)}"


def _cluster(day: ClusterResult) -> Iterator[str]:
    """What became of a cluster's jobs."""
    yield f"{day.completed} of {day.completed + day.failed} jobs came to their end"
    if day.jct_ns and day.queued_ns and day.slowdown:
        yield f"Jobs from arrival to end: {_times(day.jct_ns)}"
        yield f"In the queue: {_times(day.queued_ns)}"
        yield (
            f"Slowed by the fabric: median {day.slowdown.p50:.2f} times as long as alone, "
            f"worst {day.slowdown.max:.2f}; over {day.racks:.2f} times the racks they need"
        )
    yield (
        f"Hosts were given to jobs {day.allocated:.0%} of the time and computed "
        f"{day.utilisation:.0%}; of free ones {day.fragmentation:.0%} were in racks taken in part"
    )


def _link_level(result: Result) -> Iterator[str]:
    """What credits came to, and what links sent again."""
    if credits := result.credits:
        odd = f", [red]{credits.strange:,} strange[/]" if credits.strange else ""
        yield (
            f"{credits.grants:,} words of credits{odd}; {credits.waits:,} waits for them on "
            f"{len(credits.by_link)} links, {duration(credits.waited_ns)} in all"
        )
    if llr := result.llr:
        late = f", {llr.timeouts:,} time-outs" if llr.timeouts else ""
        which = "Links" if result.scenario.link.llr_hosts else "Links between switches"
        yield (
            f"{which} made good {llr.spoilt_frames:,} spoilt frames: "
            f"{llr.replayed_frames:,} sent again, {llr.answers:,} answers{late}"
        )


def _left_out(scenario: Scenario) -> Iterator[str]:
    """What was not to be measured."""
    measures = scenario.measures
    asked = {
        "flows": True, "series": True, "telemetry": bool(scenario.telemetry.share),
    }  # fmt: skip
    left_out = [name for name in asked if asked[name] and not getattr(measures, name)]
    if left_out:
        yield f"Not measured, as the scenario asks: {', '.join(left_out)}."


def _times(times: Percentiles) -> str:
    return (
        f"median {duration(times.p50)}, 99 % {duration(times.p99)}, longest {duration(times.max)}"
    )
