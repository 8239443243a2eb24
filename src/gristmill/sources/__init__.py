"""Sources: where documents come from. So far these are folders of this machine."""

from gristmill.sources.folder import (
    FileIntake,
    Reporter,
    check_folder,
    files_at,
    files_in,
    find_first_files,
    watch_folder,
)

__all__ = [
    "FileIntake",
    "Reporter",
    "check_folder",
    "files_at",
    "files_in",
    "find_first_files",
    "watch_folder",
]
