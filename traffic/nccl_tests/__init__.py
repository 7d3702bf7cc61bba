"""What nccl-tests' programs measure, with real data over a fabric of the lab's.

A rank is a program (`rank.c`) that carries out its part of a collective of the lab's by NCCL's
network plugin (`traffic/verbs/nccl_net.c`); `plan.py` says to each what its part is.
"""

from pathlib import Path

from traffic.nccl_tests.plan import PROGRAMS, REDOPS, TYPES, Test, plan_texts, sizes

RANK_SOURCE = Path(__file__).with_name("rank.c")

__all__ = ["PROGRAMS", "RANK_SOURCE", "REDOPS", "TYPES", "Test", "plan_texts", "sizes"]
