"""Mininet: namespaces, veths, switches and hosts under the real clock, inside a sandbox.

Only what runs inside (`engine.py` and what it uses) pulls in Mininet itself, from where Debian has
it.
"""

from lab.machine.tools import add_mininet

add_mininet()
