"""The manual of the command line: its examples are run, and its list of options is written, by the program itself."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from gristmill.cli import entry

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "cli.md"
BLOCK = re.compile(r"```\n(\$ .*?)\n```", re.DOTALL)
BEGIN, END = "<!-- options: written by the program -->", "<!-- end of options -->"
SENT = re.compile(r"Sent as task (\d+)")
SHOWN_FOLDER = "/var/lib/gristmill"
SHOWN_TIME = "2026-11-15 22:44:24"
# What differs from run to run, and the form in which it is compared: times, sizes, scores, versions, processes, hosts.
VARIES = (
    (re.compile(r"^(documents|graph|knowledge|ocr|vector|knowledge\.tidy) .*$", re.MULTILINE), r"\1 COUNTS"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\+\d\d:\d\d)?"), "TIME"),
    # which worker it was depends on how fast the one before it was missed
    (re.compile(r"^(TIME +(?:claimed|ended \w+|failed) +\d+ +)\d+\b", re.MULTILINE), r"\1N"),
    (re.compile(r"\b[\d.,]+ (ms|s|min|h|MB|GB)\b"), r"N \1"),
    (re.compile(r"\bpid \d+"), "pid N"),
    (re.compile(r"\b\d\.\d{2,3}\b"), "SCORE"),
    (re.compile(r"\b\d+\.\d+(\.\d+)?\b"), "VERSION"),
    (re.compile(r"(worker \d+ on \S+?:\d+).*…$", re.MULTILINE), r"\1 …"),  # the longer the host, the less fits
    (re.compile(r"worker \d+ on \S+?:\d+"), "worker N on HOST"),
    (re.compile(r"\d+ migrations?"), "MIGRATIONS"),
    (re.compile(r"\b[0-9a-f]{12}\b"), "CLUSTER"),
    (re.compile(r"━+|-{4,}|─+"), "LINE"),
)


@dataclass(frozen=True)
class Example:
    """A block of the page: commands, each after a `$`, and what the last of them says."""

    commands: tuple[str, ...]
    output: str

    @property
    def variables(self) -> dict[str, str]:
        """The variables that its commands set, by `export` or before the command itself."""
        words = [word for line in self.commands for word in shlex.split(line) if not line.startswith("gristmill")]
        return dict(word.split("=", 1) for word in words if re.match(r"[A-Z_]+=", word))

    @property
    def words(self) -> list[str]:
        """The words of the last command, without its variables and without `gristmill`."""
        words = shlex.split(self.commands[-1])
        return words[words.index("gristmill") + 1 :]


def read_examples(page: str) -> Iterator[Example]:
    for block in BLOCK.findall(page):
        lines = block.split("\n")
        count = next((n for n, line in enumerate(lines) if not line.startswith("$ ")), len(lines))
        yield Example(tuple(line[2:] for line in lines[:count]), "\n".join(lines[count:]))


def write_examples(page: str, outputs: list[str]) -> str:
    """The page with these outputs in place of its own."""
    examples, found = list(read_examples(page)), iter(outputs)

    def replace(_: re.Match[str]) -> str:
        example = examples.pop(0)
        return "\n".join(["```", *(f"$ {line}" for line in example.commands), next(found), "```"])

    return BLOCK.sub(replace, page)


def tidy_output(text: str, folder: Path) -> str:
    """As the page shows it: one folder, one time, no spaces at the ends of lines."""
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", SHOWN_TIME, text.replace(str(folder), SHOWN_FOLDER))
    text = re.sub(r"(worker \d+ on )[^:\s]+:\d+", r"\1mill:4711", text.replace(str(ROOT), "/home/miller"))
    text = re.sub(r"(worker <n> on )[^:\s]+:", r"\1mill:", text)
    text = re.sub(r"(gm_|token=)[\w-]{43}", r"\1…", text)  # secrets, made anew by every run
    return "\n".join(line.rstrip() for line in text.strip("\n").split("\n"))


class TaskIds:
    """Which task of this run is meant by an id on the page: how many tasks came before it may differ."""

    def __init__(self) -> None:
        self._actual: dict[str, str] = {}  # by the id on the page

    def learn(self, shown: str, said: str) -> None:
        """Compare the sentences that name a new task."""
        for on_page, actual in zip(SENT.findall(shown), SENT.findall(said), strict=False):
            self.add(on_page, actual)

    def add(self, on_page: str, actual: str) -> None:
        self._actual[on_page] = actual

    def as_run(self, words: list[str]) -> list[str]:
        return [self._actual.get(word, word) for word in words]

    def as_shown(self, text: str) -> str:
        back = {actual: on_page for on_page, actual in self._actual.items()}
        return re.sub(r"\b\d+\b", lambda found: back.get(found[0], found[0]), text)


def make_comparable(text: str) -> list[str]:
    """The words of an output; spaces and line breaks follow from the widths of what varies."""
    for pattern, name in VARIES:
        text = pattern.sub(name, text)
    return sorted(text.split())


def write_options() -> str:
    """Every command with its options, as a list."""
    lines: list[str] = []
    for name in entry.COMMANDS:
        root = get_command(entry.build([name]))
        assert isinstance(root, TyperGroup)
        lines += _describe_command(f"gristmill {name}", root.commands[name])
    return "\n".join([BEGIN, "", *lines, "", END])


def _describe_command(path: str, command: object) -> Iterator[str]:
    if isinstance(command, TyperGroup):
        for name, inner in command.commands.items():
            yield from _describe_command(f"{path} {name}", inner)
        return
    assert isinstance(command, TyperCommand)
    shown = [one for one in command.params if not getattr(one, "hidden", False) and "--help" not in one.opts]
    options = [one for one in shown if one.param_type_name == "option" and "--json" not in one.opts]
    names = [(one.name or "").upper().replace("_", "-") for one in shown if one.param_type_name == "argument"]
    yield f"- `{' '.join([path, *names])}`: {(command.help or '').splitlines()[0]}"
    for one in options:
        spelled = ", ".join(f"`{opt}`" for opt in [*one.opts, *one.secondary_opts])
        yield f"  - {spelled}: {one.help}"


def replace_options(page: str) -> str:
    return page[: page.index(BEGIN)] + write_options() + page[page.index(END) + len(END) :]
