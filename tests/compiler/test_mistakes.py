"""Ten mistakes everybody makes once, each in the same small program: the message names the cure."""

from pathlib import Path

import pytest

from compiler import CompileError, compile_program

PROGRAM = """\
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header tag_t {
    bit<8>  n;
    bit<24> rest;
}

struct headers_t {
    ethernet_t ethernet;
    tag_t      tag;
}

struct meta_t {
    bit<9> port;
}

parser MyParser(packet_in pkt, out headers_t hdr, inout meta_t meta,
                inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x1234: tag;
            default: accept;
        }
    }
    state tag {
        pkt.extract(hdr.tag);
        transition accept;
    }
}

control MyVerify(inout headers_t hdr, inout meta_t meta) {
    apply {}
}

control MyIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    action drop() {
        mark_to_drop(std);
    }
    action forward(bit<9> port) {
        std.egress_spec = port;
    }
    table switching {
        key = {
            hdr.ethernet.dst : exact;
        }
        actions = {
            forward;
            drop;
        }
        default_action = drop();
    }
    apply {
        switching.apply();
    }
}

control MyEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {}
}

control MyUpdate(inout headers_t hdr, inout meta_t meta) {
    apply {}
}

control MyDeparser(packet_out pkt, in headers_t hdr) {
    apply {
        pkt.emit(hdr.ethernet);
        pkt.emit(hdr.tag);
    }
}

V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyUpdate(), MyDeparser()) main;
"""

MISTAKES = {
    "missing semicolon": (
        "std.egress_spec = port;", "std.egress_spec = port", "put a ';' here"),
    "width mismatch": (
        "std.egress_spec = port;", "hdr.ethernet.type = port;", "cast it: (bit<16>) ..."),
    "unknown field": (
        "hdr.ethernet.dst : exact", "hdr.ethernet.dts : exact", "did you mean 'dst'?"),
    "missing transition": (
        "pkt.extract(hdr.tag);\n        transition accept;", "pkt.extract(hdr.tag);",
        "end it with 'transition accept;'"),
    "table without default": (
        "        default_action = drop();\n", "", "add 'default_action = ...;'"),
    "wrong match kind": (
        "dst : exact", "dst : exakt", "did you mean 'exact'?"),
    "action parameter misuse": (
        "            forward;\n", "            forward(1);\n",
        "parameters without direction are given by entries, not here: write just 'forward'"),
    "recursive parser without progress": (
        "0x1234: tag;", "0x1234: start_over;",
        "extract a header in the loop, or let one of the transitions leave it"),
    "unparsed header emitted": (
        "0x1234: tag;", "0x1234: accept;", "extract it in the parser, or call setValid()"),
    "wrong v1model argument order": (
        "MyVerify(), MyIngress()", "MyIngress(), MyVerify()", "the order of arguments is (Parser"),
}  # fmt: skip


def messages(folder: Path, text: str) -> str:
    path = folder / "switch.p4"
    path.write_text(text)
    try:
        found = compile_program(path).diagnostics
    except CompileError as refused:
        found = refused.diagnostics
    return "\n".join(d.render() for d in found)


def test_the_program_itself_is_fine(tmp_path: Path) -> None:
    assert messages(tmp_path, PROGRAM) == ""


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_message_names_the_cure(tmp_path: Path, mistake: str) -> None:
    right, wrong, cure = MISTAKES[mistake]
    assert right in PROGRAM
    text = PROGRAM.replace(right, wrong)
    if "start_over" in wrong:
        text = text.replace(
            "    state tag {",
            "    state start_over {\n        transition start_over;\n    }\n    state tag {",
        )
    said = messages(tmp_path, text)
    assert cure in said
    assert "switch.p4:" in said
