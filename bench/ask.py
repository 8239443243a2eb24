"""Measures ask: which evidence it finds, whether citations are exact, when it abstains: `make bench-ask`."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[0] = str(ROOT)  # or bench/queue.py would stand in for the standard library's queue

import argparse  # noqa: E402
import asyncio  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import random  # noqa: E402
import re  # noqa: E402
import shutil  # noqa: E402
import statistics  # noqa: E402
import subprocess  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
from collections.abc import AsyncIterator, Iterator, Sequence  # noqa: E402
from contextlib import asynccontextmanager, contextmanager  # noqa: E402
from dataclasses import dataclass, field  # noqa: E402
from typing import Any  # noqa: E402

from bench.ask_noise import make_noise  # noqa: E402
from bench.report import machine  # noqa: E402
from bench.run_interrupts import measure_run_interrupts  # noqa: E402
from bench.search import CORPORA, database, ground, say  # noqa: E402

from gristmill.agents import AnswerEnded, Answerer, CheckedAnswer, Passage  # noqa: E402
from gristmill.agents.ask.abstaining import Grounds, may_answer  # noqa: E402
from gristmill.db import Database, Embedded, open_database  # noqa: E402
from gristmill.documents import load_texts  # noqa: E402
from gristmill.knowledge import Finder, lexicon, vectors  # noqa: E402
from gristmill.knowledge.letters import FoldTerms  # noqa: E402
from gristmill.models import FakeLlm, MiniLm  # noqa: E402
from gristmill.processes import ProcessPool  # noqa: E402
from gristmill.scopes import GLOBAL, scope_id  # noqa: E402
from gristmill.settings import Settings  # noqa: E402

SETS = ROOT / "bench" / "ask_sets"
NAMES = ("encyclopedia", "meeting", "story", "inbox")
STORY = CORPORA / "operation-dulce" / "operation_dulce.md"
PAGE = ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- ask:begin -->", "<!-- ask:end -->"
NOISE = 600  # articles that nobody asks for
PROMISED = ("evidence_recall5", "evidence_recall10", "citation_exact", "abstained_right", "added_ms")


@dataclass(frozen=True)
class Case:
    """A question, and the evidence that it needs: a document and words that stand in the passage."""

    set: str
    is_held_out: bool
    question: str
    evidence: Sequence[tuple[str, str]] = ()  # none: there is no answer


@dataclass
class Outcome:
    """What became of a case."""

    case: Case
    passages: Sequence[Passage]
    grounds: Grounds
    ms: float

    @property
    def is_kept(self) -> bool:
        return bool(self.passages) and may_answer(self.grounds)

    @property
    def is_right(self) -> bool:
        return self.is_kept == bool(self.case.evidence)

    def recall(self, k: int) -> float:
        found = [any(holds(one, *wanted) for one in self.passages[:k]) for wanted in self.case.evidence]
        return sum(found) / len(found)


def holds(passage: Passage, name: str, words: str) -> bool:
    return passage.name == name and squeeze(words) in squeeze(passage.text)


def squeeze(text: str) -> str:
    return re.sub(r"[\s*_]+", " ", text).casefold()


# ── the sets ────────────────────────────────────────────────────────────────


def read_set(name: str, *, is_held_out: bool = False) -> dict[str, Any]:
    folder = SETS / "held_out" if is_held_out else SETS
    return json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))


def read_cases() -> list[Case]:
    """Questions that weights and thresholds were chosen with, and those that were held out of it."""
    return [case for is_held_out in (False, True) for name in NAMES for case in read_part(name, is_held_out)]


def read_part(name: str, is_held_out: bool) -> Iterator[Case]:
    given = read_set(name, is_held_out=is_held_out)
    for one in given["questions"]:
        evidence = [place_evidence(name, given, part) for part in one["evidence"]]
        yield Case(name, is_held_out, one["question"], evidence)
    for question in given["unanswerable"]:
        yield Case(name, is_held_out, question)


def place_evidence(name: str, given: dict[str, Any], part: Any) -> tuple[str, str]:
    match name:
        case "encyclopedia":
            (text,) = (one["text"] for one in given["articles"] if one["title"] == part)
            return f"{part}.md", text[:60]
        case "meeting":
            return name_meeting(given), part
        case "story":
            return STORY.name, part[1]
        case _:
            return part[0], part[1]


def write_files(folder: Path) -> None:
    """Everything that is ground, as files."""
    shutil.copytree(ROOT / "examples" / "inbox", folder, dirs_exist_ok=True)
    shutil.copy(STORY, folder / STORY.name)
    articles = [
        (one["title"], one["text"])
        for is_held_out in (False, True)
        for one in read_set("encyclopedia", is_held_out=is_held_out)["articles"]
    ]
    for title, text in [*articles, *make_noise(NOISE)]:
        (folder / f"{title}.md").write_text(f"# {title}\n\n{text}\n", encoding="utf-8")
    for is_held_out in (False, True):
        meeting = read_set("meeting", is_held_out=is_held_out)
        turns = "\n\n".join(f"**{who}:** {said}" for who, said in meeting["turns"])
        (folder / name_meeting(meeting)).write_text(f"# {meeting['title']}\n\n{turns}\n", encoding="utf-8")


def name_meeting(given: dict[str, Any]) -> str:
    return re.sub(r"\W+", "-", given["title"].casefold()) + ".md"


@contextmanager
def ground_store(kept: Path | None) -> Iterator[Settings]:
    """A data folder in which all files of the sets are ground by the program itself."""
    data = kept or Path(tempfile.mkdtemp(prefix="gristmill-bench-"))
    settings = Settings(data=data)
    try:
        if not (data / "bench-ground").exists():
            with tempfile.TemporaryDirectory() as files:
                write_files(Path(files))
                environment = {**os.environ, "GRISTMILL_DATA": str(data)}
                command = [sys.executable, "-m", "gristmill", "up", files, "--once"]
                subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
            (data / "bench-ground").touch()
        yield settings
    finally:
        Embedded(data).stop("immediate" if kept is None else "fast")
        if kept is None:
            shutil.rmtree(data, ignore_errors=True)


# ── what is measured ────────────────────────────────────────────────────────


@asynccontextmanager
async def open_answerer(settings: Settings, llm: FakeLlm | None = None) -> AsyncIterator[tuple[Database, Answerer]]:
    async with open_database(settings, size=8) as db, Finder(db, settings) as finder:
        await finder.warm_up()
        yield db, Answerer(db, finder, settings.ask, llm, "scripted" if llm else "")


async def retrieve_all(answerer: Answerer, cases: Sequence[Case]) -> list[Outcome]:
    for case in cases[:5]:
        await answerer.find(case.question, GLOBAL)  # to warm up
    outcomes: list[Outcome] = []
    for case in cases:
        began = time.perf_counter()
        known, grounds = await answerer.find(case.question, GLOBAL)
        outcomes.append(Outcome(case, known.passages, grounds, 1000 * (time.perf_counter() - began)))
    return outcomes


def sum_up(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """The figures of the questions that were held out; of those that the weights were chosen with, as `tuned_…`."""
    held_out = [one for one in outcomes if one.case.is_held_out]
    figures = sum_up_part(held_out)
    for name in NAMES:
        own = [one for one in held_out if one.case.set == name and one.case.evidence]
        figures[f"{name}_recall5"] = statistics.mean(one.recall(5) for one in own)
        figures[f"{name}_recall10"] = statistics.mean(one.recall(10) for one in own)
    tuned = sum_up_part([one for one in outcomes if not one.case.is_held_out])
    figures |= {f"tuned_{name}": value for name, value in tuned.items()}
    times = sorted(one.ms for one in outcomes)
    figures["added_ms"] = statistics.median(times)
    figures["added_p95_ms"] = times[int(0.95 * len(times))]
    return figures


def sum_up_part(outcomes: Sequence[Outcome]) -> dict[str, float]:
    answerable = [one for one in outcomes if one.case.evidence]
    without = [one for one in outcomes if not one.case.evidence]
    figures = {f"evidence_recall{k}": statistics.mean(one.recall(k) for one in answerable) for k in (5, 10)}
    # Each of the two is easily bought with the other: they are read together.
    figures["abstained_right"] = statistics.mean(one.is_right for one in without)
    figures["answered_right"] = statistics.mean(one.is_right for one in answerable)
    figures["decided_right"] = statistics.mean(one.is_right for one in outcomes)
    return figures


# ── citations ───────────────────────────────────────────────────────────────


@dataclass
class Script:
    """A model that quotes, paraphrases, forgets its marks, names evidence that does not exist, and makes things up."""

    numbers: random.Random = field(default_factory=lambda: random.Random(7))

    def reply(self, prompt: str) -> str:
        evidence = re.split(r"^\[(\d+)\] \(.*\)$", prompt.split("=== evidence ")[2], flags=re.MULTILINE)
        found = [
            (int(number), sentence)
            for number, text in zip(evidence[1::2], evidence[2::2], strict=True)
            for sentence in re.findall(r"[A-Z][^.!?\n|]{40,200}[.]", text)
        ]
        if not found:
            return "I don't know."
        said = [self.write(*one) for one in self.numbers.sample(found, min(4, len(found)))]
        return " ".join([*said, "The moon is made of 4,711 green cheeses [1]."])

    def write(self, number: int, sentence: str) -> str:
        body = sentence.rstrip(".")
        return self.numbers.choice(
            (f"{body} [{number}].", f"{body}. [{number}]", f"{body} (source {number}).", f"{body} [99].", f"{body}.")
        )


async def check_citations(db: Database, answerer: Answerer, cases: Sequence[Case]) -> tuple[int, int]:
    """How many citations there were, and how many are the bytes of the stored page."""
    total = exact = 0
    for case in cases:
        answer = await answer_whole(answerer, case.question)
        cited = [one for sentence in answer.sentences for one in sentence.citations]
        async with db.transaction() as tx:
            texts = await load_texts(tx, [(one.document, one.page) for one in cited]) if cited else {}
        for one in cited:
            total += 1
            stored = texts[one.document, one.page]
            exact += stored[one.start : one.stop].encode() == one.quote.encode() and bool(one.quote)
    return total, exact


async def answer_whole(answerer: Answerer, question: str) -> CheckedAnswer:
    async for event in answerer.answer(question, GLOBAL):
        if isinstance(event, AnswerEnded):
            return event.answer
    raise AssertionError("an answer ends")


# ── SciFact: one passage is enough ──────────────────────────────────────────


async def measure_scifact(part: int | None) -> dict[str, float]:
    folder = CORPORA / "scifact"
    abstracts = [json.loads(line) for line in (folder / "corpus.jsonl").read_text().splitlines()][:part]
    queries = dict(line.split("\t") for line in (folder / "queries.tsv").read_text().splitlines())
    relevant: dict[str, set[str]] = {}
    for line in (folder / "qrels.txt").read_text().splitlines():
        query, _, document, grade = line.split()
        if int(grade) > 0:
            relevant.setdefault(query, set()).add(document)
    async with database() as db:
        pool = ProcessPool(os.cpu_count() or 1)
        embedder = MiniLm(pool)
        async with db.transaction() as tx:
            scope = await scope_id(tx, GLOBAL)
            await vectors.register(tx, embedder)
        todo = [abstracts[at : at + 256] for at in range(0, len(abstracts), 256)]

        async def ground_all() -> None:
            while todo:
                await ground(db, embedder, todo.pop())

        await asyncio.gather(ground_all(), ground_all())
        await pool.close()
        await lexicon.fold_terms(FoldTerms(scope), db=db)
        say(f"SciFact: {len(abstracts):,} abstracts are searchable")
        settings = Settings()
        async with Finder(db, settings) as finder:
            await finder.warm_up()
            answerer = Answerer(db, finder, settings.ask, None, "")
            recalls: dict[int, list[float]] = {5: [], 10: []}
            for query, wanted in relevant.items():
                known, _ = await answerer.find(queries[query], GLOBAL)
                names = list(dict.fromkeys(one.name for one in known.passages))
                for k, list_ in recalls.items():
                    list_.append(len(wanted & set(names[:k])) / len(wanted))
    return {f"scifact_recall{k}": statistics.mean(list_) for k, list_ in recalls.items()}


# ── all of it ───────────────────────────────────────────────────────────────


async def measure(settings: Settings, *, verbose: bool) -> dict[str, float]:
    cases = read_cases()
    async with open_answerer(settings) as (_, answerer):
        outcomes = await retrieve_all(answerer, cases)
    if verbose:
        for one in outcomes:
            show(one)
    figures = sum_up(outcomes)
    async with open_answerer(settings, FakeLlm(Script().reply)) as (db, answerer):
        total, exact = await check_citations(db, answerer, [case for case in cases if case.evidence])
    say(f"{total} citations, {exact} exact")
    figures["citation_exact"] = exact / total if total else 0.0
    return figures


def show(one: Outcome) -> None:
    grounds = one.grounds
    what = f"recall5 {one.recall(5):.2f} recall10 {one.recall(10):.2f}" if one.case.evidence else "no answer"
    decided = "kept" if one.is_kept else "abstained"
    part = "held out" if one.case.is_held_out else "tuned"
    print(
        f"{'  ' if one.is_right else '✗ '}{part:9}{one.case.set:12} {what:28} {decided:9} cover {grounds.coverage:.2f} "
        f"near {grounds.similarity:.2f} {one.ms:4.0f} ms  {one.case.question}  "
        f"{grounds.strange} {grounds.lacks_kind}",
        file=sys.stderr,
    )
    for name, words in one.case.evidence:
        at = next((n for n, p in enumerate(one.passages, 1) if holds(p, name, words)), None)
        print(f"      {at or '–'}: {name}: {words}", file=sys.stderr)


def write_table(figures: dict[str, float]) -> None:
    rows = [
        ("held-out questions: evidence recall@5", "evidence_recall5", "≥ 0.80"),
        ("held-out questions: evidence recall@10", "evidence_recall10", ""),
        ("… of encyclopedic questions, recall@5", "encyclopedia_recall5", ""),
        ("… of the meeting, recall@5", "meeting_recall5", ""),
        ("… of the story, recall@5", "story_recall5", ""),
        ("… of examples/inbox, recall@5", "inbox_recall5", ""),
        ("single-hop (SciFact): recall@5", "scifact_recall5", ""),
        ("single-hop (SciFact): recall@10", "scifact_recall10", ""),
        ("citations that are exact", "citation_exact", "1.0"),
        ("questions without an answer that end in “I don't know”", "abstained_right", "≥ 0.90"),
        ("questions with an answer that are not refused", "answered_right", ""),
        ("both: questions decided right", "decided_right", ""),
        ("questions the weights were chosen with: recall@5", "tuned_evidence_recall5", ""),
        ("… recall@10", "tuned_evidence_recall10", ""),
        ("… without an answer, and refused", "tuned_abstained_right", ""),
        ("… with an answer, and not refused", "tuned_answered_right", ""),
        ("ms until the model is asked, median", "added_ms", "≤ 150"),
        ("ms until the model is asked, 95 %", "added_p95_ms", ""),
        ("ms from a person's request until the slot of a background run is free, median", "run_free_ms", "≤ 100"),
        ("… largest of 20", "run_free_max_ms", ""),
        ("… until the backend of its model is left, median", "model_left_ms", ""),
    ]
    lines = [f"*{machine()}*", "", "| | | to reach |", "|---|--:|---|"]
    lines += [f"| {label} | {figures[name]:.3g} | {goal} |" for label, name, goal in rows if name in figures]
    text = PAGE.read_text(encoding="utf-8")
    body = f"{BEGIN}\n" + "\n".join(lines) + f"\n{END}"
    PAGE.write_text(re.sub(re.escape(BEGIN) + ".*?" + re.escape(END), lambda _: body, text, flags=re.DOTALL))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, help="A data folder to grind into once and to use again.")
    parser.add_argument("--verbose", action="store_true", help="Show every question.")
    parser.add_argument("--quick", action="store_true", help="Without SciFact; the page stays as it is.")
    given = parser.parse_args()
    with ground_store(given.keep) as settings:
        figures = asyncio.run(measure(settings, verbose=given.verbose))
    figures |= asyncio.run(measure_run_interrupts())
    if not given.quick:
        figures |= asyncio.run(measure_scifact(None))
        write_table(figures)
    ordered = {name: figures[name] for name in (*PROMISED, *(n for n in figures if n not in PROMISED))}
    print(json.dumps({name: round(value, 3) for name, value in ordered.items()}))


if __name__ == "__main__":
    main()
