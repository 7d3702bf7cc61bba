"""What somebody may send to a tester's door who means it harm, drawn by a seed."""

from __future__ import annotations

import copy
import json
import random
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import grpc

PATHS = (
    *(("POST", "/config"), ("PATCH", "/config"), ("PATCH", "/config/append")),
    *(("PATCH", "/config/delete"), ("POST", "/control/state"), ("POST", "/control/action")),
    *(("POST", "/monitor/metrics"), ("POST", "/monitor/states"), ("POST", "/monitor/capture")),
)
METHODS = (
    *("SetConfig", "UpdateConfig", "AppendConfig", "DeleteConfig", "SetControlState"),
    *("GetMetrics", "GetStates", "GetCapture", "GetVersion", "SetControlAction", "streamGetConfig"),
    *("NoSuchThing", ""),
)
PROTOCOLS_OWN = frozenset({"OK", "INVALID_ARGUMENT", "UNIMPLEMENTED", "RESOURCE_EXHAUSTED",
                           "INTERNAL"})  # fmt: skip
_MAC = "02:00:00:00:00:02"
_FLOW = {
    "name": "f",
    "tx_rx": {"choice": "port", "port": {"tx_name": "p1", "rx_names": ["p2"]}},
    "packet": [
        {"choice": "ethernet", "ethernet": {"dst": {"choice": "value", "value": _MAC}}},
        {"choice": "ipv4", "ipv4": {"dst": {"choice": "increment",
                                            "increment": {"start": "10.0.0.1", "count": 3}}}},
        {"choice": "udp", "udp": {"dst_port": {"choice": "values", "values": [1, 2]}}},
    ],
    "size": {"choice": "fixed", "fixed": 128},
    "rate": {"choice": "pps", "pps": "10"},
    "duration": {"choice": "fixed_packets", "fixed_packets": {"packets": 2}},
    "metrics": {"enable": True, "latency": {"enable": True}},
}  # fmt: skip
_CONFIG = {
    "ports": [{"name": "p1", "location": "p1"}, {"name": "p2", "location": "p2"}],
    "layer1": [{"name": "l", "port_names": ["p1"], "speed": "speed_1_gbps"}],
    "captures": [{"name": "c", "port_names": ["p2"]}],
    "flows": [_FLOW],
}
_WHOLE: dict[str, Any] = {
    "/config": _CONFIG,
    "PATCH": {"choice": "flows", "flows": {"property_names": ["rate"], "flows": [_FLOW]}},
    "/config/append": {"config_append_list": [{"choice": "flows", "flows": [_FLOW]}]},
    "/config/delete": {"config_delete_list": [{"choice": "flows", "flows": ["f"]}]},
    "/control/state": {"choice": "traffic", "traffic": {"choice": "flow_transmit",
                       "flow_transmit": {"state": "start", "flow_names": ["f"]}}},
    "/control/action": {"choice": "port"},
    "/monitor/metrics": {"choice": "flow", "flow": {"flow_names": ["f"]}},
    "/monitor/states": {"choice": "ipv4_neighbors", "ipv4_neighbors": {"ethernet_names": ["p1"]}},
    "/monitor/capture": {"port_name": "p2"},
}  # fmt: skip
_VALUES: tuple[Any, ...] = (
    *("", "\0", "../..", "p1\nstop 0", "f\nclear", "a" * 100_000, "\ud83d", "-1", "NaN", "zz"),
    *("{id}", "{0.__class__}", "%s%n", "0x", "unspecified", "::1%lo", "p1", "h1", "02:00"),
    *(None, True, -1, 0, 2**32, 2**63, 2**64, 2**200, 1e308, 1e-308, 0.5, [], {}, [[]]),
    *([None], [""] * 50, {"choice": "value"}, {"": ""}, {"choice": "nothing"}, ["p1", "p1"]),
)


def requests(rng: random.Random, count: int) -> Iterator[tuple[str, str, bytes]]:
    """Methods, paths and bodies, hardly any of which makes sense."""
    yield "POST", "/config", b"{" + b" " * (17 << 20) + b"}"
    for at in range(count - 1):
        method, path = rng.choice(PATHS)
        whole = _WHOLE["PATCH" if (method, path) == ("PATCH", "/config") else path]
        text = json.dumps(whole).encode()
        match at % 6:
            case 0:
                yield method, path, text[: rng.randrange(len(text))]
            case 1:
                spoilt = bytearray(text)
                for _ in range(4):
                    spoilt[rng.randrange(len(spoilt))] = rng.randrange(256)
                yield method, path, bytes(spoilt)
            case 2:
                deep = rng.choice([70, 5_000, 100_000])
                yield method, path, b'{"flows":[' * deep if at % 4 else b"[" * deep
            case 3:
                wrong = rng.choice(["GET", "PUT", "DELETE", "POST", "OPTIONS"])
                odd = rng.choice(
                    ["", "/", "/config/", "/conf%00ig", "/..", "/control", "/config?x=1"]
                )
                if (wrong, odd) != ("POST", "/config?x=1"):
                    yield wrong, odd or "/x", text
            case _:
                yield method, path, json.dumps(_spoilt(rng, whole)).encode()


def _spoilt(rng: random.Random, whole: Any) -> Any:
    """With some of its values replaced, doubled or gone."""
    spoilt = copy.deepcopy(whole)
    for _ in range(rng.randint(1, 3)):
        place = spoilt
        while True:
            keys = [*place] if isinstance(place, dict) else [*range(len(place))]
            if not keys:
                break
            key = rng.choice(keys)
            if isinstance(place[key], dict | list) and rng.random() < 0.8:
                place = place[key]
                continue
            match rng.randrange(4):
                case 0 if isinstance(place, dict):
                    del place[key]
                case 1 if isinstance(place, dict):
                    place[rng.choice(["devices", "x", "choice", "name", "values", "lags"])] = place[
                        key
                    ]
                case 2 if isinstance(place, list):
                    place.extend([place[key]] * rng.choice([1, 5, 1100]))
                case _:
                    place[key] = rng.choice(_VALUES)
            break
    return spoilt


def streams(rng: random.Random, count: int) -> Iterator[bytes]:
    """What is no HTTP, or breaks off in it."""
    for at in range(count):
        body = json.dumps(_CONFIG).encode()
        head = b"POST /config HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
        match at % 6:
            case 0:
                yield rng.randbytes(rng.randint(1, 2000))
            case 1:
                yield (head + body)[: rng.randrange(len(head) + len(body))]
            case 2:
                yield head.replace(b"Content-Length: ", b"Content-Length: -") + body
            case 3:
                yield b"GET /config HTTP/1.1\r\nX: " + b"a" * 100_000
            case 4:
                yield b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + rng.randbytes(200)
            case _:
                yield head.replace(b"Host", b"Origin: http://x\r\nHost") + body


def throw(port: int, raw: bytes) -> None:
    """Send it, and be gone without a word, sometimes having looked at what comes."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5) as line:
        line.sendall(raw)
        if len(raw) % 2:
            line.settimeout(0.02)
            line.recv(1 << 16)


def calls(port: int, rng: random.Random, count: int) -> Iterator[str]:
    """Of messages that are no protobuf, or are it by chance, the status they end in."""
    from google.protobuf import json_format
    from snappi import otg_pb2

    whole = json_format.ParseDict({"config": _CONFIG}, otg_pb2.SetConfigRequest())
    options = [("grpc.enable_retries", 0)]
    with grpc.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
        for at in range(count):
            call = channel.unary_unary(f"/otg.Openapi/{rng.choice(METHODS)}", lambda raw: raw)
            raw = bytearray(whole.SerializeToString())
            for _ in range(rng.randint(1, 6)):
                raw[rng.randrange(len(raw))] = rng.randrange(256)
            message = bytes(raw) if at % 3 else rng.randbytes(rng.randint(0, 300))
            try:
                call(b"\0" * (17 << 20) if at == 7 else message, timeout=100)
                yield "OK"
            except grpc.RpcError as error:
                yield error.code().name
