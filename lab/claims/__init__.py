"""What the field says about AI fabrics, put to the test in the simulator.

    claim.py     what a claim is: its words, the runs that test it, and a judge of what they found
    loss.py      what packet loss costs a job, by the way adapters recover from it
    fabric.py    slow links, incast, collisions, PFC and ECN, oversubscription, placement
    energy.py    what energy goes with
    scale_up.py  short headers inside of racks
    court.py     runs everything, has it judged, and writes it down

A judge sees nothing but what the runs found, and knows no verdict beforehand: with other numbers it
says something else.
"""

from lab.claims.claim import Case, Claim, Found, Verdict
from lab.claims.court import CLAIMS, claims

__all__ = ["CLAIMS", "Case", "Claim", "Found", "Verdict", "claims"]
