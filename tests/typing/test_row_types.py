"""Rows without a type do not pass the type checker where somebody reads them."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def test_typed_rows_pass_the_type_checker_and_untyped_ones_do_not() -> None:
    command = [sys.executable, "-m", "basedpyright", "--warnings", str(HERE / "rows.py")]
    checked = subprocess.run(command, cwd=HERE.parents[1], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
    assert "0 errors, 0 warnings" in checked.stdout
