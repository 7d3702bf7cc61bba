"""How long a test waits for what has to come.

It says nothing about time: whoever is starved by neighbours, or runs on a machine thirty times
slower, is no reason to fail. What must be quick is judged in `clock` tests, by ratios.
"""

LONG_S = 200.0  # and pytest ends a test that hangs after 300 s
