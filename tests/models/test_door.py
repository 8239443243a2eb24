"""The door of the room: which modules an import of it loads."""

import subprocess
import sys

HEAVY = ("aiohttp", "cv2", "jsonschema", "numpy", "onnxruntime", "PIL", "spacy", "tokenizers")  # libraries of models
ABOVE = ("gristmill.queue", "gristmill.db", "gristmill.settings", "psycopg")  # only the worker itself needs these


def test_importing_the_room_loads_no_model_and_no_queue() -> None:
    """Every child process of a worker imports the room, and each would pay for it with seconds and memory."""
    program = "import sys, gristmill.models; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()
    assert "gristmill.models.pool" in loaded
    assert sorted({*HEAVY, *ABOVE} & set(loaded)) == []
