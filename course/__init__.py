"""The course in `exercises/`: opened by ``closlab lesson``, judged by ``closlab grade``."""
