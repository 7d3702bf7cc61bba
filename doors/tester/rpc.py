"""OTG by gRPC: the service of its protobuf; an error's details are OTG's Error in JSON."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
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
        self._desk = desk

    def SetConfig(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Become what a configuration says."""
        done = _answer(context, lambda: self._desk.set_config(request.config))
        return otg.SetConfigResponse(warning=done)

    def GetConfig(self, _request: Any, context: Any) -> Any:  # noqa: N802
        """What was said."""
        return otg.GetConfigResponse(config=_answer(context, self._desk.get_config))

    def UpdateConfig(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Change flows while they send."""
        done = _answer(context, lambda: self._desk.update_config(request.config_update))
        return otg.UpdateConfigResponse(warning=done)

    def AppendConfig(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Have further flows."""
        done = _answer(context, lambda: self._desk.append_config(request.config_append))
        return otg.AppendConfigResponse(warning=done)

    def DeleteConfig(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Have some no more."""
        done = _answer(context, lambda: self._desk.delete_config(request.config_delete))
        return otg.DeleteConfigResponse(warning=done)

    def SetControlState(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Start and stop."""
        done = _answer(context, lambda: self._desk.set_control_state(request.control_state))
        return otg.SetControlStateResponse(warning=done)

    def SetControlAction(self, _request: Any, context: Any) -> Any:  # noqa: N802
        """Nothing is done."""
        return _answer(context, _refuse_action)

    def GetMetrics(self, request: Any, context: Any) -> Any:  # noqa: N802
        """What was counted."""
        found = _answer(context, lambda: self._desk.get_metrics(request.metrics_request))
        return otg.GetMetricsResponse(metrics_response=found)

    def GetStates(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Whom ports have for neighbours."""
        found = _answer(context, lambda: self._desk.get_states(request.states_request))
        return otg.GetStatesResponse(states_response=found)

    def GetCapture(self, request: Any, context: Any) -> Any:  # noqa: N802
        """What was captured."""
        kept = _answer(context, lambda: self._desk.get_capture(request.capture_request))
        return otg.GetCaptureResponse(response_bytes=kept)

    def GetVersion(self, _request: Any, context: Any) -> Any:  # noqa: N802
        """Of the model, and of what answers."""
        return otg.GetVersionResponse(version=_answer(context, self._desk.get_version))


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
