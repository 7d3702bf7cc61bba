"""The lab (private, as all but `closlab.py` is): scenarios, capsules, results, command line."""
