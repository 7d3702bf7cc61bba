"""What is read may come from anybody: it starts no command, and nothing is written but in --out.

Names in a scenario, in a topology file and in a P4 program say what a shell, a path or a line of C
would obey. A process that uses them tells what it opens to write and what it starts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import yaml

from switch.cache import cache_dir

ROOT = Path(__file__).resolve().parents[2]
EVIL = (
    "$(touch pwned)", "`touch pwned`", "; touch pwned #", "../../pwned", "/pwned",
    '"); system("touch pwned"); //', "pwned\n#include </pwned>", "%s%n pwned", "-o pwned",
)  # fmt: skip
# What a process does, as CPython tells whoever audits it.
WATCHED = """
import json, os, sys
opened, started = [], []

def note(event, told):
    if event == "open" and isinstance(told[0], (str, bytes)) and told[2] & (
        os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        opened.append(os.path.abspath(os.fsdecode(told[0])))
    elif event in ("os.mkdir", "os.rename", "os.remove", "os.symlink", "os.link"):
        opened.extend(os.path.abspath(os.fsdecode(each)) for each in told[:2]
                      if isinstance(each, (str, bytes)))
    elif event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn"):
        started.append(repr(told[:2]))

sys.addaudithook(note)
from lab.cli import main
codes = []
for words in json.loads(sys.argv[1]):
    sys.argv = ["closlab", *words]
    try:
        main()
    except SystemExit as end:
        codes.append(end.code or 0)
print(json.dumps([codes, sorted(set(opened)), started]))
"""


def watched(folder: Path, *commands: tuple[str, ...]) -> list[int]:
    """How commands end, which write to no other places and start nothing that was named to them."""
    (folder / "tmp").mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, json.dumps(commands)],
        cwd=folder, env=os.environ | {"TMPDIR": str(folder / "tmp"), "PYTHONPATH": str(ROOT),
                                      "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout, done.stderr
    codes, opened, started = json.loads(done.stdout.splitlines()[-1])
    own = folder / "out", folder / "tmp", cache_dir(), Path("/dev"), Path("/proc/self")
    for path in map(Path, opened):
        assert path in cache_dir().parents or any(path.is_relative_to(each) for each in own), path
    assert not [each for each in started if "pwned" in each]
    assert "Traceback" not in done.stderr
    assert not [*folder.rglob("*pwned*")]
    return list(codes)


def test_names_of_a_scenario_do_nothing(tmp_path: Path) -> None:
    scenario = {
        "name": "mine",
        "about": " ".join(EVIL),
        "topology": {"kind": "leaf-spine", "leaves": len(EVIL), "spines": 1, "hosts_per_leaf": 2},
        "tenants": {
            name: [f"h{2 * number + 1}", f"h{2 * number + 2}"] for number, name in enumerate(EVIL)
        },
        "traffic": {"kind": "flows", "flows": [{"src": "h1", "dst": "h2", "bytes": "20KB"}]},
    }
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(scenario))
    words = ("run", "mine.yaml", "--engine", "sim", "--out", "out", "--pcap")
    assert watched(tmp_path, words) == [0]
    assert (tmp_path / "out" / "result.json").exists()


def test_names_of_a_topology_do_nothing(tmp_path: Path) -> None:
    """Whether they can be names or not."""
    commands = []
    for number, evil in enumerate(EVIL):
        topology = {
            "hosts": {"h1": {}, "h2": {}},
            "switches": {evil: {}},
            "links": [["h1", f"{evil}-p1"], ["h2", f"{evil}-p2"]],
        }
        file = tmp_path / f"t{number}.json"
        file.write_text(json.dumps(topology))
        chosen = f"topology={{kind: file, path: {file.name}}}"
        commands.append(("run", "incast", "--engine", "sim", "--out", "out", "--set", chosen))
    assert set(watched(tmp_path, *commands)) <= {0, 1}


def test_names_of_a_program_do_nothing(tmp_path: Path) -> None:
    text = (ROOT / "tests" / "p4" / "tables" / "many_keys.p4").read_text()
    said_so = " ".join(f"@mark({json.dumps(evil)})" for evil in EVIL if "\n" not in evil)
    text = text.replace("table marks", f"{said_so} @name({json.dumps(EVIL[5])}) table marks")
    (tmp_path / "p.p4").write_text(text.replace("../include", str(ROOT / "tests/p4/include")))
    (tmp_path / "out").mkdir()
    assert watched(tmp_path, ("p4c", "p.p4", "-o", "out/p.json")) == [0]
    assert "pwned" in (tmp_path / "out" / "p.json").read_text()
