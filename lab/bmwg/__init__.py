"""The benchmark of AI training fabrics, as the IETF's BMWG is writing it.

    case.py         a run that a test asks for, and what it found
    bench.py        the device under test, and how much of the draft's parameters is run on it
    arithmetic.py   the draft's formulas, and the statistics of trials
    outcome.py      what a test hands back: tables, drawings, deviations
    rdma.py ... soak.py    the tests, by the draft's sections 5 to 12
    draft.py        all of them, with what the draft calls them
    running.py      runs what they ask for, as far as it is not kept
    report.py       the report of section 13 for machines; page.py for people
    comparing.py    two reports side by side, as far as the draft lets them be compared

A test is a generator: it asks for runs, is sent what they found, and asks for more where that
depends on it, as a binary search does. It knows no engine and touches no file, so that tests of
different sections share their runs, and what is kept is not run again.

The draft is draft-calabria-bmwg-ai-fabric-training-bench-04; docs/bmwg-notes.md tells where it
leaves open what to do, and what is done here.
"""
