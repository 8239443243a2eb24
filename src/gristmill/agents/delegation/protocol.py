"""Reads the answer of an agent (STATUS, RESULT and what belongs to them), in whatever form a model writes it."""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from gristmill.agents.ask.words import split_words
from gristmill.agents.delegation.forms import (
    INSIDE,
    LETTERS,
    Label,
    choose_form,
    cut_value,
    find_labels,
    keep_plainest,
    list_forms,
)
from gristmill.agents.delegation.model import AgentOutput

Status = Literal["1", "0", "P"]

PROTOCOL = """Answer in exactly this form:
STATUS: 1 if it is done, 0 if it failed, P if a part of it is done
RESULT: the complete answer, as short as it can be
ARTIFACTS: files and commits that you made, one a line, or none
ISSUES: problems and what blocks you, one a line, or none
CONFIDENCE: a number from 0.0 to 1.0
NEEDS_VERIFICATION: true or false"""

THOUGHTS = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
FENCE = re.compile(r"^[ \t]{0,8}```[\w-]{0,20}[ \t]*$", re.MULTILINE)
DECORATION = " \t\r\n*_`\"'|"
BULLET = re.compile(r"^[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+")
WORD = re.compile(r"[^\W_]{2,}")
STATUS_WORD = re.compile(r"\d+(?:[.,]\d+)?|[^\W\d_]+|[✓✅✗❌]")
BEFORE_STATUS = re.compile(r"[\s\[(<{*_`\"'#]*")
NUMBER = re.compile(r"(?P<number>\d{1,9}(?:[.,]\d{1,18})?|[.,]\d{1,18})\s*(?P<unit>%|/\s*(?P<of>\d{1,4}))?")

STATUSES: dict[Status, frozenset[str]] = {
    "1": split_words(
        """1 1.0 true yes ok okay success successful succeeded done complete completed finished erfolg erfolgreich
        fertig erledigt succès réussi éxito hotovo úspěch uspjeh sukces ✓ ✅"""
    ),
    "0": split_words(
        """0 0.0 false no fail failed failure error unsuccessful blocked incomplete fehler fehlgeschlagen gescheitert
        échec erreur fallo neúspěch chyba neuspjeh ✗ ❌"""
    ),
    "P": split_words("p partial partially partly teilweise partiel parcial částečně djelomično częściowo"),
}
# words that may stand behind a success without making it less
COURTESY = split_words(
    """successfully fully completely entirely all everything it is was has been now and the task please thanks thank you
    vollständig alles danke tout merci todo gracias vše všechno děkuji sve hvala"""
)
YES = split_words("true yes y 1 ja oui sí si sim ano áno da tak vero wahr vrai required needed")
NO = split_words("false no n 0 nein non não nie ne nee falso falsch faux none")
NOTHING = split_words(
    """none n/a na nil null nothing - – — [] {} () no keine keiner nichts aucun aucune rien ninguno ninguna nada
    žádné nic nema brak"""
)
CONFIDENCES = {"very high": 0.95, "high": 0.9, "medium": 0.6, "moderate": 0.6, "very low": 0.1, "low": 0.3}


@dataclass
class Fields:
    """What was read of an answer; None where it says nothing."""

    status: Status | None = None
    result: str = ""
    artifacts: list[str] = field(default_factory=list[str])
    issues: list[str] = field(default_factory=list[str])
    confidence: float | None = None
    needs_verification: bool | None = None
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])
    error: str = ""  # why the answer could not be read


def parse_output(text: str, *, delegation_id: str, agent_name: str) -> AgentOutput:
    """The output that an answer says; one that cannot be read is a failed output that says why."""
    read = read_fields(text)
    status = read.status or "0"
    data: dict[str, Any] = {**read.data, "status": status, "issues": read.issues}
    if read.error:
        data["error"] = read.error
    return AgentOutput(
        delegation_id=delegation_id,
        agent_name=agent_name,
        success=status == "1" and not read.error,
        result=read.result,
        structured_data=data,
        artifacts=read.artifacts,
        confidence=read.confidence or 0.0,
        needs_verification=read.needs_verification if read.needs_verification is not None else status != "1",
    )


def fail_output(sentence: str, *, delegation_id: str, agent_name: str, result: str = "") -> AgentOutput:
    """An output of our own, for an agent that gave none."""
    data = {"status": "0", "issues": [sentence], "error": sentence}
    return AgentOutput(
        delegation_id=delegation_id,
        agent_name=agent_name,
        success=False,
        result=result,
        structured_data=data,
        needs_verification=True,
    )


def read_fields(text: str) -> Fields:
    """The fields of an answer, as JSON or as labelled lines."""
    said = THOUGHTS.sub("", text).strip()
    if not said:
        return Fields(error="The answer is empty.")
    found = read_json(said)
    if found is None:
        found = read_labels(said)
    if found is None:
        found = read_json(_cut_object(said))
    if found is None:
        words = said if WORD.search(said) else ""
        why = "it names neither STATUS nor RESULT" if words else "it has no words"
        return Fields(result=words, error=f"The answer does not follow the form: {why}.")
    return _complete(found)


def _complete(found: Fields) -> Fields:
    """What is missing is taken as the more careful one of what it may mean."""
    if not WORD.search(found.result) and not any(sign.isalnum() for sign in found.result):
        found.result = ""
    if found.status is None and not found.error:
        if found.result:
            found.status = "P"  # an answer without a status is used, but not taken for done
            found.issues.append("The answer names no STATUS.")
        else:
            found.error = "The answer has neither a STATUS nor a RESULT."
    if found.status == "1" and not found.result:
        found.error = "The answer reports success without a RESULT."
    return found


# --- labelled lines


def read_labels(said: str) -> Fields | None:
    """The fields behind their labels, in any order; None if there is no label.

    An agent may quote others. Labels outside of fences go before labels in them, and labels that begin a line go before
    labels inside one.
    """
    unfenced = FENCE.sub("", said)
    tries = [
        (said, find_labels(said, _makes_sense, skip_fences=True)),
        (unfenced, find_labels(unfenced, _makes_sense, skip_fences=False)),
    ]
    found = [one for one in tries if any(label.begins_line for label in one[1])] or [one for one in tries if one[1]]
    return _read_form(*found[0]) if found else None


def _makes_sense(name: str, value: str) -> bool:
    return name not in CHECKS or CHECKS[name](value)


def _read_form(text: str, labels: Sequence[Label]) -> Fields:
    plainest = keep_plainest(labels)
    form = choose_form(plainest)
    stops = [*(one.start for one in form[1:]), len(text)]
    values = {one.name: _read_value(text, one, stop) for one, stop in zip(form, stops, strict=True)}
    before = text[: form[0].start].strip()
    if "RESULT" not in values and WORD.search(before):
        values["RESULT"] = before  # the answer stands above its form
    found = _make_fields(values)
    if found.status == "1" and (doubt := _find_doubt(text, labels, plainest)):
        found.status = "P"
        found.issues.append(doubt)
    return found


def _read_value(text: str, label: Label, stop: int) -> str:
    if label.name in CHECKS:
        return cut_value(text, label.end)
    value = text[label.end : stop].strip()
    return value.removesuffix("|").rstrip() if "\n" not in value else value  # a bar divides fields of a line


def _find_doubt(text: str, labels: Sequence[Label], plainest: Sequence[Label]) -> str:
    """Why a success may not be the agent's own word; empty if nothing speaks against it."""
    own = [one for one in plainest if one.name == "STATUS"]
    if own[0].rank == INSIDE:
        return "Its STATUS stands inside a sentence, as in a quotation."
    written = find_labels(text, lambda name, value: name == "STATUS" and not _is_copied(value), skip_fences=True)
    if any(one.rank < own[0].rank for one in written):
        return "Its own STATUS cannot be read."
    # a whole form in other letters counts as well; the status of a ticket in a result does not
    own += list_forms([one for one in labels if one.rank <= LETTERS])
    said = {read_status(cut_value(text, one.end)) for one in own}
    return "It names its STATUS several times, and differently." if len(said) > 1 else ""


def _make_fields(values: Mapping[str, str]) -> Fields:
    status = values.get("STATUS", "")
    return Fields(
        status=read_status(status),
        result=_unwrap(values.get("RESULT", "")),
        artifacts=read_list(values.get("ARTIFACTS", ""), by_comma=True),
        issues=[*read_list(values.get("ISSUES", "")), *_explain_status(status)],
        confidence=read_confidence(values.get("CONFIDENCE", "")),
        needs_verification=read_flag(values.get("NEEDS_VERIFICATION", "")),
    )


def _unwrap(text: str) -> str:
    """A result without the decoration around it; a fence that was opened before it is left out."""
    plain = text.strip()
    if plain.count("```") % 2:
        plain = re.sub(r"\n?[ \t]*```[ \t]*$", "", plain)
    for sign in ("**", "__"):
        if plain.endswith(sign) and plain.count(sign) % 2:
            plain = plain.removesuffix(sign).rstrip()
    return plain


# --- values


def read_status(text: str) -> Status | None:
    """1, 0 or P; None if it is none of them, or the form itself was copied.

    “Completed with errors” and “1 of 3 done” are a P: whatever is added to a success may take something from it.
    """
    plain = text.strip(DECORATION).casefold()
    if _is_copied(plain):
        return None
    words = STATUS_WORD.findall(plain)
    if not words or not BEFORE_STATUS.fullmatch(plain[: plain.index(words[0])]):
        return None
    for status, known in STATUSES.items():
        if words[0] in known:
            is_plain = all(word in STATUSES["1"] or word in COURTESY for word in words) and "?" not in plain
            return "P" if status == "1" and not is_plain else status
    return None


def _is_copied(text: str) -> bool:
    """Whether a status is the line of the form that says which there are."""
    return "|" in text or " if " in text


def _explain_status(text: str) -> list[str]:
    """The words of a status that is none of the three as such: they say what is missing."""
    words = STATUS_WORD.findall(text.casefold())
    is_success = bool(words) and words[0] in STATUSES["1"]
    return [f"Its STATUS is “{text.strip(DECORATION)}”."] if is_success and read_status(text) == "P" else []


def read_confidence(text: str) -> float | None:
    """A number from 0 to 1, also as 0,85 or 85 % or 8/10 or in words; None if there is none."""
    found = NUMBER.search(text)
    if found is None:
        plain = text.strip(DECORATION + ".").casefold()
        return next((value for word, value in CONFIDENCES.items() if plain.startswith(word)), None)
    number = float(found["number"].replace(",", "."))
    if found["of"] and float(found["of"]):
        number /= float(found["of"])
    elif found["unit"] == "%" or number > 1:
        number /= 100
    return min(1.0, number)


def read_flag(text: str) -> bool | None:
    word = re.split(r"[\s,;.(–—-]", text.strip(DECORATION + "[]()").casefold(), maxsplit=1)[0]
    return True if word in YES else False if word in NO else None


def read_list(text: str, *, by_comma: bool = False) -> list[str]:
    """One entry a line, without bullets and without “none”; names of files may also stand behind each other."""
    if text.lstrip().startswith("["):
        try:
            return _read_items(json.loads(text))
        except (ValueError, RecursionError):
            text = text.strip().strip("[]")
    found: list[str] = []
    for line in text.splitlines():
        plain = BULLET.sub("", line)
        parts = re.split(r"[,;]\s+|,(?=\S+\.\w)", plain) if by_comma else [plain]
        found += [part.strip(DECORATION) for part in parts]
    return [one for one in dict.fromkeys(found) if one and one.casefold().rstrip(".") not in NOTHING and one != "```"]


CHECKS: dict[str, Callable[[str], bool]] = {
    "STATUS": lambda line: read_status(line) is not None,
    "CONFIDENCE": lambda line: read_confidence(line) is not None,
    "NEEDS_VERIFICATION": lambda line: read_flag(line) is not None,
}


# --- JSON


def _cut_object(text: str) -> str:
    """What stands between the first and the last brace."""
    start, stop = text.find("{"), text.rfind("}")
    return text[start : stop + 1] if 0 <= start < stop else ""


def read_json(text: str) -> Fields | None:
    """The fields of a JSON object, in a fence or without; None if it is none, or of something else."""
    plain = FENCE.sub("", text).strip()
    if not plain.startswith("{"):
        return None
    try:
        found = json.loads(plain)
    except (ValueError, RecursionError):
        return None
    for _ in range(3):  # {"output": {"status": …}}
        if not isinstance(found, dict):
            return None
        entries = {_name_key(key): value for key, value in cast(dict[Any, Any], found).items()}
        if entries.keys() & {"status", "result", "success"}:
            return _read_entries(entries)
        found = next(iter(entries.values())) if len(entries) == 1 else None
    return None


def _name_key(key: Any) -> str:
    plain = re.sub(r"[ -]", "_", str(key).strip().casefold())
    return {"results": "result", "answer": "result", "artifact": "artifacts", "issue": "issues"}.get(plain, plain)


def _read_entries(entries: Mapping[str, Any]) -> Fields:
    known = {"status", "result", "artifacts", "issues", "confidence", "needs_verification", "success"}
    statuses = [_write_value(entries.get(name)) for name in ("status", "success")]
    found: list[Status] = [status for one in statuses if (status := read_status(one)) is not None]
    disagree = ["Its status and its success disagree."] if len(set(found)) > 1 else []
    issues = [*_read_items(entries.get("issues")), *(said for one in statuses for said in _explain_status(one))]
    flag = entries.get("needs_verification")
    return Fields(
        status="P" if disagree else found[0] if found else None,
        result=_write_value(entries.get("result")),
        artifacts=_read_items(entries.get("artifacts")),
        issues=[*issues, *disagree],
        confidence=_read_number(entries.get("confidence")),
        needs_verification=flag if isinstance(flag, bool) else read_flag(_write_value(flag)),
        data={name: value for name, value in entries.items() if name not in known and _is_plain(value)},
    )


def _is_plain(value: Any) -> bool:
    """Whether a value can be kept: JSON knows no infinity."""
    try:
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return False
    return True


def _write_value(value: Any) -> str:
    if value is None:
        return ""
    return value.strip() if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _read_items(value: Any) -> list[str]:
    if value is None or isinstance(value, bool):
        return []
    if isinstance(value, str):
        return read_list(value)
    items = cast(list[Any], value) if isinstance(value, list) else [value]
    written = [_write_value(one).strip(DECORATION) for one in items]
    return [one for one in dict.fromkeys(written) if one and one.casefold() not in NOTHING]


def _read_number(value: Any) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        if not math.isfinite(value) or value < 0:
            return None
        return float(value) if value <= 1 else min(1.0, value / 100)
    return read_confidence(_write_value(value))
