"""The simulator in a browser's tab: the same Python, the same C, the same bytes of results.

    cross.py        the C of the stock program, the run-time and the simulator, as WebAssembly
    build.py        a folder of files that any web server gives out: Pyodide, packages, the lab
    stage.mjs       reads all of it once in node, so that a tab finds it compiled
    in_tab.py       what a page asks of the lab: its scenarios, and a run
    page/           the page, and the worker that the lab is in
    absent/         what is not to be had there, as far as it has to have a name

A tab has no sockets, no processes and no second thread: Mininet, gRPC and routers are not there,
and nobody imports them.
"""
