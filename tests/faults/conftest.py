"""The tests of faults use the helpers of the tests of the queue."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "queue"))
