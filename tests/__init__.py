"""The tests; some of them are commands too, such as `python -m tests.fabric.shows`."""

import importlib.util

if importlib.util.find_spec("pytest") is None:
    raise SystemExit(
        "closlab: what the tests need is not installed here\n"
        "Bring it, and see that it works:  ./closlab test tests/test_style.py"
    )
