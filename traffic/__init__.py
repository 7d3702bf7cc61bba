"""RoCEv2 traffic: frames, and hosts that exchange messages."""

from traffic.frames import FrameError, RoceFrame, read_frame
from traffic.plan import HostPlan, HostReport, Message, MessageReport

__all__ = [
    "FrameError",
    "HostPlan",
    "HostReport",
    "Message",
    "MessageReport",
    "RoceFrame",
    "read_frame",
]
