"""Changes to files as people write them down: what stays, goes and comes, without line numbers.

--- FILE
@@
 a line that stays
-one that goes
+one that comes
"""

import re
from pathlib import Path


def change(tree: Path, diff: str) -> None:
    """Make the changes; the lines that stay or go must be there once."""
    for part in re.split(r"^--- ", diff, flags=re.MULTILINE)[1:]:
        name, *hunks = re.split(r"^@@\n", part, flags=re.MULTILINE)
        path = tree / name.strip()
        text = path.read_text()
        for hunk in hunks:
            lines = hunk.splitlines(keepends=True)
            old = "".join(line[1:] for line in lines if line[0] in " -")
            new = "".join(line[1:] for line in lines if line[0] in " +")
            assert text.count(old) == 1, f"{path.name} has {text.count(old)} places like\n{old}"
            text = text.replace(old, new)
        path.write_text(text)
