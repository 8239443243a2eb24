"""The tests of faults use the helpers of the tests of the queue and of sources."""

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / room) for room in ("queue", "sources")]
