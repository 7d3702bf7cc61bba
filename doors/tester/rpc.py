"""OTG by gRPC: the service of its protobuf; an error's details are OTG's Error in JSON."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import grpc
from snappi import otg_pb2 as otg
from snappi import otg_pb2_grpc

from doors.tester.dispatcher import Desk
from doors.tester.models import MAX_BYTES, Refused, missing
from lab.errors import LabError

_CODES = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    413: grpc.StatusCode.RESOURCE_EXHAUSTED,
    501: grpc.StatusCode.UNIMPLEMENTED,
    503: grpc.StatusCode.UNAVAILABLE,
}
_AT_ONCE = 16
_LEAVE_S = 1.0
_T = TypeVar("_T")


class Service(otg_pb2_grpc.OpenapiServicer):  # type: ignore[misc]
    """What answers, of one tester."""

    def __init__(self, desk: Desk) -> None:
        # By call: what its answer calls what comes of it, who does it, and what he takes of it.
        calls: dict[str, tuple[str, Callable[..., object], str]] = {
            "SetConfig": ("warning", desk.set_config, "config"),
            "GetConfig": ("config", desk.get_config, ""),
            "UpdateConfig": ("warning", desk.update_config, "config_update"),
            "AppendConfig": ("warning", desk.append_config, "config_append"),
            "DeleteConfig": ("warning", desk.delete_config, "config_delete"),
            "SetControlState": ("warning", desk.set_control_state, "control_state"),
            "SetControlAction": ("warning", _refuse_action, ""),
            "GetMetrics": ("metrics_response", desk.get_metrics, "metrics_request"),
            "GetStates": ("states_response", desk.get_states, "states_request"),
            "GetCapture": ("response_bytes", desk.get_capture, "capture_request"),
            "GetVersion": ("version", desk.get_version, ""),
        }
        for name, (said, do, given) in calls.items():
            setattr(self, name, _call(getattr(otg, f"{name}Response"), said, do, given))


def _call(
    kind: Callable[..., Any], said: str, do: Callable[..., object], given: str
) -> Callable[[Any, grpc.ServicerContext], Any]:
    def answer(request: Any, context: grpc.ServicerContext) -> Any:
        parts = [getattr(request, given)] if given else []
        return kind(**{said: _answer(context, partial(do, *parts))})

    return answer


def _refuse_action() -> None:
    raise missing("SetControlAction: actions are not there in closlab")


def _answer(context: grpc.ServicerContext, do: Callable[[], _T]) -> _T:
    """What comes of it, or the status that says why nothing does."""
    try:
        return do()
    except Refused as error:
        refused = error
    except Exception as error:
        traceback.print_exc()
        refused = Refused(500, f"a defect of closlab: {type(error).__name__}", kind="internal")
    code = _CODES.get(refused.code, grpc.StatusCode.INTERNAL)
    context.abort(code, json.dumps(refused.as_json()))
    raise AssertionError


@contextmanager
def serving(desk: Desk, address: str, port: int) -> Iterator[int]:
    """Answer for as long as the context lasts; the port."""
    server = grpc.server(
        ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="otg-grpc"),
        options=[("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", MAX_BYTES)],
    )
    otg_pb2_grpc.add_OpenapiServicer_to_server(Service(desk), server)
    try:
        found = server.add_insecure_port(f"{address}:{port}")
    except RuntimeError:
        raise LabError(
            f"port {port} of {address} is taken, or there is no such address",
            "Choose another with --grpc, or 0 for any that is free.",
        ) from None
    server.start()
    try:
        yield found
    finally:
        server.stop(_LEAVE_S).wait(2 * _LEAVE_S)
