"""What C and Python share: said once, in C, or the same on both sides, which the compiler judges.

Every enumeration of a header and every table of words is listed here, with what of Python is the
same or as C's alone; so a new one is not overlooked. Numbers and words that bear the same name in
Python, or are the same words, are found by looking through all of the code.
"""

import ast
import ctypes as c
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from enum import EnumType
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from controller import reports, settings, tables
from lab.engines.sim import native as sim
from lab.machine.paths import FABRIC_PROGRAM, ROOT
from lab.results import conservation, outcome, result
from lab.scenario import security
from params import classes, csig, inc, load_balancing
from switch import dataplane, layout, native, records
from switch.abi import AbiError, Declarations
from switch.build import RUNTIME
from switch.codegen import stateful
from switch.ops import Code, Verb
from topologies.planes import MAX_PLANES
from traffic import (
    congestion,
    endpoint,
    frames,
    layers,
    messages,
    samples,
    scapy_endpoint,
    sue,
    sue_layers,
    uet_layers,
)
from traffic.collectives import ALGORITHMS, CHUNK_BYTES, IN_NETWORK
from traffic.collectives.schedule import MAX_TRANSFER_BYTES
from traffic.endpoint import CORE
from traffic.patterns.flows import _FIRST_PORT

FOLDERS = RUNTIME, CORE, CORE / "cc", sim.FOLDER
HEADERS = [path for folder in FOLDERS for path in sorted(folder.glob("*.h"))]
SOURCES = [path for folder in FOLDERS for path in sorted(folder.glob("*.[ch]"))]
_NO_NUMBERS = {"SW_TRACE_POINT"}
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_ENUM = re.compile(r"\benum (?:(\w+) )?\{(.*?)\}", re.DOTALL)
_WORDS = re.compile(r"const char \*const (\w+)\[\w*\] = \{(.*?)\n? *\};", re.DOTALL)


def code(path: Path) -> str:
    """A file of C without its comments, and the lines of its macros."""
    text = _COMMENT.sub("", path.read_text())
    return re.sub(r"^#.*?[^\\]$", "", text, flags=re.MULTILINE | re.DOTALL)


@cache
def enums() -> dict[str, list[str]]:
    """The headers' enumerations, those without a name by their first member."""
    found = {}
    for path in HEADERS:
        for name, body in _ENUM.findall(code(path)):
            members = re.findall(r"(\w+)\s*(?:=[^,]*)?(?:,|$)", body.strip())
            found[name or members[0]] = members
    return found


@cache
def numbers() -> dict[str, int]:
    """What enumerators and macros of the headers stand for, as the compiler has it."""
    text = _COMMENT.sub("", "\n".join(path.read_text() for path in HEADERS))
    macros = re.findall(r"^#define ([A-Z]\w+) +\(*(?:[A-Z]+_|-?\d|ns_t|ps_t|INT|UINT)", text, re.M)
    names = [each for members in enums().values() for each in members if each != "CC"]
    names = list(dict.fromkeys(names + [each for each in macros if each not in _NO_NUMBERS]))
    return dict(zip(names, asked(names), strict=True))


@cache
def _included() -> str:
    names = [path.name for path in HEADERS if path.name not in ("registry.h",)]
    lines = "".join(f'#include "{name}"\n' for name in names)
    return f"#define _GNU_SOURCE\n#include <stdio.h>\n{lines}"


def asked(expressions: list[str]) -> list[int]:
    """What integer expressions of C are, by the compiler."""
    prints = "".join(f'    printf("%lld\\n", (long long)({each}));\n' for each in expressions)
    program = f"{_included()}int main(void) {{\n{prints}}}\n"
    includes = [f"-I{folder}" for folder in FOLDERS]
    with TemporaryDirectory() as folder:
        output = f"{folder}/asked"
        command = ["gcc", "-w", "-xc", "-", "-DWIDE_WORDS=2", *includes, "-o", output]
        subprocess.run(command, input=program, text=True, check=True)
        return [int(line) for line in subprocess.check_output([output], text=True).split()]


@cache
def word_tables() -> dict[str, list[str]]:
    """The tables of words of C, by file and name; those of a macro's making are left out."""
    found = {}
    for path in SOURCES:
        text = _COMMENT.sub("", path.read_text())
        for name, body in _WORDS.findall(text):
            if "COUNTER" not in body:
                assert f"{path.stem}.{name}" not in found, "two of a name in a file"
                found[f"{path.stem}.{name}"] = re.findall(r'"(.*?)"', body)
    return found


# --- what is listed -------------------------------------------------------------------------------


def plain(names: Mapping[str, Any] | EnumType) -> dict[str, int]:
    """Members of an enumeration of Python, or variables."""
    return {name: int(getattr(each, "value", each)) for name, each in dict(names).items()}


def starting(module: object, prefix: str) -> dict[str, int]:
    """A module's numbers that begin so."""
    return {n: v for n, v in vars(module).items() if n.startswith(prefix) and isinstance(v, int)}


def in_order(names: Any) -> dict[str, int]:
    """Words, as names that count from zero."""
    return {str(name).upper().replace("-", "_"): at for at, name in enumerate(names)}


# Of an enumeration of C: what its names begin with, and the same in Python.
SHARED: dict[str, tuple[str, dict[str, int]]] = {
    "aeth_syndrome": ("AETH_", {
        "ACK": messages.ACK, "NAK_SEQUENCE": messages.NAK_OUT_OF_SEQUENCE,
        **{n: v for n, v in starting(messages, "NAK_").items() if "SEQUENCE" not in n},
    }),
    "book": ("BOOK_", in_order(native.BOOKS)),
    "bth_opcode": ("BTH_", {
        **{n.replace("IMMEDIATE", "IMM"): v for n, v in plain(frames.Opcode.__members__).items()},
        "ACK": messages._ACKNOWLEDGE, "CNP": samples._CNP,
    }),
    "cc_kind": ("CC_IS_", in_order(congestion.Kind)),
    "cc_signal": ("CC_", in_order(["MARKS", "TELEMETRY", "DELAY", "CREDIT", "CSIG", "ECHOES"])),
    "cc_users": ("CC_", {n: 1 << at for n, at in in_order(endpoint.TransportKind).items()}),
    "csig_type": ("CSIG_", in_order([*(signal.name for signal in csig.Signal), "TYPES"])),
    "ctl_kind": ("CTL_", {n.removeprefix("CTL_"): v for n, v in starting(records, "CTL_").items()}),
    "ctl_target": ("CTL_", starting(records, "TO_")),
    "ctl_verb": ("CTL_", plain(Verb.__members__)),
    "entropy_policy": ("ENTROPY_", in_order(endpoint.Entropy)),
    "ep_acks": ("EP_ACKS_", in_order(["data", "control", "lossless"])),
    "ep_delivery": ("EP_", in_order(endpoint.Delivery)),
    "ep_headers": ("EP_", in_order(endpoint.Headers)),
    "ep_payload": ("EP_PAYLOAD_", in_order(["pattern", "none"])),
    "ep_recovery": ("EP_", in_order(endpoint.Recovery)),
    "ep_transport": ("EP_", in_order(endpoint.TransportKind)),
    "event_kind": ("", starting(dataplane, "EVENT_")),
    "inc_kind": ("INC_", {"PART": 0x11, "RESULT": 0x12, "HELP": 0x13, "ASK": 0x14, "GIVEN": 0x15}),
    "inc_op": ("INC_", {
        name.upper().replace("-", "_"): at
        for at, name in enumerate(op for op in ALGORITHMS if IN_NETWORK in ALGORITHMS[op])
    }),
    "llr_count": ("LLR_", {**in_order(outcome.TRIES), "COUNTS": len(outcome.TRIES)}),
    "mrc_opcode": ("MRC_", {name: opcode for opcode, name in layers.MRC_OPCODES.items()}),
    "net_lost": ("NET_", in_order([result.CUT, result.HALTED, "ways_to_lose"])),
    "net_pause_kind": ("NET_", in_order(sim.PAUSE_KINDS)),
    "sue_op": ("SUE_", in_order(sue_layers.OPS)),
    "sw_role": ("SW_", {**plain(dataplane.Role.__members__), "ROLES": len(dataplane.Role)}),
    "transfer_kind": ("TRANSFER_", in_order(endpoint.TransferKind)),
    "transfer_state": ("TRANSFER_", in_order(endpoint.TransferState)),
    "uet_type": ("UET_", {
        "RUD_REQ": uet_layers.RUD_REQ, "ACK_CC_TYPE": uet_layers.ACK_CC, "CTRL": uet_layers.CONTROL,
        "NACK_TYPE": uet_layers.NACK, "RUD_CC_REQ": uet_layers.RUD_CC_REQ,
        "ROD_REQ": uet_layers.ROD_REQ, "ROD_CC_REQ": uet_layers.ROD_CC_REQ,
        "RUDI_REQ": uet_layers.RUDI_REQ, "RUDI_RESP": uet_layers.RUDI_RESP,
        "UUD_REQ": uet_layers.UUD_REQ,
    }),
}  # fmt: skip
# Enumerations, a name of each, that no code of Python knows of; its numbers may be in NUMBERS.
OF_C_ALONE = {
    *(
        "AEAD_KEY",
        "BTH_BECN",
        "CC_PARAMETERS",
        "CSIG_COMPACT",
        "ENTROPY_MAX",
        "ETHERTYPE_CSIG",
        "ETHERTYPE_SUNH",
        "SUE_STORE",
        "EP_DATA_HEADER",
        "TSS_TYPE",
        "EP_PORTS",
        "EP_WAY_NOTES",
        "INC_PORT",
    ),
    *("ETHERTYPE_IPV4", "INT_HOPS", "METER_GREEN", "MRC_ACK_REQUEST", "MRC_METH", "MRC_SKIP_ONCE"),
    "mrc_operation",
    *("OWE_ACK", "ROCE_PORT", "SCRIPT_LINE_MAX", "STAMPS", "UET_ANSWERS", "UET_CC_NSCC"),
    *("UET_CTRL_PROBE", "UET_MARKED", "UET_NACK_OF_RUDI", "UET_NACK_TRIMMED", "UET_NEXT_NONE"),
    *("UET_PDS", "UET_PORT"),
    *("UET_SES_WRITE", "WIRE_ETHERNET", "cable_fate", "cable_way", "cc_name"),
    *("ctl_reason", "ep_error", "ep_event_kind", "ep_trait", "likeness_kind", "llr_fate"),
    *("pkt_type", "socket_wait", "sw_drop", "sw_match", "uet_answer_kind", "uet_kind", "way_state"),
}
# Numbers under another name in Python; under the same name they are found.
NUMBERS: dict[str, int] = {
    "AETH_NAK_SEQUENCE": samples._PSN_ERROR,
    "BTH_ACK": samples._ACK,
    "CSIG_COMPACT": csig.Tag.COMPACT.bytes,
    "CSIG_WIDE": csig.Tag.WIDE.bytes,
    "CTL_ALL": native.ALL,
    "CTL_BY_PROGRAM": records.BY_PROGRAM,
    "EP_MESSAGE_MAX": MAX_TRANSFER_BYTES,
    "EP_PORTS": MAX_PLANES,
    "INC_PORT": inc.PORT,
    "INC_SLOTS_MAX": inc.MAX_SLOTS,
    "INC_VECTOR": CHUNK_BYTES,
    "IN_SUM": tables.DROP_REASONS.index(tables.IN_SUM),
    "IP_UDP": frames._UDP_PROTOCOL,
    "MRC_NODE": samples._MRC_NODE,
    "MRC_RETX": samples._MRC_SENT_AGAIN,
    "MRC_STAMPED": samples._MRC_STAMPED,
    "NET_NOWHERE": sim.NOWHERE,
    "NS_NEVER": sim.NEVER,
    "SUE_CHANNELS": sue.CHANNELS,
    "SUE_COMMAND": sue.COMMAND_BYTES,
    "SUE_HEADERS": sue.sue_headers_bytes(0) - 4,
    "SUE_MIN": samples._MIN,
    "SUE_NEXT_HEADER": sue.NEXT_HEADER,
    "SUE_STORE_MAX": sue.STORE_BYTES,
    "SUE_WINDOW_MAX": sue.WINDOW_MAX,
    "SW_DIRECT_BITS": layout.SMALL_KEY_BITS,
    "SW_FRAME_MAX": stateful.FRAME_MAX,
    "SW_NEVER": native.NEVER,
    "SW_NO_ACTION": native.NONE,
    "TABLE_KEY_WORDS_MAX": layout.KEY_WORDS_MAX,
    "TABLE_NONE": native.NONE,
    "TSS_HEADER": security.HEADER_BYTES,
    "TSS_ICV": security.ICV_BYTES,
    "TSS_SSI": security.SSI_BYTES,
    "UET_FIRST_PORT": _FIRST_PORT,
    "UET_NACK_TRIMMED": min(uet_layers._CODES),
    "WIRE_BTH": frames._BTH.size,
    "WIRE_ETHERNET": frames._ETHERNET.size,
    "WIRE_ICRC": frames._ICRC.size,
    "WIRE_INT_DOMAIN": frames.INT_DOMAIN,
    "WIRE_INT_MD": frames._INT_HEADER.size,
    "WIRE_INT_SHIM": frames._INT_SHIM.size,
    "WIRE_IPV4": frames._IPV4.size,
    "WIRE_IPV6": frames._IPV6.size,
    "WIRE_UDP": frames._UDP.size,
    "sizeof(struct arrival_times)": layout.ARRIVAL_BYTES,
    "sizeof(struct port_count)": layout.COUNTER_BYTES,
    "sizeof(struct sw_meter)": layout.METER_BYTES,
}
# Tables of words: the enumeration of C that they name, what its names begin with.
NAMED: dict[str, tuple[str, str]] = {
    "script.PAYLOADS": ("ep_payload", "EP_PAYLOAD_"),
    "script.RECOVERIES": ("ep_recovery", "EP_"),
    "script.CLASSES": ("ep_acks", "EP_ACKS_"),
    "script.TRANSPORTS": ("ep_transport", "EP_"),
    "script.DELIVERIES": ("ep_delivery", "EP_"),
    "script.SEMANTICS": ("ep_headers", "EP_"),
    "script.ENTROPIES": ("entropy_policy", "ENTROPY_"),
    "script.OPERATIONS": ("inc_op", "INC_"),
    "script.KINDS": ("transfer_kind", "TRANSFER_"),
    "script.STATES": ("transfer_state", "TRANSFER_"),
    "endpoint.STATES": ("way_state", "WAY_"),
}


def test_every_enumeration_of_c_is_listed() -> None:
    assert set(enums()) == set(SHARED) | OF_C_ALONE
    assert not set(SHARED) & OF_C_ALONE


@pytest.mark.parametrize("name", SHARED)
def test_an_enumeration_is_the_same_on_both_sides(name: str) -> None:
    prefix, ours = SHARED[name]
    theirs = {each.removeprefix(prefix): numbers()[each] for each in enums()[name]}
    assert ours == theirs


def test_numbers_are_the_same_under_either_name() -> None:
    theirs = dict(zip(NUMBERS, asked(list(NUMBERS)), strict=True))
    wrong = {name: ours for name, ours in NUMBERS.items() if (ours - theirs[name]) % 2**64}
    assert not wrong


def test_every_table_of_words_names_its_enumeration() -> None:
    by_place = {
        "endpoint.ERRORS": "ep_error",
        "sw.sw_drop_names": "sw_drop",
        "sw.kinds": "pkt_type",
    }
    assert set(word_tables()) == set(NAMED) | set(by_place)
    for table, (enum, prefix) in NAMED.items():
        names = (each.removeprefix(prefix) for each in enums()[enum])
        assert word_tables()[table] == [each.lower().replace("_", "-") for each in names], table
    for table, enum in by_place.items():
        placed = set(re.findall(r"\[(\w+)\] = \"", code(next(
            path for path in SOURCES if path.name == f"{table.partition('.')[0]}.c"
        ))))  # fmt: skip
        assert placed & set(enums()[enum]) >= set(enums()[enum]) - _UNNAMED, table


def test_codes_of_refusals_are_those_of_the_run_time() -> None:
    numbered = {reason: native.reason(reason)[0] for reason in range(1, numbers()["CTL_REASONS"])}
    assert set(numbered.values()) <= set(map(int, Code))
    assert numbered[numbers()["CTL_EXISTS"]] == Code.ALREADY_EXISTS
    assert numbered[numbers()["CTL_NOT_FOUND"]] == Code.NOT_FOUND
    assert numbered[numbers()["CTL_ABORTED"]] == Code.ABORTED


# What ends an enumeration, and packets that are called copies.
_UNNAMED = {
    *("DROP_REASONS", "PKT_INGRESS_CLONE", "PKT_EGRESS_CLONE", "PKT_COALESCED", "PKT_REPLICA"),
}


# --- what P4 and Python share -------------------------------------------------------------------

_P4_CONST = re.compile(r"^const [\w<>]+\s+(\w+)\s*= (0x[0-9A-Fa-f]+|\d+);", re.MULTILINE)
_P4_ENUM = re.compile(r"^enum bit<\d+> (\w+) \{(.*?)^\}", re.DOTALL | re.MULTILINE)


@cache
def p4_code() -> str:
    """The fabric's program without its comments."""
    files = sorted(FABRIC_PROGRAM.parent.glob("*.p4"))
    return re.sub(r"//.*", "", "\n".join(path.read_text() for path in files))


def p4_numbers() -> dict[str, int]:
    """What its constants are."""
    return {name: int(value, 0) for name, value in _P4_CONST.findall(p4_code())}


def p4_enums() -> dict[str, dict[str, int]]:
    """Its enumerations."""
    return {
        name: {member: int(value) for member, value in re.findall(r"(\w+)\s*= (\d+)", body)}
        for name, body in _P4_ENUM.findall(p4_code())
    }


# Its numbers under another name in Python; under the same name they are found.
OF_P4: dict[str, tuple[int, ...]] = {
    "INT_DOMAIN": (frames.INT_DOMAIN,),
    "PRIORITY_CONTROL": (classes.PAUSE_PRIORITY, settings.USUAL.control_queue),
    "PRIORITY_ROUTING": (classes.CONTROL_PRIORITY,),
    "PROTOCOL_UDP": (frames._UDP_PROTOCOL,),
    "UDP_PORT_INT": (frames.INT_PORT, reports._INT_PORT),
}
# Its enumerations; copies are the program's own business.
ENUMS_OF_P4: dict[str, dict[str, int] | None] = {
    "copy_t": None,
    "drop_reason_t": in_order(tables.DROP_REASONS),
    "inc_kind_t": None,  # of hexadecimal numbers: tests/fabric/test_inc.py has them
    "policy_t": in_order(policy.value for policy in load_balancing.Policy),
    "stuck_t": {"NO": 0, **{each.name: number for each, number in tables._REMEDIES.items()}},
}


def test_numbers_of_p4_are_those_of_python() -> None:
    theirs = p4_numbers()
    assert len(theirs) > 50
    wrong = {n: ours for n, ours in OF_P4.items() if set(ours) != {theirs[n]}}
    assert not wrong
    same = {
        (name, value, theirs[name.lstrip("_")])
        for path, name, value in named_numbers()
        if path.startswith("controller/") and name.lstrip("_") in theirs
    }
    assert {name for name, *_ in same} >= {"SESSION_REPORTS"}
    assert not [each for each in same if each[1] != each[2]]


def test_enumerations_of_p4_are_those_of_python() -> None:
    assert p4_enums().keys() == ENUMS_OF_P4.keys()
    for name, ours in ENUMS_OF_P4.items():
        assert ours is None or ours == p4_enums()[name], name


# --- what is found --------------------------------------------------------------------------------


@cache
def nodes() -> list[tuple[str, ast.AST]]:
    """What may be a copy in the project's own code, by place."""
    listed = subprocess.check_output(["git", "ls-files", "*.py"], cwd=ROOT, text=True).split()
    ours = [each for each in listed if each.partition("/")[0] in _ROOMS]
    wanted = ast.Assign | ast.ClassDef | ast.Tuple | ast.List | ast.Set
    return [
        (path, node)
        for path in ours
        for node in ast.walk(ast.parse((ROOT / path).read_text()))
        if isinstance(node, wanted)
    ]


_ROOMS = {"controller", "lab", "params", "switch", "topologies", "traffic", "views"}


def named_numbers() -> Iterator[tuple[str, str, int]]:
    """Every constant of Python that is a plain number, by file and name."""
    for path, node in nodes():
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=int(value))):
                yield path, name, value
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                for target, each in zip(names, values, strict=True):
                    if isinstance(target, ast.Name) and isinstance(each, ast.Constant):
                        yield path, target.id, each.value


def test_numbers_of_the_same_name_are_the_same() -> None:
    shared = [
        (path, name, value, numbers()[name.lstrip("_")])
        for path, name, value in named_numbers()
        if name.lstrip("_") in numbers()
    ]
    assert {"ROCE_PORT", "UET_PORT", "ENTROPY_MAX", "_INT_HOPS"} <= {name for _, name, *_ in shared}
    assert not [each for each in shared if each[2] != each[3]]


def word_lists() -> Iterator[tuple[str, bool, list[str]]]:
    """Tuples, lists, sets, Literals and classes of words: file, whether it is a class, words."""
    for path, node in nodes():
        found: list[ast.expr] = []
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            found = node.elts
        elif isinstance(node, ast.ClassDef):
            found = [each.value for each in node.body if isinstance(each, ast.Assign)]
        words = [each.value for each in found if isinstance(each, ast.Constant)]
        if len(words) > 1 and all(isinstance(each, str) for each in words):
            yield path, isinstance(node, ast.ClassDef), words


# Lists that have words of a table of C, and others.
_OTHERS = [
    ("params/link.py", ["none", "go-back-n", "selective"]),  # of links
    ("traffic/collectives/local.py", ["send", "receive", "work", "network"]),
    ("traffic/collectives/schedule.py", ["collective", "flows", "compute", "node", "wait"]),
    ("traffic/nccl_tests/plan.py", ["all-reduce", "reduce-scatter", "send-receive"]),
    ("lab/bmwg/uet.py", ["all-reduce", "all-to-all", "all-gather"]),
    ("views/report/nccl.py", ["reduce-scatter", "all-gather", "all-to-all"]),
]


def test_lists_of_words_of_a_table_have_words_of_that_table() -> None:
    seen = []
    for path, is_class, ours in word_lists():
        for table, theirs in word_tables().items():
            if sum(each in ours for each in theirs) > 1:
                seen.append((path, ours))
                is_right = ours == theirs if is_class else set(ours) <= set(theirs)
                assert is_right or (path, ours) in _OTHERS, f"{path}: {ours} is not {table}"
    assert all(each in seen for each in _OTHERS)
    assert "endpoint.py" in "".join(path for path, _ in seen)


def test_reasons_that_python_gives_are_those_of_c() -> None:
    said = {*scapy_endpoint._REFUSALS.values(), "retry-exceeded"}
    assert said <= set(word_tables()["endpoint.ERRORS"])
    lost = {*conservation._AT_THE_PORT, *conservation._BY_PORT}
    assert lost <= set(word_tables()["sw.sw_drop_names"])


# --- what is read ---------------------------------------------------------------------------------

RECORDS = {
    "ctl_head": records.HEAD, "ctl_table": records.TABLE, "ctl_member": records.MEMBER,
    "ctl_group_member": records.GROUP_MEMBER, "ctl_replicas": records.REPLICAS,
    "ctl_replica": records.REPLICA, "ctl_cell": records.CELL, "ctl_digest": records.DIGEST,
    "ctl_entry": records.ENTRY, "event_head": dataplane.EVENT, "memory_frame": dataplane.FRAME,
}  # fmt: skip


def test_what_is_read_of_structs_is_what_the_compiler_makes_of_them() -> None:
    expected = {f"sizeof(struct {name})": record.size for name, record in RECORDS.items()}
    for declared in (native.DECLARED, sim.DECLARED):
        for name, mirror in declared.mirrors.items():
            expected[f"sizeof(struct {name})"] = c.sizeof(mirror)
            for member, *_ in mirror._fields_:
                field = getattr(mirror, member)
                expected[f"offsetof(struct {name}, {member})"] = field.offset
                expected[f"sizeof(((struct {name} *)0)->{member})"] = field.size
    assert dict(zip(expected, asked(list(expected)), strict=True)) == expected
    assert len(expected) > 100


def test_all_structs_are_read() -> None:
    found = {
        name
        for module in (native, sim)
        for name, each in vars(module).items()
        if isinstance(each, type) and issubclass(each, c.Structure)
    }
    mirrors = native.DECLARED.mirrors | sim.DECLARED.mirrors
    assert found == {each.__name__ for each in mirrors.values()}
    packed = (Path(module.__file__ or "").read_text() for module in (records, dataplane))
    assert set(re.findall(r'packed\(\s*"(\w+)"', "".join(packed))) == set(RECORDS)
    outside = [path for path, node in nodes() if isinstance(node, ast.ClassDef) and "Structure" in
               {getattr(base, "attr", "") for base in node.bases}]  # fmt: skip
    assert set(outside) == {"switch/native.py", "lab/engines/sim/native.py"}


@pytest.mark.parametrize("declared", [native.DECLARED, sim.DECLARED], ids=["switch", "sim"])
def test_what_is_read_of_enumerations_and_numbers_is_what_the_compiler_has(
    declared: Declarations,
) -> None:
    read = 0
    for name, members in enums().items():
        with suppress(AbiError, ValueError):
            assert declared.enum(name) == {each: numbers()[each] for each in members}
            read += 1
    assert read > 1


def test_numbers_that_are_read_are_what_the_compiler_has() -> None:
    text = Path(native.__file__).read_text()
    read = [*re.findall(r'DECLARED\.number\("(\w+)"\)', text), "DROP_REASONS"]
    assert [native.DECLARED.number(name) for name in read] == asked(read)
    assert len(read) > 4


def header(folder: Path, text: str) -> Declarations:
    (folder / "some.h").write_text(text)
    return Declarations(folder / "some.h")


def test_records_are_laid_out_as_their_header_says(tmp_path: Path) -> None:
    declared = header(
        tmp_path,
        "struct head { uint16_t kind, verb; /* uint32_t no; */ uint32_t length; };\n"
        "struct most { struct head head; int32_t a[2]; ns_t when; uint64_t values[]; };\n"
        "struct holed { uint32_t a; uint64_t b; };\n",
    )
    assert declared.packed("most").format == "<HHIiiQ"
    with pytest.raises(AbiError, match="struct holed has holes"):
        declared.packed("holed")


def test_functions_are_called_as_they_are_declared(tmp_path: Path) -> None:
    declared = header(
        tmp_path,
        "struct told { uint32_t a; };\nstruct other;\n"
        "const char *name_of(const struct other *other, uint16_t n); /* int name_of(void); */\n"
        "struct told *told_by(struct other *by,\n                     bool is, ns_t in[ROOM]);\n"
        "void take(struct told by_value, const char *name, const void *bytes, double share);\n"
        "int none(void);\nns_t made(uint8_t *bytes)\n{\n    return 0;\n}\n",
    )

    @declared.mirror("told")
    class Told(c.Structure):
        """Something."""

    told = c.POINTER(Told)
    numbers = c.POINTER(c.c_uint64)
    assert declared.signature("name_of") == (c.c_char_p, [c.c_void_p, c.c_uint16])
    assert declared.signature("told_by") == (told, [c.c_void_p, c.c_bool, numbers])
    assert declared.signature("take") == (None, [Told, c.c_char_p, c.c_void_p, c.c_double])
    assert declared.signature("none") == (c.c_int, [])
    assert declared.signature("made") == (c.c_uint64, [c.c_void_p])


def test_what_no_header_declares_is_refused(tmp_path: Path) -> None:
    declared = header(tmp_path, "struct other { uint32_t x; };\n")
    with pytest.raises(AbiError, match="no header declares struct hosted_link"):
        declared.mirror("hosted_link")(type("Link", (c.Structure,), {}))
    with pytest.raises(AbiError, match=r"no header declares loop_new\(\)"):
        declared.signature("loop_new")
    with pytest.raises(AbiError, match="no header declares enum book"):
        declared.enum("book")


def called() -> set[str]:
    """The functions of C that Python calls."""
    files = [*(ROOT / "switch").rglob("*.py"), *sim.FOLDER.glob("*.py")]
    text = "".join(path.read_text() for path in files)
    return set(re.findall(r"(?:_native|runtime\(\)|library\(\)|loaded)\.(\w+_\w+)", text))


def test_every_function_that_python_calls_is_declared_with_types_that_are_known() -> None:
    for name in called():
        declared = sim.DECLARED if name.startswith(("net_", "ranks_", "way_")) else native.DECLARED
        _, taken = declared.signature(name)
        assert None not in taken, name
    assert len(called()) > 60


def test_counters_of_ports_are_those_of_the_endpoint() -> None:
    said = re.search(
        r"#define EP_PORT_COUNTERS\(X\) (.*)\n(?!\s*X)", (CORE / "endpoint.h").read_text()
    )
    assert said
    names = re.findall(r"X\((\w+)\)", said[1])
    paused = [f"paused_{priority}_ns" for priority in range(numbers()["SW_QUEUES"])]
    assert list(endpoint.PORT_COUNTERS) == names + paused
    size = "sizeof(struct ep_port_counters)"
    assert asked([size]) == [8 * len(endpoint.PORT_COUNTERS)]
    assert [name for name in sim.counter_names() if "paused" in name] == paused
