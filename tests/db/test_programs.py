"""The programs of the wheel: either major is found, and used where they lie if their user can reach them."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from gristmill.db.accounts import account
from gristmill.db.programs import can_use, programs_for
from gristmill.errors import Refused


@pytest.mark.parametrize("major", ["16", "18"])
def test_the_wheel_carries_two_majors(major: str, tmp_path: Path) -> None:
    command = [programs_for(None, tmp_path, major) / "postgres", "--version"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.startswith(f"postgres (PostgreSQL) {major}.")


def test_a_major_the_wheel_does_not_carry_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="has no PostgreSQL 9: install a newer one"):
        programs_for(None, tmp_path, "9")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_programs_below_a_closed_folder_are_not_usable_by_another_user() -> None:
    nobody = account("nobody")
    assert nobody
    with tempfile.TemporaryDirectory() as folder:  # pytest's own folders are closed to other users
        home = Path(folder)
        programs = home / "venv/bin"
        programs.mkdir(parents=True)
        (home / "venv/share/postgresql").mkdir(parents=True)
        (home / "venv/share/postgresql/postgres.bki").touch()
        (programs / "postgres").touch(mode=0o755)
        home.chmod(0o755)
        assert can_use(programs, nobody)
        home.chmod(0o700)
        assert not can_use(programs, nobody)
