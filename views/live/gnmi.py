"""The latest snapshot as gNMI has it: Capabilities, Get and Subscribe, for who speaks that.

A fabric is one target, whose interfaces are those of all its nodes (`leaf1-eth3`, `h1-eth0`), and
each switch is one besides, at an address of its own (`targets.py`). The fabric's paths are
openconfig's as far as it has any; it has none for what PFC does to a queue, nor for what a whole
node drops: those are ours, in modules that Capabilities names (`yang/`).

    /interfaces/interface[name=leaf1-eth3]/state/oper-status, .../counters/{in,out}-octets
    /interfaces/interface[name=...]/pfc/state/{paused-time, paused-permille}           closlab-pfc
    /qos/interfaces/interface[interface-id=...]/output/queues/queue[name=data]/state/
        {queue-len, transmit-octets, ecn-marked-pkts}        (queue-len: closlab-pfc)
    /fabric/state/time, /fabric/node[name=leaf1]/state/dropped-pkts                 closlab-fabric
    /fabric/node[name=h1]/adapter/counter[name=np_cnp_sent]/state/count             closlab-fabric

There is nothing to set: that takes the token, at the page.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent import futures
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, NoReturn

import grpc
from finsy.proto import gnmi as pb
from google.protobuf.message import DecodeError

from lab.errors import LabError
from views.live.hub import Frame, Hub, Scene
from views.live.targets import MODELS, Leaves, Path, Value, switch_leaves, targets

Tell = Callable[[Scene, Frame], Leaves]

LOOPBACK = "127.0.0.1"
_VERSION = "0.8.0"
_MIN_S = 0.1  # between two samples
_USUAL_S = 1.0  # where the target is to choose
_NEVER = float("inf")
_MAX_CLIENTS = 16
_MAX_PATHS = 256  # of a request
_MAX_BYTES = 64 << 10
_UNHEARD_S = 3_600  # a call may wait for the machine; gRPC itself lets it for 30 s
_SMALL = "paused-permille", "as", "peer-as"  # numbers of 16 and 32 bits; all others have 64
_MODELS = (
    ("openconfig-interfaces", "OpenConfig working group", "3.0.0"),
    ("openconfig-qos", "OpenConfig working group", "0.11.0"),
    ("closlab-pfc", "closlab", "1.0.0"),
    ("closlab-fabric", "closlab", "1.1.0"),
)


def leaves(scene: Scene, frame: Frame) -> Leaves:
    """All there is to be told, by its path."""
    fabric, adapters = scene.fabric, scene.adapters_counted()
    snapshot = frame.snapshot
    found: Leaves = {_path("fabric", "state", "time"): snapshot.time_ns}
    dropped: dict[str, int] = {}
    for link in fabric.links:
        for node, port in ((link.a, link.a_port), (link.b, link.b_port)):
            peer = link.b if node == link.a else link.a
            out, back = snapshot.links[link.direction(node)], snapshot.links[link.direction(peer)]
            name = node.interface(port)
            interface = _path("interfaces", ("interface", ("name", name)))
            state = (*interface, ("state", ()))
            status = "DOWN" if link.name in snapshot.dead else "UP"
            found[(*state, ("oper-status", ()))] = status
            counters = (*state, ("counters", ()))
            found[(*counters, ("in-octets", ()))] = back.bytes
            found[(*counters, ("out-octets", ()))] = out.bytes
            pfc = (*interface, *_path("pfc", "state"))
            found[(*pfc, ("paused-time", ()))] = out.paused_ns
            found[(*pfc, ("paused-permille", ()))] = round(1000 * out.paused)
            queue = _path(
                *("qos", "interfaces", ("interface", ("interface-id", name)), "output", "queues"),
                *(("queue", ("name", "data")), "state"),
            )
            found[(*queue, ("queue-len", ()))] = out.queue_bytes
            found[(*queue, ("transmit-octets", ()))] = out.bytes
            found[(*queue, ("ecn-marked-pkts", ()))] = out.marked
            dropped[node.name] = max(dropped.get(node.name, 0), out.dropped)
    for host, counts in adapters.items():
        node_adapter = _path("fabric", ("node", ("name", host)), "adapter")
        for name, count in counts.items():
            state = _path(("counter", ("name", name)), "state", "count")
            found[(*node_adapter, *state)] = count
    for name, count in dropped.items():
        node_state = _path("fabric", ("node", ("name", name)), "state", "dropped-pkts")
        found[node_state] = count
    return found


def _path(*steps: str | tuple[str, tuple[str, str]]) -> Path:
    return tuple((step, ()) if isinstance(step, str) else (step[0], (step[1],)) for step in steps)


def is_under(path: Path, asked: Path) -> bool:
    """Whether a leaf is what is asked for, or below it; * stands for any element or key."""
    if len(path) < len(asked):
        return False
    return all(
        wanted in ("*", name) and all(v in ("*", dict(keys).get(k)) for k, v in wanted_keys)
        for (name, keys), (wanted, wanted_keys) in zip(path, asked, strict=False)
    )


@contextmanager
def serving(hub: Hub, port: int) -> Iterator[int]:
    """Answer for as long as the context lasts; at which port, of all targets."""
    with ExitStack() as stack:
        whole = _Servicer(hub, leaves, _MODELS)
        bound = stack.enter_context(_listening(whole, f"{LOOPBACK}:{port}"))
        for switch, address in targets(hub.scene.fabric).items():
            one = _Servicer(hub, partial(switch_leaves, switch), MODELS)
            stack.enter_context(_listening(one, f"{address}:{bound}"))
        yield bound


@contextmanager
def _listening(servicer: _Servicer, at: str) -> Iterator[int]:
    """A target that answers."""
    server = grpc.server(
        futures.ThreadPoolExecutor(_MAX_CLIENTS, "gnmi"),
        maximum_concurrent_rpcs=_MAX_CLIENTS,  # who comes then is told so, and does not wait
        options=[
            ("grpc.so_reuseport", 0),  # a port that somebody has is taken
            ("grpc.max_receive_message_length", _MAX_BYTES),
            ("grpc.max_metadata_size", _MAX_BYTES),
            ("grpc.server_max_unrequested_time_in_server", _UNHEARD_S),
        ],
    )
    server.add_generic_rpc_handlers((_handler(servicer),))
    try:
        bound = server.add_insecure_port(at)
    except RuntimeError:
        port = at.rpartition(":")[2]
        raise LabError(f"port {port} cannot be listened on", "Choose another, or 0.") from None
    server.start()
    try:
        yield bound
    finally:
        server.stop(grace=0.2).wait()


class _Malformed:
    """What was sent in place of a message."""


def _handler(servicer: _Servicer) -> Any:
    """What gRPC dispatches by; gRPC itself would say of malformed bytes that the server failed."""

    def parsed(kind: Any) -> Callable[[bytes], Any]:
        def read(data: bytes) -> Any:
            try:
                return kind.FromString(data)
            except DecodeError:
                return _Malformed()

        return read

    def refuse(context: Any) -> NoReturn:
        raise context.abort(
            grpc.StatusCode.INVALID_ARGUMENT, "the request is not a well-formed message of gNMI"
        )

    def unary(method: Callable[[Any, Any], Any], asked: Any, answer: Any) -> Any:
        def serve(request: Any, context: Any) -> Any:
            return refuse(context) if isinstance(request, _Malformed) else method(request, context)

        return grpc.unary_unary_rpc_method_handler(serve, parsed(asked), answer.SerializeToString)

    def subscribe(requests: Iterable[Any], context: Any) -> Iterator[Any]:
        def sound() -> Iterator[Any]:
            for request in requests:
                yield refuse(context) if isinstance(request, _Malformed) else request

        return servicer.Subscribe(sound(), context)

    methods = {
        "Capabilities": unary(servicer.Capabilities, pb.CapabilityRequest, pb.CapabilityResponse),
        "Get": unary(servicer.Get, pb.GetRequest, pb.GetResponse),
        "Set": unary(servicer.Set, pb.SetRequest, pb.SetResponse),
        "Subscribe": grpc.stream_stream_rpc_method_handler(
            subscribe, parsed(pb.SubscribeRequest), pb.SubscribeResponse.SerializeToString
        ),
    }
    return grpc.method_handlers_generic_handler("gnmi.gNMI", methods)


class _Servicer:
    """The service."""

    def __init__(self, hub: Hub, tell: Tell, models: Sequence[tuple[str, str, str]]) -> None:
        self._hub = hub
        self._tell = tell
        self._models = models

    def Capabilities(self, _request: Any, _context: Any) -> Any:  # noqa: N802  (gNMI's)
        """What it speaks."""
        return pb.CapabilityResponse(
            supported_models=[
                pb.ModelData(name=name, organization=by, version=version)
                for name, by, version in self._models
            ],
            supported_encodings=[pb.JSON, pb.JSON_IETF, pb.PROTO],
            gNMI_version=_VERSION,
        )

    def Get(self, request: Any, context: Any) -> Any:  # noqa: N802
        """What is below some paths, now."""
        self._check_encoding(request.encoding, context)
        frame = self._hub.latest
        if frame is None:
            raise context.abort(grpc.StatusCode.UNAVAILABLE, "nothing was seen yet; ask again")
        self._check_count(request.path, context)
        found = self._tell(self._hub.scene, frame)
        notifications = []
        for asked in [self._read(request.prefix, path) for path in request.path] or [()]:
            leaves = {path: value for path, value in found.items() if is_under(path, asked)}
            if not leaves:
                where = "/".join(name for name, _ in asked)
                context.abort(grpc.StatusCode.NOT_FOUND, f"there is nothing at /{where}")
            update = self._notification(leaves, frame, request.encoding, request.prefix.target)
            notifications.append(update)
        return pb.GetResponse(notification=notifications)

    def Set(self, _request: Any, context: Any) -> Any:  # noqa: N802
        """Nothing can be set."""
        context.abort(grpc.StatusCode.PERMISSION_DENIED, "read only: the page can, by its token")

    def Subscribe(self, requests: Iterable[Any], context: Any) -> Iterator[Any]:  # noqa: N802
        """What is below some paths: once, when polled, at intervals or when it changes."""
        stream = iter(requests)
        first = next(stream, None)
        if first is None or first.WhichOneof("request") != "subscribe":
            raise context.abort(grpc.StatusCode.INVALID_ARGUMENT, "begin with a subscription list")
        wanted = first.subscribe
        self._check_encoding(wanted.encoding, context)
        self._check_count(wanted.subscription, context)
        plans = [_Plan(self._read(wanted.prefix, each.path), each) for each in wanted.subscription]
        answer = partial(self._answers, encoding=wanted.encoding, target=wanted.prefix.target)
        news = threading.Event()
        detach = self._hub.attach(news.set)  # before the first answer: what comes after it is news
        try:
            yield from answer(plans, is_silent=wanted.updates_only)
            yield pb.SubscribeResponse(sync_response=True)
            if wanted.mode == pb.SubscriptionList.POLL:
                for _ in stream:
                    yield from answer(plans, is_whole=True)
                    yield pb.SubscribeResponse(sync_response=True)
            elif wanted.mode == pb.SubscriptionList.STREAM:
                yield from self._stream(plans, answer, context, news)
        finally:
            detach()

    def _stream(
        self,
        plans: Sequence[_Plan],
        answer: Callable[[Sequence[_Plan]], Iterator[Any]],
        context: Any,
        news: threading.Event,
    ) -> Iterator[Any]:
        while context.is_active():
            due = min((plan.due for plan in plans), default=time.monotonic() + 1)
            is_news = news.wait(max(0.0, min(1.0, due - time.monotonic())))
            news.clear()
            now = time.monotonic()
            ready = [plan for plan in plans if plan.due <= now or (is_news and plan.on_change)]
            yield from answer(ready)
            if self._hub.is_over and not any(plan.every_s for plan in plans):
                return
            if is_news:
                time.sleep(_MIN_S)  # snapshots may come a thousand times a second

    def _answers(
        self,
        plans: Sequence[_Plan],
        *,
        encoding: int,
        target: str,
        is_silent: bool = False,
        is_whole: bool = False,
    ) -> Iterator[Any]:
        frame = self._hub.latest
        if frame is None or not plans:
            return
        found = self._tell(self._hub.scene, frame)
        for plan in plans:
            leaves = plan.updates(found, is_whole=is_whole)
            if leaves and not is_silent:
                update = self._notification(leaves, frame, encoding, target)
                yield pb.SubscribeResponse(update=update)

    # --- messages --------------------------------------------------------------------------------

    def _check_encoding(self, encoding: int, context: Any) -> None:
        if encoding not in (pb.JSON, pb.JSON_IETF, pb.PROTO):
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "encodings are JSON, JSON_IETF and PROTO")

    def _check_count(self, paths: Sequence[Any], context: Any) -> None:
        if len(paths) > _MAX_PATHS:
            problem = f"{len(paths):,} paths at once: {_MAX_PATHS} are allowed"
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, problem)

    def _read(self, prefix: Any, path: Any) -> Path:
        return tuple(
            (step.name.rpartition(":")[2], tuple(step.key.items()))
            for step in (*prefix.elem, *path.elem)
        )

    def _notification(self, leaves: Leaves, frame: Frame, encoding: int, target: str) -> Any:
        return pb.Notification(
            timestamp=frame.wall_ns,
            prefix=pb.Path(target=target) if target else None,  # as it was asked
            update=[
                pb.Update(
                    path=pb.Path(elem=[pb.PathElem(name=n, key=dict(keys)) for n, keys in path]),
                    val=self._value(path[-1][0], value, encoding),
                )
                for path, value in leaves.items()
            ],
        )

    def _value(self, leaf: str, value: Value, encoding: int) -> Any:
        if encoding == pb.PROTO:
            if isinstance(value, str):
                return pb.TypedValue(string_val=value)
            return pb.TypedValue(uint_val=value)
        if encoding == pb.JSON_IETF:  # RFC 7951: 64-bit numbers as strings
            said = value if leaf in _SMALL else str(value)
            return pb.TypedValue(json_ietf_val=json.dumps(said).encode())
        return pb.TypedValue(json_val=json.dumps(value).encode())


class _Plan:
    """One subscription: when it is to be served, and what was told of it."""

    def __init__(self, path: Path, asked: Any) -> None:
        self._path = path
        self.on_change = asked.mode == pb.ON_CHANGE
        given_s = asked.sample_interval / 1e9
        usual_s = _USUAL_S if asked.mode == pb.TARGET_DEFINED else _MIN_S
        self.every_s = None if self.on_change else max(_MIN_S, given_s or usual_s)
        self._is_news_only = self.on_change or asked.suppress_redundant
        beats_s = asked.heartbeat_interval / 1e9
        self._beat_s = max(_MIN_S, beats_s) if beats_s and self._is_news_only else _NEVER
        self._beats = 0.0  # when all of it is told, news or not
        self._samples = 0.0  # when it is looked at
        self._before: Leaves = {}

    @property
    def due(self) -> float:
        """When it is to be served, by the machine's monotonic clock."""
        return min(self._beats, self._samples)

    def updates(self, found: Leaves, *, is_whole: bool) -> Leaves:
        """What is to be told of it now."""
        now = time.monotonic()
        if now >= self._samples:
            self._samples = now + (self.every_s or _NEVER)
        if now >= self._beats:
            self._beats, is_whole = now + self._beat_s, True
        mine = {path: value for path, value in found.items() if is_under(path, self._path)}
        before, self._before = self._before, mine
        if not self._is_news_only or is_whole:
            return mine
        return {path: value for path, value in mine.items() if before.get(path) != value}
