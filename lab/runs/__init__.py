"""Runs: one from source to result, many at once, and the same on both engines."""
