"""What came of a run: what an engine hands back, how it is counted, and what is kept of it."""
