"""Benchmarks: each module is one, and `closlab bench NAME` runs its `main`."""
