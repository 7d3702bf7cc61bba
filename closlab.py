"""closlab from Python: run scenarios, compare and sweep them, read what came of it.

    import closlab

    run = closlab.run("incast", set={"pfc.enabled": False})
    run.result.drops.total       # all figures, as in result.json
    run.flows, run.timeseries    # pandas.DataFrame, or lists of records without pandas
    run.report()                 # the page's path; a notebook shows it by itself

    closlab.sweep("incast", {"pfc.enabled": [True, False], "seed": range(1, 9)}).table
    closlab.compare("runs/off", "runs/on").report()
    for snapshot in closlab.watch("incast", every="10us"): ...  # a run while it lasts

docs/python.md has all of it. What is named in ``__all__`` is public; everything else of closlab,
the packages it consists of included, is private and may change.
"""

from lab.api import (
    Cancelled,
    Comparison,
    Run,
    Sweep,
    Watch,
    compare,
    read,
    records,
    run,
    scenario,
    scenarios,
    sweep,
    watch,
)
from lab.errors import LabError, MissingTool, RunError, SandboxError, ScenarioError
from lab.progress import Progress
from lab.results.snapshot import Snapshot
from lab.scenario.model import Scenario

__all__ = [
    "Cancelled",
    "Comparison",
    "LabError",
    "MissingTool",
    "Progress",
    "Run",
    "RunError",
    "SandboxError",
    "Scenario",
    "ScenarioError",
    "Snapshot",
    "Sweep",
    "Watch",
    "compare",
    "read",
    "records",
    "run",
    "scenario",
    "scenarios",
    "sweep",
    "watch",
]

Glance = Snapshot  # what it was called; goes with the version after this one
