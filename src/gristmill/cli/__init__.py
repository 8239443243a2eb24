"""The command `gristmill`: argv in, exit code out."""

from gristmill.cli.start import main

__all__ = ["main"]
