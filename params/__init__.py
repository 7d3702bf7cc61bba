"""Quantities (private, as all but `closlab.py` is), each said once: written, bounded, named.

The ground on which model, controller, endpoints and reports stand. A value of one of these types
cannot be wrong, so that nobody further up has to ask again.

`units.py` reads sizes, times and counts, `quantity.py` writes them; `rates.py`, `shares.py` and
`classes.py` say what a rate, a probability, an alpha and a set of classes may be; `section.py` is
what sections are made of. A section that a scenario gives and switches obey has a file, with
bounds, defaults and words: `buffer.py`, `pfc.py`, `trim.py`, `marking.py` (ECN), `schedule.py`,
`load_balancing.py`, `link.py`, `telemetry.py`, `access.py`. The controller takes them as they are.
`data.py` is what all records are made of.
"""
