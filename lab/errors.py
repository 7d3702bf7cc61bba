"""What can go wrong in the lab, said in one message that names the cure.

LabError                    anything a user can mend; the command line prints it and exits 1
|-- ScenarioError           a scenario that does not exist or does not make sense
|-- CapsuleError            this machine does not let us make private namespaces
|-- MissingTool             a program the lab needs is not installed
|-- RunError                a run that started and could not be finished
`-- Cancelled               one that was told to end (`lab/api.py`)
"""

from __future__ import annotations

import sys


class LabError(Exception):
    """A failure with a message for the user and, where there is one, its cure."""

    def __init__(self, message: str, cure: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.cure = cure
        if cure:
            self.add_note(cure)  # a traceback shows it

    def show(self) -> None:
        """Tell the user."""
        print(f"closlab: {self.message}", file=sys.stderr)
        if self.cure:
            print(self.cure, file=sys.stderr)


class ScenarioError(LabError):
    """A scenario that does not exist or does not make sense."""


class CapsuleError(LabError):
    """This machine does not let us make private namespaces."""


class MissingTool(LabError):  # noqa: N818  (it says what is wrong better than MissingToolError)
    """A program the lab needs is not installed."""


class RunError(LabError):
    """A run that started and could not be finished."""
