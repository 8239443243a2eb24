"""The command `gristmill`: argv in, exit code out."""

from gristmill.cli.entry import main

__all__ = ["main"]
