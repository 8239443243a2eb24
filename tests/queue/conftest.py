"""Makes the helpers of these tests (`engine`, `crew`) known to the folders below."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
