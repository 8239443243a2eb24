"""Rules by which results of agents are checked: what they say, against what their tools have shown."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from decimal import Decimal

from gristmill.agents.acting import Acted
from gristmill.agents.ask.values import Value, are_equal, find_values
from gristmill.agents.delegation.model import AgentOutput
from gristmill.agents.specialists.model import Check
from gristmill.agents.tools import TOOLS, PastCall

Rule = Callable[[AgentOutput, Acted], Iterator[str]]

PATH = re.compile(r"(?<![\w/.:@-])(?:[\w.-]+/)*[\w-][\w.-]*\.[A-Za-z][A-Za-z0-9]{0,9}\b(?!/)")
PLACE = re.compile(r"(?<![\w/.-])((?:[\w.-]+/)*[\w.-]*\w)[:](\d{1,6})(?!\d)(?![:.]\d)")
COMMIT = re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b")
ADDRESS = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
URL = re.compile(r"https?://[^\s<>\"'`”)\]]+")
DOCUMENT = re.compile(r"\bdocuments?\s+(\d{1,18}(?:(?:\s*,\s*|\s+and\s+)\d{1,18})*)", re.IGNORECASE)
ISSUE = re.compile(r"\b[A-Z][A-Z0-9_]{1,20}-\d{1,9}\b|\b[\w.-]+/[\w.-]+#\d{1,9}\b")
NUMBERS = re.compile(r"\d+")
QUOTE = re.compile(r"“([^”]{12,})”|„([^“]{12,})“|\"([^\"\n]{12,})\"|^>\s?(.{12,})$", re.MULTILINE)
HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
# 19.99 EUR + 5.00 EUR = 24.99 EUR: the terms, and what they are said to be together
SUM = re.compile(
    r"(?<![\d.,])((?:-?[\d.,]*\d[^\d+=\n-]{0,8}[+-]\s*)+[\d.,]*\d)[^\d+=\n-]{0,8}=\s*[^\d\n-]{0,4}(-?[\d.,]*\d)"
)
NOTHING = re.compile(
    r"\b(?:nothing|no (?:findings?|such|results?|answer|event|passage)|not (?:found|known|there)|unknown)\b", re.I
)
DENIAL = re.compile(r"\b(?:not|no|nothing|never|nobody|neither|without|cannot)\b|n't\b", re.IGNORECASE)
SENT = re.compile(r"\b(?:sent|mailed|emailed)\b(?! (?:by|from|on)\b)", re.IGNORECASE)


def check_by(*rules: Rule) -> Check:
    """A check by the rules that hold for every agent, and these."""

    def check(output: AgentOutput, acted: Acted) -> Sequence[str]:
        said = (sentence for rule in (*HONEST, *rules) for sentence in rule(output, acted))
        return list(dict.fromkeys(said))

    return check


# --- what the tools have shown


def find_done(acted: Acted, *tools: str) -> list[PastCall]:
    """The calls of these tools that succeeded."""
    return [one for one in acted.calls if one.tool in tools and not one.result.is_error]


def join_shown(acted: Acted, output: AgentOutput | None = None) -> str:
    """Everything that tools have said, and the task, where it is known."""
    texts = [one.result.text for one in acted.calls if not one.result.is_error]
    task = str(output.structured_data.get("task", "")) if output is not None else ""
    return "\n".join([task, *texts])


def find_changes(acted: Acted, *tools: str) -> list[PastCall]:
    """The calls that changed files of the workspace."""
    return find_done(acted, *(tools or ("write_file", "patch_file")))


def is_claimed(output: AgentOutput) -> bool:
    """Whether the agent says that at least a part is done."""
    return output.success or output.is_partial


def find_unshown(said: str, shown: str, kinds: Collection[str]) -> list[str]:
    """The values of these kinds that stand in a text, and in nothing that was shown."""
    known: tuple[Value, ...] = find_values(shown)
    return [
        one.written
        for one in find_values(said)
        if one.kind in kinds and not any(are_equal(one, other) for other in known)
    ]


def is_denied(text: str, place: int) -> bool:
    """Whether the words just before a place say that it is not so."""
    return DENIAL.search(re.split(r"[.;!?\n]", text[:place])[-1]) is not None


def _quote(names: Sequence[str]) -> str:
    shown = ", ".join(list(dict.fromkeys(names))[:5])
    return shown if len(set(names)) <= 5 else f"{shown} …"


# --- for every agent


def is_whole(output: AgentOutput, acted: Acted) -> Iterator[str]:
    if is_claimed(output) and not output.result.strip():
        yield "It says that it is done, and gives no result."
    if output.success and not output.is_partial and not acted.is_complete:
        yield "Its rounds ran out before it was done: it can be a part at most."


def names_its_own_work(output: AgentOutput, acted: Acted) -> Iterator[str]:
    changed = {*acted.changed_files}
    claimed = [*output.changed_files, *(path for one in output.artifacts for path in PATH.findall(one))]
    left = {name for one in acted.artifacts for name in PATH.findall(one)}
    foreign = [one for one in claimed if one not in changed | left and not ADDRESS.search(one)]
    if foreign:
        yield f"It names {_quote(foreign)} as its work, but has not changed that."
    hashes = [one for text in output.artifacts for one in COMMIT.findall(text)]
    known = COMMIT.findall(join_shown(acted))
    unknown = [one for one in hashes if not any(other.startswith(one) for other in known)]
    if unknown:
        yield f"It names the commit {_quote(unknown)}, which no tool has shown."


def settles_failures(output: AgentOutput, acted: Acted) -> Iterator[str]:
    """What failed was done after all, or the answer says so."""
    if not output.success or output.issues:
        return
    for n, one in enumerate(acted.calls):
        is_change = one.tool in TOOLS and TOOLS[one.tool].changes != "nothing"
        mended = any(other.tool == one.tool and not other.result.is_error for other in acted.calls[n + 1 :])
        if is_change and one.result.is_error and not mended:
            yield f"{one.tool} failed ({one.result.text[:120]}), and the answer names no issue."


HONEST: tuple[Rule, ...] = (is_whole, names_its_own_work, settles_failures)


# --- for some


def uses_one_of(*tools: str) -> Rule:
    """At least one of these tools was used with success."""

    def rule(output: AgentOutput, acted: Acted) -> Iterator[str]:
        if is_claimed(output) and not find_done(acted, *tools):
            yield f"It is not done without {' or '.join(tools)}."

    return rule


def shows_values(*kinds: str) -> Rule:
    """Every amount, date or percentage of the result stands in what was read or computed."""

    def rule(output: AgentOutput, acted: Acted) -> Iterator[str]:
        unshown = find_unshown(output.result, join_shown(acted, output), kinds)
        if unshown:
            yield f"{_quote(unshown)}: it stands in nothing that was read or computed."

    return rule


def has_sources(output: AgentOutput, acted: Acted) -> Iterator[str]:
    """The result names the documents and pages that it is made of; each of them was read."""
    shown = join_shown(acted, output)
    told = str(output.structured_data.get("task", ""))
    read = {int(n) for one in acted.calls for n in _find_documents(one)} | set(_find_numbers(told))
    named = _find_numbers(output.result)
    foreign = [f"document {n}" for n in named if n not in read]
    urls = [one.rstrip(".,;:") for one in URL.findall(output.result)]
    foreign += [one for one in urls if one not in shown and not _is_fetched(one, acted)]
    if foreign:
        yield f"It names {_quote(foreign)} as a source, which was not read."
    if is_claimed(output) and not (named or urls) and not NOTHING.search(output.result):
        yield "It names no source: write document numbers or addresses for what it says, or that nothing was found."


def _find_numbers(text: str) -> list[int]:
    """The numbers of documents that a text names."""
    return [int(n) for found in DOCUMENT.findall(text) for n in NUMBERS.findall(found)]


def _find_documents(call: PastCall) -> list[int]:
    if call.result.is_error:
        return []
    found: list[int] = [int(one) for one in call.result.data.get("documents", [])]
    number = call.result.data.get("document", call.arguments.get("document") if call.tool == "read_document" else None)
    return [*found, int(number)] if number is not None else found


def _is_fetched(url: str, acted: Acted) -> bool:
    return any(url in (one.arguments.get("url"), one.result.data.get("url")) for one in find_done(acted, "fetch_page"))


def quotes_exactly(output: AgentOutput, acted: Acted) -> Iterator[str]:
    """Every longer quotation stands word by word in what was read."""
    shown = _flatten(join_shown(acted, output))
    quotes = [next(group for group in found if group) for found in QUOTE.findall(output.result)]
    wrong = [one for one in quotes if _flatten(one).strip(" .,…") not in shown]
    if wrong:
        yield f"“{wrong[0][:100]}” stands nowhere in what was read: quote exactly."


def _flatten(text: str) -> str:
    return " ".join(text.replace("’", "'").split()).casefold()


def adds_up(output: AgentOutput, acted: Acted) -> Iterator[str]:
    """Every sum that is written out is right."""
    for terms, total in SUM.findall(output.result):
        numbers = [_read_number(one) for one in re.findall(r"[+-]?\s*[\d.,]*\d", terms)]
        wanted = _read_number(total)
        if wanted is not None and None not in numbers and sum(n for n in numbers if n is not None) != wanted:
            yield f"{terms.strip()} is not {total}: compute it with calculate."


def _read_number(text: str) -> Decimal | None:
    found = find_values(text.replace(" ", "").lstrip("+"))
    try:
        return Decimal(found[0].key.partition(" ")[0]) if len(found) == 1 else None
    except ArithmeticError:
        return None


def names_known_issues(output: AgentOutput, acted: Acted) -> Iterator[str]:
    shown = join_shown(acted, output) + " ".join(str(one.arguments) for one in acted.calls)
    foreign = [one for one in ISSUE.findall(output.result) if one not in shown]
    if foreign:
        yield f"It names {_quote(foreign)}, which no tool has shown."


def names_known_lines(output: AgentOutput, acted: Acted) -> Iterator[str]:
    """Every `path:line` of the result is a line that was read: in a diff, a file, or what a search found."""
    known = find_lines(acted)
    for path, line in PLACE.findall(output.result):
        if path not in known:
            if "/" in path or "." in path:
                yield f"{path} was not read: name only files of the diff, or read it first."
        elif int(line) not in known[path]:
            yield f"{path} has no line {line} in what was read."


def find_lines(acted: Acted) -> dict[str, set[int]]:
    """The lines that an agent has seen, by file."""
    known: dict[str, set[int]] = {}
    for one in acted.calls:
        if one.result.is_error:
            continue
        if one.tool == "git_diff":
            for path, numbers in _read_diff(one.result.text):
                known.setdefault(path, set()).update(numbers)
        elif one.tool == "read_file":
            numbers = {int(n) for n in re.findall(r"^\s*(\d+)  ", one.result.text, re.MULTILINE)}
            known.setdefault(str(one.arguments.get("path", "")), set()).update(numbers)
        elif one.tool in ("search_files", "scan_secrets", "check_ci"):
            for path, line in re.findall(r"^([^\s:]+):(\d+):", one.result.text, re.MULTILINE):
                known.setdefault(path, set()).add(int(line))
    return known


def _read_diff(text: str) -> Iterator[tuple[str, set[int]]]:
    """The files of a diff, each with the lines that it shows of the new version."""
    for part in re.split(r"^diff --git ", text, flags=re.MULTILINE)[1:]:
        named = re.search(r"^\+\+\+ b/(.+)$", part, re.MULTILINE) or re.search(r"^--- a/(.+)$", part, re.MULTILINE)
        if named:
            spans = ((int(start), int(length or 1)) for start, length in HUNK.findall(part))
            yield named[1], {n for start, length in spans for n in range(start, start + max(length, 1))}


# --- tests


def find_last_tests(acted: Acted) -> PastCall | None:
    """The last run of the tests that came to its end, if any."""
    runs = [one for one in acted.calls if one.tool == "run_tests" and "code" in one.result.data]
    return runs[-1] if runs else None


def tells_tests_truly(output: AgentOutput, acted: Acted) -> Iterator[str]:
    last = find_last_tests(acted)
    if last is None:
        return
    if output.success and last.result.data["code"] != 0:
        yield f"The last run of the tests ended with the code {last.result.data['code']}: it is no success."
    for number, word in re.findall(r"\b(\d{1,6}) (passed|failed|errors?|skipped)\b", output.result):
        if not re.search(rf"\b{number} {word.rstrip('s') if word.startswith('error') else word}", last.result.text):
            yield f"“{number} {word}” stands in no output of the tests."


def tests_after_changes(output: AgentOutput, acted: Acted) -> Iterator[str]:
    """An agent that changes code runs the tests after the last change, or says that it could not."""
    changes = [
        n for n, one in enumerate(acted.calls) if one.tool in ("write_file", "patch_file") and not one.result.is_error
    ]
    if not output.success or not changes or all(is_prose(path) for path in acted.changed_files):
        return
    after = acted.calls[changes[-1] + 1 :]
    if any(one.tool == "run_tests" and "code" in one.result.data for one in after):
        return
    if any(one.tool == "run_tests" for one in after) and output.needs_verification:
        return  # refused: there is no sandbox here, and it says so
    yield "The tests were not run after the last change."


def is_prose(path: str) -> bool:
    """Whether a file is documentation."""
    name = path.casefold()
    return name.endswith((".md", ".rst", ".txt", ".adoc", ".markdown")) or name.startswith(("docs/", "doc/"))


# --- mails


def names_recipients(output: AgentOutput, acted: Acted) -> Iterator[str]:
    """The result says to whom it writes, and says of no mail that it was sent which was not."""
    mails = find_done(acted, "draft_mail", "send_mail")
    to = [address for one in mails for address in (*one.arguments.get("to", ()), *one.arguments.get("cc", ()))]
    said = f"{output.result}\n{' '.join(output.artifacts)}".casefold()
    silent = [one for one in to if one.casefold() not in said]
    if silent and is_claimed(output):
        yield f"It does not say that it wrote to {_quote(silent)}."
    shown = join_shown(acted, output).casefold() + " ".join(to).casefold()
    foreign = [one for one in ADDRESS.findall(output.result) if one.rstrip(".").casefold() not in shown]
    if foreign:
        yield f"It names {_quote(foreign)}, which stands nowhere in what was read."


def sends_truly(output: AgentOutput, acted: Acted) -> Iterator[str]:
    found = SENT.search(output.result)
    if found and not is_denied(output.result, found.start()) and not find_done(acted, "send_mail"):
        is_draft = bool(find_done(acted, "draft_mail"))
        yield f"It says that a mail was sent{'; there is a draft alone' if is_draft else ', and none was'}."
