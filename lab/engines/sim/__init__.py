"""The simulator: everything in this process, under a virtual clock."""
