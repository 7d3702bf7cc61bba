"""What is looked for in the watchdog's times and in marks; docs/production.md has the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from lab.configs.basis import Findings, header_bytes, roce_mtu, xoff_at
from lab.configs.findings import Finding, replace

_MIN_MS = 100  # of detection and restoration, by the YANG model
_USUAL_MS = 200
# A queue pair that is silent for longer gives up: 7 time-outs of 4.096 us x 2^14, as ibv_qp_attr's
# timeout and retry_cnt are usually set.
PATIENCE_MS = 7 * 4.096e-3 * 2**14
_MIN_CHANCE = 0.01  # of a mark when a sender is paused
_MIN_MARKS = 1  # of a sender, while what is twice as quick as its way fills a queue from kmin


def _eager(found: Findings) -> Iterator[Finding]:
    for switch in found.fabric.switches.values():
        for name, watch in switch.watches.items():
            if name not in switch.ports or watch.detection_ms >= _MIN_MS:
                continue
            yield Finding(
                "watchdog-eager", switch.name, "PFC_WD", name,
                f"detection_time is {watch.detection_ms} ms, less than {_MIN_MS}",
                "a pause that any congestion brings is taken for a storm, and lossless packets "
                "are dropped",
                f"Set detection_time to {_USUAL_MS}.",
                patch={switch.name: (replace("PFC_WD", name, "detection_time", _USUAL_MS),)},
                facts={"detection_ms": watch.detection_ms},
            )  # fmt: skip


def _late(found: Findings) -> Iterator[Finding]:
    for switch in found.fabric.switches.values():
        poll = switch.poll_ms or 0
        for name, watch in switch.watches.items():
            longest = watch.detection_ms + min(poll, watch.detection_ms)
            if name not in switch.ports or longest <= PATIENCE_MS or poll > watch.detection_ms:
                continue
            yield Finding(
                "watchdog-late", switch.name, "PFC_WD", name,
                f"a storm is seen after up to {longest} ms: detection_time "
                f"{watch.detection_ms}, POLL_INTERVAL {poll}",
                f"queue pairs that it holds give up before, after {PATIENCE_MS:.0f} ms (time-out "
                "14, 7 retries), and the job with them",
                f"Set detection_time to {_USUAL_MS}.",
                patch={switch.name: (replace("PFC_WD", name, "detection_time", _USUAL_MS),)},
                facts={"detection_ms": longest},
            )  # fmt: skip


def _alert(found: Findings) -> Iterator[Finding]:
    for switch in found.fabric.switches.values():
        for name, watch in switch.watches.items():
            port = switch.ports.get(name)
            if port is None or watch.action != "alert" or not port.pfc & port.watched:
                continue
            yield Finding(
                "watchdog-alert", switch.name, "PFC_WD", name,
                "action is alert: a storm is told, and nothing is done about it",
                "a neighbour that never stops pausing holds the port, and who waits for it, for "
                "good",
                "Set action drop, or have somebody at hand whom the alert wakes.",
                patch={switch.name: (replace("PFC_WD", name, "action", "drop"),)},
            )  # fmt: skip


def _flat(found: Findings) -> Iterator[Finding]:
    for switch in found.fabric.switches.values():
        for priority in sorted(found.lossless):
            ports = [p for p in found.fabric.in_use(switch) if priority in found.agreed(switch, p)]
            xoffs = [x for port in ports if (x := xoff_at(switch, port, priority)) is not None]
            for port in ports if xoffs else ():
                name, xoff = port.wred.get(switch.queue_of(port, priority), ""), max(xoffs)
                wred = switch.wred.get(name)
                if wred is None or not wred.marks or wred.kmin is None or wred.kmax is None:
                    continue
                if not wred.kmin < xoff <= wred.kmax or wred.kmin == wred.kmax:
                    continue  # beyond it: ecn-late
                chance = wred.percent / 100 * (xoff - wred.kmin) / (wred.kmax - wred.kmin)
                frame = roce_mtu(switch, port) + header_bytes()
                marks = chance * (xoff - wred.kmin) / frame  # half of chance, of twice as many
                if chance >= _MIN_CHANCE or marks >= _MIN_MARKS:
                    continue
                low, high = xoff // 4, max(xoff // 4 + 1, xoff // 2)
                ops = [
                    replace("WRED_PROFILE", name, field, value)
                    for colour in ("green", "yellow", "red")
                    for field, value in (
                        (f"{colour}_min_threshold", low), (f"{colour}_max_threshold", high),
                        (f"{colour}_drop_probability", max(5, wred.percent)),
                    )
                ]  # fmt: skip
                yield Finding(
                    "ecn-flat", switch.name, "WRED_PROFILE", name,
                    f"when a sender is paused, at {xoff:,} bytes, {chance:.2%} of its packets are "
                    f"marked, and {marks:.2g} before: {wred.kmin:,} to {wred.kmax:,} bytes, "
                    f"{wred.percent} % (queue {priority} of {port.name})",
                    "hardly anybody hears of congestion until everybody is paused",
                    f"Set green_max_threshold below {xoff:,}, such as {high:,}, and "
                    f"green_min_threshold {low:,}.",
                    patch={switch.name: tuple(ops)},
                    facts={"kmin": wred.kmin, "top": wred.kmax, "percent": wred.percent,
                           "xoff": xoff, "low": low, "high": high},
                )  # fmt: skip


RULES: Mapping[str, Callable[[Findings], Iterator[Finding]]] = {
    "watchdog-eager": _eager, "watchdog-late": _late, "watchdog-alert": _alert, "ecn-flat": _flat,
}  # fmt: skip
