"""RoCEv2 traffic: what is sent (collectives, patterns, jobs), and the adapters that send it.

Private, as all but `closlab.py` is: it may change from one commit to the next.
"""
