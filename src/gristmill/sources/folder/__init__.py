"""A folder of this machine as a source: which of its files are meant, how they are added, how it is watched."""

from gristmill.sources.folder.files import check_folder, files_at, files_in
from gristmill.sources.folder.intake import FileIntake, Reporter
from gristmill.sources.folder.watching import find_first_files, watch_folder

__all__ = ["FileIntake", "Reporter", "check_folder", "files_at", "files_in", "find_first_files", "watch_folder"]
