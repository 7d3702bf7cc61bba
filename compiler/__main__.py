"""`python -m compiler` is `closlab p4c`."""

import sys

from compiler.cli import main

sys.exit(main())
