"""The lab (private, as all but `closlab.py` is): scenarios, sandboxes, results, command line."""
