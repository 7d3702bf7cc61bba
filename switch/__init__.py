"""The switch: BMv2 JSON turned into native code, its run-time, and the P4Runtime server on top.

Private, as all but `closlab.py` is: it may change from one commit to the next.
"""
