"""`closlab otg`: a traffic generator by the Open Traffic Generator's API, whose ports are hosts.

    snappi ──HTTP, gRPC──► web, rpc ──► desk ──► flows, headers       what a configuration comes to
                                          └────► port ──lines──► a program on each port's host
                                                     traffic/tester, on the emulated fabric

`models.py` knows what messages may say, `supported.py` what of it is there, `config.py` what they
say together; `site.py` where ports are, `testbed.py` is the process that has the fabric up.
"""
