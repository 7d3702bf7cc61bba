"""closlab lsp: driven over stdin and TCP by a client, as an editor does."""

from __future__ import annotations

import json
import random
import re
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compiler.source import Line, Span, Text
from doors.editor.layout import laid_out
from doors.editor.program import Settings
from doors.editor.reading import Reading
from lab.machine.paths import ROOT
from tests.doors import editor_hostile, rereadings
from tests.doors.editor_client import SERVER, Client, framed
from tests.doors.renames import REASONS, sweep
from tests.lab.conftest import closlab

HEADERS = """#include <core.p4>
#include <v1model.p4>
// Ethernet, as it is on the wire.
header ethernet_t {
    bit<48> dst;
    bit<48> src;   // who sent it
    bit<16> kind;
}
struct headers_t { ethernet_t ethernet; ethernet_t[2] more; }
struct meta_t { bit<9> port; }
enum bit<8> colour_t { RED = 1, BLUE = 2 }
"""
MAIN = """#include "headers.p4"
#define TWICE(x) ((x) + (x))

parser P(packet_in packet, out headers_t hdr, inout meta_t meta,
         inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.kind) { 0x800: ours; default: accept; }
    }
    state ours { transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) {
    register<bit<32>>(8) seen;
    // Where to.
    action forward(bit<9> port) { meta.port = port; standard_metadata.egress_spec = port; }
    table routes {
        key = { hdr.ethernet.dst : exact; }
        actions = { forward; NoAction; }
        default_action = NoAction();
    }
    apply {
        bit<32> count;
        seen.read(count, 0);
        count = TWICE(count);
        seen.write(0, count);
        if (routes.apply().hit) { meta.port = 1; }
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) {
    apply { hdr.ethernet.kind = (bit<16>)(bit<8>)colour_t.RED; }
}
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.ethernet); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "headers.p4").write_text(HEADERS)
    (tmp_path / "main.p4").write_text(MAIN)
    return tmp_path


@pytest.fixture
def client(folder: Path) -> Iterator[Client]:
    with Client(folder) as made:
        made.begin()
        made.open("main.p4")
        yield made


def place(text: str, what: str, nth: int = 0) -> tuple[int, int]:
    """Where a word that is marked by `|` stands: `routes.|apply` is that of `apply`."""
    at, shift = what.replace("|", ""), what.index("|") if "|" in what else 0
    offset = [match.start() for match in re.finditer(re.escape(at), text)][nth] + shift
    before = text[:offset]
    return before.count("\n"), offset - (before.rfind("\n") + 1)


def _labels(answer: Any) -> set[str]:
    return {item["label"] for item in answer["items"]}


def _applied(folder: Path, edit: dict[str, Any]) -> dict[str, str]:
    """The files as they are after an edit of one line each."""
    found = {}
    for uri, changes in edit["changes"].items():
        name = Path(uri.removeprefix("file://")).name
        lines = (folder / name).read_text().split("\n")
        for change in sorted(changes, key=lambda c: str(c["range"]["start"]), reverse=True):
            start, end = change["range"]["start"], change["range"]["end"]
            line = lines[start["line"]]
            lines[start["line"]] = (
                line[: start["character"]] + change["newText"] + line[end["character"] :]
            )
        found[name] = "\n".join(lines)
    return found


def test_a_name_is_told_found_and_completed_across_files(client: Client) -> None:
    said = client.at("hover", "main.p4", *place(MAIN, "hdr.ethernet.|dst"))["contents"]["value"]
    assert "bit<48> dst" in said and "header ethernet_t" in said and "6 bytes" in said
    said = client.at("hover", "main.p4", *place(MAIN, "|forward; NoAction"))["contents"]["value"]
    assert "action forward( bit<9> port)".replace("( ", "(") in said and "Where to." in said
    found = client.at("definition", "main.p4", *place(MAIN, "hdr.ethernet.|kind"))
    assert found[0]["uri"] == client.uri("headers.p4")
    assert found[0]["range"]["start"] == dict(zip(("line", "character"), place(HEADERS, "kind"),
                                                  strict=True))  # fmt: skip
    found = client.at("definition", "main.p4", *place(MAIN, "TWICE", 1))
    assert found[0]["range"]["start"]["line"] == 1
    assert client.at("definition", "main.p4", 0, 12)[0]["uri"] == client.uri("headers.p4")
    everywhere = client.at("references", "main.p4", *place(MAIN, "hdr.ethernet.|kind"),
                           context={"includeDeclaration": True})  # fmt: skip
    assert len(everywhere) == 3 == len({json.dumps(each) for each in everywhere})
    assert _labels(client.at("completion", "main.p4", *place(MAIN, "hdr.ethernet.|dst"))) >= {
        "dst", "src", "kind", "isValid", "setValid"}  # fmt: skip
    assert {"read", "write"} == _labels(client.at("completion", "main.p4", *place(MAIN, "seen.|r")))
    assert {"ours", "accept", "reject"} <= _labels(
        client.at("completion", "main.p4", *place(MAIN, "transition |accept; }"))
    )
    words = _labels(client.at("completion", "main.p4", *place(MAIN, "|seen.write")))
    assert {"seen", "routes", "count", "hdr", "if", "colour_t", "TWICE"} <= words
    assert not {"dst", "RED", "extract"} & words
    assert {"RED", "BLUE"} == _labels(
        client.at("completion", "main.p4", *place(MAIN, "colour_t.|RED"))
    )
    names = {each["name"]: each for each in client.at("documentSymbol", "main.p4", 0, 0)}
    assert {"P", "I", "main"} <= {*names} and "ethernet_t" not in names
    assert [each["name"] for each in names["I"]["children"]] == ["seen", "forward", "routes"]


def test_it_goes_on_in_a_program_that_is_broken(client: Client) -> None:
    client.at("hover", "main.p4", 0, 0)
    line, _ = place(MAIN, "        seen.write(0, count);")
    typed = ""
    for letter in "if (hdr.ethernet.":
        client.change("main.p4", letter, (line, len(typed)))
        typed += letter
    assert {"dst", "src", "kind"} <= _labels(client.at("completion", "main.p4", line, len(typed)))
    codes = client.wrong("main.p4", bool)
    assert codes == ["syntax"]
    broken = MAIN.split("\n")
    broken[line] = typed + broken[line]
    said = client.at("hover", "main.p4", *place("\n".join(broken), "routes.apply"))
    assert "table routes" in said["contents"]["value"]
    refused = client.at("rename", "main.p4", *place(MAIN, "count"), newName="total")
    assert "has errors" in refused


def test_all_mistakes_are_told_and_gone_when_they_are_mended(client: Client) -> None:
    wrong = MAIN.replace("meta.port = port", "meta.prt = port").replace(
        "(bit<16>)(bit<8>)colour_t.RED", "nothing"
    ).replace("bit<32> count;", "bit<32> count; bit<4> idle;")  # fmt: skip
    client.change("main.p4", wrong)
    codes = client.wrong("main.p4", lambda found: len(found) > 1)
    assert {"unknown-field", "unknown-name"} <= {*codes}
    error = next(each for each in client.diagnostics[client.uri("main.p4")]
                if each["code"] == "unknown-field")  # fmt: skip
    assert "did you mean 'port'?" in error["message"]
    assert error["range"]["start"] == dict(
        zip(("line", "character"), place(wrong, "meta.|prt"), strict=True)
    )
    client.change("main.p4", MAIN.replace("bit<32> count;", "bit<32> count; bit<4> idle;"))
    assert client.wrong("main.p4", lambda found: len(found) == 1) == ["unused"]
    client.change("main.p4", MAIN)
    assert client.wrong("main.p4", lambda found: not found) == []
    late = MAIN.replace("seen.read(count, 0);", "log_msg(count);")
    client.change("main.p4", late)
    assert client.wrong("main.p4", bool)
    client.open("headers.p4", HEADERS + "header broken_t { bit<8> }\n")
    assert client.wrong("headers.p4", bool) == ["syntax"]


def test_a_rename_is_of_all_places_and_of_these_alone(client: Client, folder: Path) -> None:
    edit = client.at("rename", "main.p4", *place(MAIN, "hdr.ethernet.|kind"), newName="ether_type")
    files = _applied(folder, edit)
    assert files["headers.p4"] == HEADERS.replace("kind", "ether_type")
    assert files["main.p4"] == MAIN.replace("kind", "ether_type")
    edit = client.at("rename", "main.p4", *place(MAIN, "action forward(bit<9> |port"), newName="to")
    assert _applied(folder, edit)["main.p4"] == MAIN.replace(
        "forward(bit<9> port) { meta.port = port; standard_metadata.egress_spec = port;",
        "forward(bit<9> to) { meta.port = to; standard_metadata.egress_spec = to;",
    )
    for what, new, why in (
        ("action forward(bit<9> |port", "meta", "cannot become"),  # it would hide what it writes
        ("|routes.apply", "forward", "cannot become"),
        ("|routes.apply", "action", "is no name"),
        ("|routes.apply", "1x", "is no name"),
        ("V1Switch(P(), V(), I(), E(), C(), D()) |main", "other", "looks for it by that name"),
        ("standard_metadata.|egress_spec", "out_port", "which is not yours"),
        ("state |start", "begin", "begins there"),
        ("apply { |}", "x", "no name"),
    ):
        assert why in client.at("rename", "main.p4", *place(MAIN, what), newName=new), what
    assert "no name" in client.at("prepareRename", "main.p4", *place(MAIN, "hit) |{"))


def test_what_the_compiler_does_not_see_is_told_and_not_left_behind(client: Client) -> None:
    text = MAIN.replace("    apply {\n        bit<32> count;", (
        "    apply {\n#if 0\n        meta.port = 2;\n#endif\n"
        "#ifdef OTHER\n        hdr.more[0].kind = 7;\n#endif\n        bit<32> count;"))  # fmt: skip
    client.change("main.p4", text)
    refused = client.at("rename", "main.p4", *place(text, "meta.|port"), newName="way")
    assert "main.p4:24, where it is left out" in refused
    edit = client.at("rename", "main.p4", *place(text, "hdr.ethernet.|kind"), newName="sort")
    changed = {(each["range"]["start"]["line"], each["range"]["start"]["character"])
               for each in edit["changes"][client.uri("main.p4")]}  # fmt: skip
    assert place(text, "more[0].|kind") in changed  # as it is with OTHER defined


@pytest.mark.slow
def test_columns_are_the_editors(folder: Path) -> None:
    """UTF-16 unless they agree on another: a sign beyond the first plane is two of those."""
    text = MAIN.replace("seen.write(0, count);", "/* \U0001f600é */ seen.write(0, count);")
    for encoding, units in ((None, 2), ("utf-32", 1), ("utf-8", 4)):
        with Client(folder) as client:
            general = {"positionEncodings": [encoding]} if encoding else {}
            client.begin(capabilities={"general": general})
            client.open("main.p4", text)
            line, column = place(text, "|seen.write")
            more = units - 1 + (encoding == "utf-8")
            found = client.at("definition", "main.p4", line, column + more)
            assert found[0]["range"]["start"]["line"] == place(text, "(8) |seen")[0]
            marked = client.at("documentHighlight", "main.p4", line, column + more)
            assert column + more in {each["range"]["start"]["character"] for each in marked}


def test_random_renames_compile_to_the_same() -> None:
    found = sweep(25, 11)
    assert found.wrong == [] and found.compiled > 10 and {*found.refused} <= {*REASONS}


def test_five_hundred_hostile_messages_do_nothing(folder: Path, tmp_path: Path) -> None:
    drawn = random.Random(20260202)
    before = sorted(tmp_path.iterdir())
    with Client(folder) as client:
        for message in editor_hostile.messages(drawn, client.uri("main.p4"), 120):
            client.send(message)
        said = client.ask("textDocument/hover", {})
        assert said["error"]["code"] == -32002
        client.begin()
        client.open("main.p4")
        for message in editor_hostile.messages(drawn, client.uri("main.p4"), 380):
            client.send(message)
        client.send(b"Content-Length: 40000000\r\n\r\n" + b" " * 40_000_000)
        client.change("main.p4", MAIN)
        said = client.at("hover", "main.p4", *place(MAIN, "|routes.apply"))
        assert "table routes" in said["contents"]["value"]
        codes = {each["error"]["code"] for each in client.strays}
        assert {-32700, -32600, -32602} <= codes and len(client.strays) > 100
        assert not any("Traceback" in json.dumps(each) for each in client.strays)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.by_day(1)
@pytest.mark.parametrize("how", ["leaves", "exits unasked"])
def test_a_client_that_goes_ends_the_server(how: str, folder: Path) -> None:
    client = Client(folder)
    client.begin()
    client.open("main.p4")
    if how == "leaves":
        assert client.server.stdin
        client.server.stdin.close()
    else:
        client.notify("exit")
    assert client.server.wait(20) == 1
    for stream in (client.server.stdin, client.server.stdout, client.server.stderr):
        assert stream is not None
        stream.close()


def test_ten_editors_at_once_over_tcp(folder: Path) -> None:
    server = subprocess.Popen(
        [sys.executable, *SERVER, "--tcp", "0"], stderr=subprocess.PIPE, cwd=ROOT, text=True
    )
    try:
        assert server.stderr is not None
        port = int(server.stderr.readline().rsplit(":", 1)[1])
        answers: list[str] = []

        def ask() -> None:
            with socket.create_connection(("127.0.0.1", port), timeout=60) as line:
                stream = line.makefile("rwb")

                def say(**message: Any) -> None:
                    stream.write(framed(json.dumps({"jsonrpc": "2.0", **message}).encode()))
                    stream.flush()

                uri = (folder / "main.p4").as_uri()
                say(id=1, method="initialize", params={"processId": None, "rootUri": None,
                                                       "capabilities": {}})  # fmt: skip
                document = {"uri": uri, "languageId": "p4", "version": 1, "text": MAIN}
                say(method="textDocument/didOpen", params={"textDocument": document})
                at = dict(zip(("line", "character"), place(MAIN, "|routes.apply"), strict=True))
                params = {"textDocument": {"uri": uri}, "position": at}
                say(id=2, method="textDocument/hover", params=params)
                while head := stream.readline():
                    size = int(head.split(b":")[1])
                    while stream.readline().strip():
                        pass
                    said = json.loads(stream.read(size))
                    if said.get("id") == 2:
                        answers.append(said["result"]["contents"]["value"])
                        return

        threads = [threading.Thread(target=ask) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(answers) == 10 and all("table routes" in each for each in answers)
    finally:
        server.terminate()
        server.wait(20)
        assert server.stderr is not None
        assert "Traceback" not in server.stderr.read()
        server.stderr.close()


def test_what_is_wrong_with_the_command_is_told(tmp_path: Path) -> None:
    done = closlab("lsp", "-I", str(tmp_path / "none"))
    assert done.returncode == 1 and "there is no folder" in done.stderr
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = closlab("lsp", "--tcp", str(taken.getsockname()[1]))
    assert done.returncode == 1 and "cannot be listened at" in done.stderr


@pytest.mark.skipif(not shutil.which("nvim"), reason="there is no nvim (apt-get install neovim)")
def test_neovim_starts_it_and_shows_what_is_wrong(folder: Path) -> None:
    (folder / "main.p4").write_text(MAIN.replace("meta.port = port", "meta.prt = port"))
    script = folder / "start.lua"
    command = [sys.executable, *SERVER]
    script.write_text(f"""
local id = vim.lsp.start_client({{
    name = "closlab", cmd = vim.fn.json_decode([==[{json.dumps(command)}]==]),
    cmd_env = {{PYTHONPATH = "{ROOT}"}}, root_dir = "{folder}"}})
vim.lsp.buf_attach_client(0, id)
vim.wait(30000, function() return #vim.diagnostic.get(0) > 0 end, 50)
for _, each in ipairs(vim.diagnostic.get(0)) do
    io.stdout:write(each.code .. " " .. each.lnum .. "\\n")
end
local told = vim.lsp.buf_request_sync(0, "textDocument/hover",
    {{textDocument = vim.lsp.util.make_text_document_params(),
     position = {{line = {place(MAIN, "|routes.apply")[0]},
                 character = {place(MAIN, "|routes.apply")[1]}}}}}, 30000)
io.stdout:write(told[id].result.contents.value .. "\\n")
vim.cmd("qall!")
""")
    done = subprocess.run(
        ["nvim", "--headless", "-u", "NONE", "-c", f"luafile {script}", "main.p4"],
        cwd=folder, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert f"unknown-field {place(MAIN, 'meta.port = port')[0]}" in said and "table routes" in said


@pytest.mark.skipif(not shutil.which("node"), reason="there is no node")
def test_the_extension_of_vs_code_asks_and_shows(folder: Path) -> None:
    (folder / "main.p4").write_text(MAIN.replace("bit<32> count;", "bit<32> count; bit<4> idle;"))
    asked = [str(each) for each in place(MAIN, "|routes.apply")]
    done = subprocess.run(
        ["node", Path(__file__).with_name("editor_vscode.js"),
         ROOT / "doors" / "editor" / "vscode" / "client.js", folder / "main.p4", *asked,
         sys.executable, *SERVER],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads(done.stdout)
    assert "table routes" in said["hover"] and said["placeholder"] == "routes"
    assert said["definition"] == 1 and said["references"] == said["highlight"] == 2
    assert said["rename"] == ["fresh", "fresh"] and "is no name" in said["refused"]
    assert "main" in said["symbols"] and said["completion"] > 20 and said["wrong"] == ["unused"]


def test_the_extension_is_whole() -> None:
    """What its manifest names is there, and the grammar's expressions are ones."""
    folder = ROOT / "doors" / "editor" / "vscode"
    manifest = json.loads((folder / "package.json").read_text())
    contributed = manifest["contributes"]
    named = [manifest["main"], contributed["grammars"][0]["path"],
             contributed["languages"][0]["configuration"]]  # fmt: skip
    assert all((folder / name).is_file() for name in named)
    assert contributed["grammars"][0]["scopeName"] == "source.p4"
    grammar = json.loads((folder / contributed["grammars"][0]["path"]).read_text())
    work, rules = [grammar], 0
    while work:
        rule = work.pop()
        rules += 1
        for key in ("match", "begin", "end"):
            re.compile(rule.get(key, ""))
        if "include" in rule:
            assert rule["include"].removeprefix("#") in grammar["repository"]
        work += [*rule.get("patterns", ()), *rule.get("repository", {}).values()]
    assert rules > 20


def test_what_is_read_again_from_where_it_changed_is_as_it_is_read_anew() -> None:
    assert rereadings.sweep(12, 3) == []


def test_a_text_that_is_laid_out_tells_of_the_one_that_was_written() -> None:
    drawn = random.Random(5)
    lengths = (drawn.choice((0, 1, 62, 63, 64, 127, drawn.randrange(200))) for _ in range(40))
    written = ["x" * length for length in lengths]
    text = Text(
        "\n".join(written) + "\n", [Line("a.p4", n + 1, line) for n, line in enumerate(written)]
    )
    laid = laid_out(text)
    places = [
        (line, column) for line, each in enumerate(written) for column in range(len(each) + 1)
    ]
    for _ in range(500):
        spans = [
            Span(*(each.starts[line] + column for line, column in ends))
            for ends in [sorted(drawn.choices(places, k=2))]
            for each in (text, laid)
        ]
        assert text.position(spans[0]) == laid.position(spans[1])
        assert text.fragment(spans[0]) == laid.fragment(spans[1])
    assert laid.starts[1:-1] != text.starts[1:-1]
    broken = Text('@note("one\ntwo")\n', [Line("a.p4", 1, '@note("one'), Line("a.p4", 2, 'two")')])
    assert laid_out(broken) is broken


def test_what_changes_after_it_is_declared_is_put_back_with_it(tmp_path: Path) -> None:
    text = """struct pair<T> { T a; T b; }
T same<T>(in T x) { return x; }
bit<8> sum(in bit<8> x) { return x; }
control first(inout bit<8> x) {
    apply { pair<bit<8>> p = {x, same<bit<8>>(x)}; x = p.a + sum(p.b); }
}
bit<8> sum(in bit<8> x, in bit<8> y) { return x + y; }
control last(inout bit<8> x) { apply { x = sum(x, 1); } }
"""
    root = tmp_path / "main.p4"
    edited = rereadings.Edited(root)
    reading = Reading(root, Settings(), apart=1)
    for now in (
        text,
        text.replace("p.a +", "p.b +"),
        text.replace("pair<bit<8>> p", "pair<bit<8>> q"),
        text,
    ):
        edited.texts[str(root)] = now
        found, wanted = reading.read(edited.read), rereadings.anew(edited)
        assert rereadings.shown(found) == rereadings.shown(wanted)
    edited.texts[str(root)] = text.replace("x = sum(x, 1)", "x = " + "(" * 300)  # too deep
    assert rereadings.shown(reading.read(edited.read)) == rereadings.shown(rereadings.anew(edited))
    assert found.is_sound and "pair" in str(found.core and found.core.types)
