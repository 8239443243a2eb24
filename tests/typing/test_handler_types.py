"""A handler for another letter does not pass the type checker."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def test_right_handlers_pass_the_type_checker_and_wrong_ones_do_not() -> None:
    command = [sys.executable, "-m", "basedpyright", "--warnings", str(HERE / "handlers.py")]
    checked = subprocess.run(command, cwd=HERE.parents[1], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
    assert "0 errors, 0 warnings" in checked.stdout
