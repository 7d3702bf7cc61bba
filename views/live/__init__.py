"""A run while it lasts, and a kept one as if it lasted: for programs, a page and collectors.

Whatever is shown is made of snapshots (`lab/results/snapshot.py`); where these come from differs:
`lockstep.py` from a run in the simulator, `tail.py` from a lab on Mininet, `kept.py` from a folder.
"""
