"""The simulator in a browser's tab: the same bytes as here, and the page as somebody uses it."""
