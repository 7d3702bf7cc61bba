"""The course (private, as all but `closlab.py` is): opened by ``lesson``, judged by ``grade``."""
