"""What is done once before a tab opens the lab; it is run by Pyodide, in node."""

import compileall
import importlib
import zipfile
from functools import partial
from pathlib import Path
from py_compile import PycInvalidationMode

PACKED = "/lab", "/packages", "/headers", "/home/pyodide/.cache/closlab"


def prepare() -> None:
    """Compile Python, simulate once, and pack it all."""
    compiled = partial(
        compileall.compile_dir, quiet=1, invalidation_mode=PycInvalidationMode.UNCHECKED_HASH
    )
    # What others wrote is packed compiled; of ours the text is read as well, as files and by name.
    compiled("/packages", legacy=True)
    for source in Path("/packages").rglob("*.py"):
        source.unlink()
    compiled("/lab")
    importlib.invalidate_caches()  # Python looked for the lab before it was there
    from views.playground import in_tab

    in_tab.unpacked()
    in_tab.warm_up()  # what a run keeps in the cache is packed too
    with zipfile.ZipFile("/lab.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=6) as packed:
        for folder in PACKED:
            for path in sorted(Path(folder).rglob("*")):
                if path.is_file() and path.suffix != ".lock":
                    packed.write(path)


prepare()
