"""The generated C and the run-time compile without a warning, and look at all that must hold."""

import os

os.environ.setdefault("CLOSLAB_CFLAGS", "-Werror -DCLOSLAB_CHECKED")
