"""What can go wrong between the controller and its switches."""


class ControllerError(Exception):
    """A switch could not be reached or refused what it was told."""


class OtherProgramError(ControllerError):
    """A program lacks what the controller fills: somebody's own, in which it has another name."""
