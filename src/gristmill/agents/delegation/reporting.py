"""Writes the report of a run: its answer, the sources, what was changed, and what is open."""

from collections.abc import Mapping, Sequence
from typing import Any

from gristmill.agents.delegation.model import DelegationStatus
from gristmill.agents.delegation.store import Delegation

HEADINGS = {
    "en": ("Sources", "Changed", "Open"),
    "de": ("Quellen", "Geändert", "Offen"),
    "fr": ("Sources", "Modifié", "En suspens"),
    "es": ("Fuentes", "Cambiado", "Pendiente"),
    "it": ("Fonti", "Modificato", "In sospeso"),
    "pt": ("Fontes", "Alterado", "Em aberto"),
    "nl": ("Bronnen", "Gewijzigd", "Open"),
    "pl": ("Źródła", "Zmienione", "Otwarte"),
    "cs": ("Zdroje", "Změněno", "Otevřené"),
    "sk": ("Zdroje", "Zmenené", "Otvorené"),
    "hr": ("Izvori", "Promijenjeno", "Otvoreno"),
}
NOTHING = "Nothing came of it."


def write_report(title: str, answer: Mapping[str, Any], rows: Sequence[Delegation], language: str = "en") -> str:
    """The report as Markdown, its headings in the language of the answer."""
    sources, changed, left = HEADINGS.get(language, HEADINGS["en"])
    parts = [f"# {title}", str(answer.get("text") or NOTHING)]
    cited = [
        f"[{one['number']}] {one['name']}, {one['page']} (document {one['document']})" for one in answer["sources"]
    ]
    parts += _write_section(sources, cited)
    parts += _write_section(changed, list_changes(rows))
    parts += _write_section(left, [*list_open(rows), *answer.get("notes", [])])
    return "\n\n".join(parts)


def _write_section(heading: str, lines: Sequence[str]) -> list[str]:
    return [f"## {heading}\n\n" + "\n".join(f"- {line}" for line in lines)] if lines else []


def list_changes(rows: Sequence[Delegation]) -> list[str]:
    """Files, commits and other effects, each once."""
    outputs = [output for row in rows if (output := row.read_output())]
    return list(dict.fromkeys(name for output in outputs for name in [*output.changed_files, *output.artifacts]))


def list_open(rows: Sequence[Delegation]) -> list[str]:
    """Delegations that failed or were done in part, and why."""
    return [
        f"{row.delegation} ({row.agent}): {row.task.partition(chr(10))[0][:200]}"
        f" – {'; '.join(row.complaints) or 'it was done in part'}"
        for row in rows
        if row.state == DelegationStatus.FAILED or (row.complaints and not row.success)
    ]
