"""The only place that reads the environment of this process."""

import os
from pathlib import Path


def default_data_folder() -> Path:
    """Where the embedded database lives: the system's place for root, the user's for everybody else."""
    if os.geteuid() == 0:
        return Path("/var/lib/gristmill")
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "gristmill"  # noqa: TID251 this is the place


def environment(**more: str) -> dict[str, str]:
    """The environment for a program that we start, with some variables added."""
    return os.environ | more  # noqa: TID251 this is the place
