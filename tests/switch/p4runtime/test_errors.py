"""What a failed batch tells, and that clients can receive it."""

from typing import Any

from finsy.proto import p4r, rpc_code

from switch.p4runtime.errors import (
    MAX_STATUS_BYTES,
    already_exists,
    batch_status,
    invalid,
    not_found,
)


def codes(status: Any) -> list[int]:
    found = []
    for detail in status.details:
        error = p4r.Error()
        assert detail.Unpack(error)
        found.append(error.canonical_code)
    return found


def test_there_is_an_error_per_update_in_order() -> None:
    status = batch_status([None, invalid("bad"), None, not_found("gone")], "update")
    assert status.code == rpc_code.UNKNOWN
    assert codes(status) == [0, rpc_code.INVALID_ARGUMENT, 0, rpc_code.NOT_FOUND]
    assert "2 of 4 failed" in status.message
    assert "update 1: INVALID_ARGUMENT: bad" in status.message


def test_a_long_batch_drops_the_successes_after_its_last_failure() -> None:
    status = batch_status([None, already_exists("x"), *[None] * 1000], "update")
    assert status.code == rpc_code.UNKNOWN
    assert codes(status) == [0, rpc_code.ALREADY_EXISTS]


def test_a_status_no_client_could_receive_becomes_a_sentence() -> None:
    errors = [not_found("gone")] + [None] * 998 + [invalid("bad")]
    status = batch_status(errors, "update")
    assert status.ByteSize() <= MAX_STATUS_BYTES
    assert status.code == rpc_code.INVALID_ARGUMENT, "NOT_FOUND would be taken for harmless"
    assert "update 999: INVALID_ARGUMENT: bad" in status.message
    assert "smaller batches" in status.message
