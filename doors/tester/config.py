"""A configuration as a whole: what its names mean, and what of it is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from snappi import otg_pb2 as otg

from doors.tester.flows import MAX_FLOWS, Plan, planned
from doors.tester.models import Refused, chosen, missing, value, word, wrong
from doors.tester.site import Place

OBEYS_NONE = "obey -------- 0"
_MAX_PORTS = 128
_BUSY = 40_000  # frames a second of real time that a machine surely sends
_SPEEDS = {f"speed_{gbps}_gbps": gbps * 10**9 for gbps in (1, 10, 25, 40, 50, 100, 200, 400, 800)}


def located(config: otg.Config, places: Mapping[str, Place]) -> dict[str, Place]:
    """Where each port of a configuration is."""
    refuse_twice("port", [port.name for port in config.ports])
    if len(config.ports) > _MAX_PORTS:
        raise wrong(f"{_MAX_PORTS} ports are the most that there may be")
    unknown = [port for port in config.ports if port.location not in places]
    if unknown:
        names = [*places]
        some = ", ".join(names[:8]) + (f" to {names[-1]}" if len(names) > 8 else "")
        raise wrong(
            *(f"port {port.name}: there is no location '{port.location[:60]}'; there are {some}"
              for port in unknown[:8])
        )  # fmt: skip
    refuse_twice("location", [port.location for port in config.ports])
    return {port.name: places[port.location] for port in config.ports}


def planned_all(flows: Sequence[otg.Flow], at: Mapping[str, Place]) -> list[Plan]:
    """What flows come to; all that is wrong with any of them is told at once."""
    refuse_twice("flow", [flow.name for flow in flows])
    if len(flows) > MAX_FLOWS:
        raise wrong(f"{MAX_FLOWS:,} flows are the most that there may be")
    plans, problems = [], []
    for flow in flows:
        try:
            plans.append(planned(flow, at))
        except Refused as error:
            problems.append(error)
    if problems:
        worst = min(problem.code for problem in problems)
        raise Refused(worst, *(text for each in problems for text in each.errors))
    return plans


def refuse_twice(what: str, names: Sequence[str]) -> None:
    """Names of a kind are each there once."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise wrong(f"there are two {what}s '{name[:60]}'")
        seen.add(name)


def layer1(config: otg.Config, at: Mapping[str, Place]) -> tuple[dict[str, str], list[str]]:
    """By which pauses ports stand still, and what of the rest is otherwise here."""
    obeys: dict[str, str] = {}
    warnings = []
    for each in config.layer1:
        for name in each.port_names:
            if name not in at:
                raise wrong(f"layer1 {each.name}: there is no port '{name[:60]}'")
            place = at[name]
            speed = word(each, "speed")
            if speed and _SPEEDS.get(speed) != place.bps:
                warnings.append(
                    f"layer1 {each.name}: the port {name} has {place.bps / 1e9:g} Gb/s, as its "
                    f"cable has; {speed} changes nothing"
                )
            if each.HasField("mtu") and each.mtu + 14 > place.most_frame:
                raise wrong(f"layer1 {each.name}: mtu is at most {place.most_frame - 14} here")
            if each.HasField("promiscuous") and not each.promiscuous:
                raise missing(f"layer1 {each.name}: promiscuous 'false' is not there in closlab")
            if each.HasField("flow_control"):
                obeys[name] = _obeying(each.flow_control)
    return obeys, warnings


def _obeying(control: otg.Layer1FlowControl) -> str:
    if chosen(control) == "ieee_802_3x":
        return "obey -------- 1"
    given = control.ieee_802_1qbb
    queues = [value(given, f"pfc_class_{number}") for number in range(8)]
    return f"obey {''.join(str(queue) if queue < 8 else '-' for queue in queues)} 0"


def check_captures(config: otg.Config, at: Mapping[str, Place]) -> None:
    """Captures name ports, and none twice."""
    names = [name for each in config.captures for name in each.port_names]
    refuse_twice("capture at the port", names)
    for each in config.captures:
        for name in each.port_names:
            if name not in at:
                raise wrong(f"capture {each.name}: there is no port '{name[:60]}'")


def too_busy(plans: Iterable[Plan], at: Mapping[str, Place]) -> list[str]:
    """A word if that may be more than this machine sends."""
    wanted = sum(plan.frames_per_s / at[plan.tx].dilation for plan in plans)
    if wanted <= _BUSY:
        return []
    return [
        f"{wanted:,.0f} frames a second of real time are more than a machine surely sends "
        f"({_BUSY:,}): rates may fall short, which metrics show; a slower clock (--dilation) helps"
    ]
