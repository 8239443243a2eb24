"""`gristmill doctor`: looks at everything a queue needs, and says what to do."""

from collections.abc import Sequence

import typer
from rich.console import RenderableType

from gristmill.app import ROOMS
from gristmill.cli.output import Json, emit, err, make_table
from gristmill.cli.session import load_settings, run
from gristmill.errors import GristmillError
from gristmill.rooms import examine
from gristmill.telemetry import Check, set_up_logs


def doctor(json: Json = False) -> None:
    """Check settings, database, schema, workers, clocks, disk, models, dead letters, breakers and long transactions.

    Ends with 1 if anything fails. Example: gristmill doctor --json
    """
    with err.status("Looking …"):
        checks = _run_checks()
    failed = any(check.verdict == "fail" for check in checks)
    emit(json, {"healthy": not failed, "checks": checks}, lambda: _checks_view(checks))
    if failed:
        raise typer.Exit(1)


def register(root: typer.Typer, text: str) -> None:
    root.command("doctor")(doctor)


def _run_checks() -> list[Check]:
    try:
        settings = load_settings()
        set_up_logs(settings.log)
    except GristmillError as error:
        return [Check("settings", "fail", str(error), "Mend it, then ask again.")]
    return run(examine(settings, ROOMS))


def _checks_view(checks: Sequence[Check]) -> RenderableType:
    rows = [(check.verdict, check.name, f"{check.sentence} {check.advice}".strip()) for check in checks]
    return make_table(("", "", ""), rows, empty="")
