"""What a refused request tells its client.

A request fails with one canonical code and one sentence. A `Write` carries many updates and fails
with UNKNOWN plus one `p4.v1.Error` per update, in order, in the `grpc-status-details-bin` trailer.

That trailer is an HTTP/2 header, and clients bound those: most accept 8 KiB. A status that would
not fit is cut in two steps: the OK errors after the last failure go first (the others keep their
place); if that is not enough the details go altogether, the code becomes the first failure's and
the sentence lists the failures. A client is never left with a half-told status.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from finsy.proto import p4r, rpc_code, rpc_status
from google.protobuf import any_pb2

SPACE = "closlab"
STATUS_DETAILS = "grpc-status-details-bin"
MAX_STATUS_BYTES = 5_800
"""What fits a client's 8 KiB of headers after base64."""

_LISTED_FAILURES = 8
_MAX_MESSAGE = 1_000


class RequestError(Exception):
    """A request that cannot be done: a canonical code, and a sentence naming place and cure."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    @property
    def code_name(self) -> str:
        """The canonical code's name, for example `NOT_FOUND`."""
        return rpc_code.Code.Name(rpc_code.Code.ValueType(self.code))


invalid = partial(RequestError, rpc_code.INVALID_ARGUMENT)
"""The request is malformed whatever the switch's state."""
not_found = partial(RequestError, rpc_code.NOT_FOUND)
"""The request names something that is not there."""
already_exists = partial(RequestError, rpc_code.ALREADY_EXISTS)
"""The request inserts something that is there."""
denied = partial(RequestError, rpc_code.PERMISSION_DENIED)
"""The client may not do this (not primary, or the program forbids it)."""
precondition = partial(RequestError, rpc_code.FAILED_PRECONDITION)
"""The switch's state must change first."""
exhausted = partial(RequestError, rpc_code.RESOURCE_EXHAUSTED)
"""A declared size is used up."""
out_of_range = partial(RequestError, rpc_code.OUT_OF_RANGE)
"""An index beyond the end of an array, or a value too wide for its field."""
unimplemented = partial(RequestError, rpc_code.UNIMPLEMENTED)
"""Legal in P4Runtime, not done here."""
aborted = partial(RequestError, rpc_code.ABORTED)
"""Undone because another update of the same batch failed."""
internal = partial(RequestError, rpc_code.INTERNAL)
"""The switch is at fault."""


def no_pipeline() -> RequestError:
    """The request needs a P4 program and none is loaded."""
    return precondition(
        "No forwarding pipeline config set for this device; send SetForwardingPipelineConfig first"
    )


def batch_status(errors: Sequence[RequestError | None], noun: str) -> rpc_status.Status:
    """Return the status of a batch with at least one failure; `errors` has an item per `noun`."""
    failed = [index for index, error in enumerate(errors) if error is not None]
    assert failed
    summary = _summary(errors, failed, noun)
    for length in (len(errors), failed[-1] + 1):
        status = rpc_status.Status(code=rpc_code.UNKNOWN, message=summary)
        status.details.extend(_detail(error) for error in errors[:length])
        if status.ByteSize() <= MAX_STATUS_BYTES:
            return status
    first = next(
        (e for e in errors if e is not None and e.code != rpc_code.NOT_FOUND), errors[failed[0]]
    )
    assert first is not None
    return rpc_status.Status(
        code=first.code,
        message=f"{summary} (too many to report one by one: send smaller batches)",
    )


def _detail(error: RequestError | None) -> any_pb2.Any:
    detail = any_pb2.Any()
    if error is None:
        detail.Pack(p4r.Error(canonical_code=rpc_code.OK))
    else:
        detail.Pack(
            p4r.Error(
                canonical_code=error.code,
                message=error.message[:_MAX_MESSAGE],
                space=SPACE,
                code=error.code,
            )
        )
    return detail


def _summary(errors: Sequence[RequestError | None], failed: Sequence[int], noun: str) -> str:
    lines = []
    for index in failed[:_LISTED_FAILURES]:
        error = errors[index]
        assert error is not None
        lines.append(f"{noun} {index}: {error.code_name}: {error.message[:200]}")
    more = len(failed) - len(lines)
    if more:
        lines.append(f"and {more} more")
    return f"{len(failed)} of {len(errors)} failed: " + "; ".join(lines)
