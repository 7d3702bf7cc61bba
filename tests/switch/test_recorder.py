"""What switches hold, written down while they run."""

import json
import time
from pathlib import Path

from switch.dataplane import Dataplane, Loop
from switch.recorder import Cells, Recorder
