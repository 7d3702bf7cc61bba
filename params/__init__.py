"""Quantities, each said once: how it is written, what it may be, what it is called.

The ground on which model, controller, endpoints and reports stand. A value of one of these types
cannot be wrong, so that nobody further up has to ask again.
"""
