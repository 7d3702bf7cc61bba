"""The generated C and the run-time must compile without a warning."""

import os

os.environ.setdefault("CLOSLAB_CFLAGS", "-Werror")
