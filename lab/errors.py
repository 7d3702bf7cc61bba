"""What can go wrong in the lab, said in one message that names the cure.

LabError                    anything a user can mend; the command line prints it and exits 1
|-- ScenarioError           a scenario that does not exist or does not make sense
|-- SandboxError            this machine does not let us make private namespaces
|-- MissingTool             a program the lab needs is not installed
|-- RunError                a run that started and could not be finished
`-- Cancelled               one that was told to end (`lab/api.py`)
"""

from __future__ import annotations

import errno
import os
import sys

_NO_MEMORY = errno.ENOMEM, errno.EAGAIN
OUTPUTS = {1: "standard output", 2: "standard error"}


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


def unheard(error: OSError) -> LabError | None:
    """What to say if it was our own output that could not be written, as `lab/start.py` notes."""
    if error.filename not in OUTPUTS.values():
        return None
    return LabError(
        f"{error.filename} cannot be written: {error.strerror}",
        "Send it where there is room. What a run keeps in files is there.",
    )


def of_the_machine(error: Exception) -> LabError | None:
    """What to say of what this machine does not give, or of a name that no file can have."""
    said = str(error)
    if (
        isinstance(error, MemoryError)
        or (isinstance(error, SystemError) and "without exception set" in said)  # of code in C
        or (isinstance(error, OSError) and error.errno in _NO_MEMORY)
        or (isinstance(error, RuntimeError) and "start new thread" in said)
        or (isinstance(error, ImportError | OSError) and "failed to map" in said)
    ):
        return LabError(
            "this machine gives it no more memory, or no more threads",
            "Allow it more (ulimit -v, ulimit -u), or ask for less.",
        )
    if not isinstance(error, OSError) or error.strerror is None:
        return None
    if known := unheard(error):
        return known
    if error.filename is None:
        return None
    name = os.fsdecode(error.filename) if not isinstance(error.filename, int) else "a file"
    return LabError(f"{name[:160]}{'...' * (len(name) > 160)}: {error.strerror}")


class ScenarioError(LabError):
    """A scenario that does not exist or does not make sense."""


class SandboxError(LabError):
    """This machine does not let us make private namespaces."""


class MissingTool(LabError):  # noqa: N818  (it says what is wrong better than MissingToolError)
    """A program the lab needs is not installed."""


class RunError(LabError):
    """A run that started and could not be finished."""


def first_reason(*reasons: tuple[object, str]) -> str | None:
    """The first that holds, of rows: whether it does, and what it is."""
    return next((why for holds, why in reasons if holds), None)


def refuse(*refusals: tuple[object, str, str]) -> None:
    """Raise the first that holds, of rows: whether it does, what is wrong, the cure."""
    for holds, message, cure in refusals:
        if holds:
            raise RunError(message, cure)


def refuse_beside(message: str, *others: tuple[object, str]) -> None:
    """Raise if any of the others, each with whether it is asked for, is; its name ends a message
    in which ``{}`` stands for it."""
    cure = "Leave one of them out."
    refuse(*((is_asked, message.format(what), cure) for is_asked, what in others))
