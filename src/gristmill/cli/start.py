"""Where the command begins. It imports almost nothing, so that Ctrl-C is handled from the first moment."""

from collections.abc import Sequence

from gristmill.doors import keep_doors_closed, load_for_good


def main(argv: Sequence[str] | None = None) -> int:
    """0 done, 1 refused or failed, 2 not understood, 130 interrupted."""
    try:
        if argv is None:  # a process of its own
            keep_doors_closed()
        with load_for_good():
            from gristmill.cli import entry  # noqa: PLC0415 half a second, in which people change their minds

        return entry.main(argv)
    except KeyboardInterrupt:
        return 130
