"""RoCEv2 traffic: what is sent (collectives, patterns, jobs), and the adapters that send it."""
