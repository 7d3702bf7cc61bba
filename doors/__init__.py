"""Doors: what others speak, over the lab's own API. Each is thin, and brings what it needs.

`assistant/` is the Model Context Protocol, `learning/` are Gymnasium and PettingZoo.
"""
