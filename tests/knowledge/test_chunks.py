"""Pages become chunks that fit the model, cover everything once, and know where they stand."""

from hashlib import sha256
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shelf import chunked, placed

from gristmill.db import Database
from gristmill.ids import DocumentId
from gristmill.knowledge import chunks
from gristmill.models import tokens

WORDS = st.sampled_from(
    [
        "Payment",
        "is",
        "due",
        "within",
        "30 days.",
        "See Fig. 3",
        "e.g.",
        "Dr. Novák",
        "ends here.",
        "Why?",
        "přepravní",
        "日本語のテキスト。",
        "x" * 150,
        "https://example.com/a?b=c",
        "ABC-123",
        "\t",
        "  ",
        "\u200b",
        "naïve",
        "–",
    ]
)


def table(rows: list[str]) -> str:
    return "| a | b |\n|---|---|\n" + "\n".join(f"| {row} | 1 |" for row in rows)


def wide(names: list[str]) -> str:
    return f"| {' | '.join(names)} |\n{'|---' * len(names)}|\n" + f"{'| 17 ' * len(names)}|\n" * 9


SENTENCES = st.lists(WORDS, min_size=1, max_size=60).map(" ".join)
BLOCKS = st.one_of(
    SENTENCES,
    st.tuples(st.integers(1, 6), SENTENCES).map(lambda one: "#" * one[0] + " " + one[1][:80]),
    st.lists(SENTENCES, min_size=1, max_size=20).map(table),
    st.lists(WORDS, min_size=2, max_size=90).map(wide),
    st.lists(SENTENCES, min_size=1, max_size=9).map(lambda rows: "```\n" + "\n".join(rows) + "\n```"),
    st.lists(SENTENCES, min_size=1, max_size=9).map(lambda rows: "\n".join(f"- {row}" for row in rows)),
    st.text(max_size=300),
    st.text(alphabet="ab #|-`.\n\r\t ", max_size=80),
)
PAGES = st.lists(BLOCKS, max_size=12).map("\n\n".join)


@given(PAGES, st.sampled_from([24, 64, 256]), st.sampled_from(["", "A title", "word " * 90]))
def test_all_that_is_not_blank_is_covered_once_and_in_order_and_fits(text: str, limit: int, title: str) -> None:
    pieces = chunks.split(text, title=title, limit=limit)
    for before, after in pairwise(pieces):
        assert before.stop <= after.start
    covered = "".join(text[one.start : one.stop] for one in pieces)
    assert "".join(covered.split()) == "".join(text.split())
    for one in pieces:
        assert 0 <= one.start < one.stop <= len(text)
        assert one.text.endswith(text[one.start : one.stop])
        assert text[one.start : one.stop] == text[one.start : one.stop].strip()
        assert one.tokens == tokens.count(one.text_to_embed) + 2 <= limit
        assert one.hash == sha256(one.text_to_embed.encode()).digest()


PARAGRAPH = "The mill grinds slowly, e.g. at night. Dr. Grey pays 3.5 million by 1. March. Who else would? " * 30


def test_no_chunk_starts_within_a_sentence() -> None:
    starts = {one.text.split()[0] for one in chunks.split(PARAGRAPH)}
    assert len(chunks.split(PARAGRAPH)) > 2
    assert starts <= {"The", "Dr.", "Who"}


def test_what_nobody_began_with_a_capital_is_divided_where_it_stops() -> None:
    chat = (
        "the delivery is late, i think. they wrote, again, about the pump. who pays, then? nobody here knows, ok! " * 30
    )
    pieces = chunks.split(chat)
    assert len(pieces) > 2
    assert {one.text.split()[0] for one in pieces} <= {"the", "they", "who", "nobody"}


@pytest.mark.parametrize(
    ("sentences", "firsts"),
    [
        (
            "The U.S. Congress passed the act after a long debate. Later the U.K. Parliament met Sgt. Miller and "
            "Gov. Brown at 5 p.m. Monday. Ph.D. Students, Capt. Reed of Acme Corp. Berlin and Rev. Ames were there. ",
            {"The U.S.", "Later the", "Ph.D. Students,"},
        ),
        ("भारत एक विशाल देश है और यहाँ अनेक भाषाएँ बोली जाती हैं। दिल्ली इसकी राजधानी है। ", {"भारत एक", "दिल्ली इसकी"}),
        ("یہ ایک لمبا جملہ ہے جو کئی الفاظ پر ہے۔ دوسرا جملہ بھی یہاں ہے۔ ", {"یہ ایک", "دوسرا جملہ"}),
        ("هل تدور الطاحونة في الليل؟ نعم إنها تدور كل ليلة! ", {"هل تدور", "نعم إنها"}),
        ("Ջրաղացը պտտվում է գիշեր ու զօր։ Ջրաղացպանը քնած է։ ", {"Ջրաղացը պտտվում", "Ջրաղացպանը քնած"}),
        ("ወፍጮው ቀንና ሌሊት ይሽከረከራል። ባለቤቱ ተኝቷል። ", {"ወፍጮው ቀንና", "ባለቤቱ ተኝቷል።"}),
        ("စက်သည် ညတိုင်း လည်သည်။ ပိုင်ရှင် အိပ်နေသည်။ ", {"စက်သည် ညတိုင်း", "ပိုင်ရှင် အိပ်နေသည်။"}),
        ("ម៉ាស៊ីន វិល ទាំងយប់។ ម្ចាស់ កំពុងដេក។ ", {"ម៉ាស៊ីន វិល", "ម្ចាស់ កំពុងដេក។"}),
        ("水車は夜も 回る。 彼は「もう寝る。」と 言った。 ", {"水車は夜も 回る。", "彼は「もう寝る。」と 言った。"}),
    ],
)
def test_no_chunk_starts_after_an_abbreviation_and_every_script_has_its_full_stops(
    sentences: str, firsts: set[str]
) -> None:
    pieces = chunks.split(sentences * 120)
    assert len(pieces) > 3
    assert {" ".join(one.text.split()[:2]) for one in pieces} <= firsts


def test_the_headings_above_a_chunk_stand_before_it() -> None:
    text = f"# Contract\n\n## Payment\n\n{PARAGRAPH}\n\n## Term\n\nTwo years.\n"
    pieces = chunks.split(text, title="ACME")
    assert pieces[0].heading == "ACME"
    assert pieces[0].text.startswith("# Contract\n\n## Payment")
    assert {one.heading for one in pieces[1:-1]} == {"ACME › Contract › Payment"}
    assert (pieces[-1].heading, pieces[-1].text) == ("ACME › Contract", "## Term\n\nTwo years.")
    assert pieces[-1].text_to_embed == "ACME › Contract\n## Term\n\nTwo years."


def test_a_table_is_split_between_rows_and_repeats_its_header() -> None:
    rows = "".join(f"| part {n} | {n * 7} EUR |\n" for n in range(120))
    text = f"The parts are:\n\n| name | price |\n|---|---|\n{rows}"
    pieces = chunks.split(text)
    assert len(pieces) > 3
    assert {one.kind for one in pieces} == {"table"}
    for one in pieces[1:]:
        assert one.text == "| name | price |\n|---|---|\n" + text[one.start : one.stop]
        assert text[one.start : one.stop].startswith("| part")


@pytest.mark.parametrize("columns", [16, 20, 60, 200])
def test_a_wide_table_repeats_as_much_of_its_header_as_fits(columns: int) -> None:
    names = [f"{name} {n}" for n in range(columns // 4) for name in ("customer", "outstanding amount", "due", "VAT")]
    rows = "".join("| " + " | ".join(f"v{n}" for n in range(columns)) + " |\n" for _ in range(60))
    text = f"| {' | '.join(names)} |\n{'| --- ' * columns}|\n{rows}"
    pieces = chunks.split(text)
    later = [one for one in pieces if one.start > text.index("| v0")]
    assert len(later) > 10
    for one in later:
        header = one.text.removesuffix(text[one.start : one.stop])
        assert header.startswith("| customer")
        assert header.endswith(" |\n")
        assert "---" not in header
        assert tokens.count(header) <= chunks.LONGEST // 3
        assert header.count(" |") == columns or columns > 40, "no column is left out while there is room"


def test_a_header_that_is_one_endless_word_leaves_room_for_the_rows() -> None:
    text = f"| {'x' * 9_000} | name |\n|---|---|\n" + "".join(f"| {n} | axle |\n" for n in range(100))
    later = [one for one in chunks.split(text) if one.start > text.index("|---")]
    assert {one.text.removesuffix(text[one.start : one.stop]) for one in later} == {"|  | name |\n"}


LOG = "\n".join(f"2026-01-0{n} 10:00:0{n} ERROR worker {n} lost its lease on task {n * 17}" for n in range(1, 9))
SPEAKERS = ("Jane Doe", "Bob Grey", "Ann Lee (Acme)")
SPOKEN = "\n".join(f"[00:0{n}:02] {who}: Acme Corp signed yesterday." for n, who in enumerate(SPEAKERS))
CHAT = "\n".join(f"2026-01-05T10:0{n}:00 {who}: tell Acme of ERROR 7" for n, who in enumerate(SPEAKERS))
WHISPERED = "\n".join(f"[00:0{n}:01.000 --> 00:0{n}:09.500]  And Acme Corp signed." for n in range(4))
AGENDA = "09:00:00 Arrival of Jane Doe\n10:00:00 Meeting with Acme Corp\n11:00:00 Lunch"
ORDERED = "Jane Doe of Acme Corp ordered:"
CLAUSES = "- all goods go to Acme Corp in Berlin;\n- all inspections are made by Jane Doe;\n- all invoices are sent;"
CODE = "```python\ndef grind(grain):\n    return flour(grain)\n```"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (PARAGRAPH, "prose"),
        (LOG, "log"),
        (f"```\n{LOG}\n```", "log"),
        (CODE, "code"),
        ("int main() {\n  int x = 1;\n  return x;\n}\n", "code"),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "table"),
        ("- one\n- two\n- three", "prose"),
        (f"{ORDERED}\n\n{table(['axle', 'wheel', 'stone'])}", "table"),
        *((text, "prose") for text in (CLAUSES, SPOKEN, CHAT, WHISPERED, AGENDA)),
        ("(a) deliver the goods (at its own cost);\n(b) keep the books;\n(iv) notify the director(s);", "prose"),
        ("deliver the goods (at once);\nkeep the books;\nnotify the director(s);", "prose"),
        ("for the mill is old\nif the wheel would turn\nwhile the miller sleeps", "prose"),
        ("@jane please call Acme\n@bob please pay\n@ann please wait", "prose"),
        ("import os\nfrom mill import grind\n\n\nimport sys\nx = grind(1);\nreturn x;", "code"),
        ("for (const x of list) {\n  grind(x);\n}\n", "code"),
        ("if ready:\n    return mill(1)\nelse:\n    raise Broken", "code"),
        ("SELECT id\nUPDATE mill SET x = 1\nCREATE TABLE mill (id int);", "code"),
        ("Jan  5 10:00:01 mill sshd[12]: opened\n" * 3, "log"),
        ("Jan  5 10:00:01 mill kernel: usb 1-1 is new\n" * 3, "log"),
        ("2026-01-05T10:00:00.123Z the wheel turns\n" * 3, "log"),
        ("10:00:01.123 [main] started in 3 s\n" * 3, "log"),
        ("2026-01-05 10:00:00 status installed mill:amd64 1.0\n" * 3, "log"),
        ("[INFO] the wheel turns\n" * 3, "log"),
    ],
)
def test_what_a_chunk_holds_is_recognised(text: str, kind: str) -> None:
    assert {one.kind for one in chunks.split(text)} == {kind}


def test_what_is_said_before_a_log_is_a_chunk_of_its_own() -> None:
    assert [one.kind for one in chunks.split(f"{ORDERED}\n\n{LOG}")][:2] == ["prose", "log"]


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        (f"{ORDERED}\n\n| a | b |\n|---|---|\n| 1 | 2 |", ORDERED),
        ("| a | b |\n| 1 | 2 |\n\nBob pays.\nSoon.", "Bob pays.\nSoon."),
        ("## The orders of Jane\n\n| a | b |\n|---|---|\n| 1 | 2 |", ""),
        ("a | b\n1 | 2", ""),
    ],
)
def test_the_sentences_beside_the_rows_of_a_table(text: str, spoken: str) -> None:
    assert chunks.prose_outside_tables(text) == spoken


def test_the_signature_of_a_mail_makes_no_heading_of_the_line_above() -> None:
    text = f"Best regards\n-- \nJane Doe\n\nMore\n--\n\n{PARAGRAPH}"
    assert {one.heading for one in chunks.split(text, title="Flour")} == {"Flour"}


@pytest.mark.parametrize(
    ("line", "title"),
    [("# Mill", "Mill"), ("# Mill ##  \r", "Mill"), ("# C#", "C#"), ("## ## a", "## a"), ("# Mill\n====", "Mill")],
)
def test_a_heading_is_named_without_its_marks(line: str, title: str) -> None:
    assert {one.heading for one in chunks.split(f"{line}\n\n{PARAGRAPH}")[1:]} == {title}


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Sehr geehrte Damen und Herren, anbei erhalten Sie die Rechnung für den Monat März.", "de"),
        ("Smlouva o dílo uzavřená mezi objednatelem a zhotovitelem dne 3. března.", "cs"),
        ("The invoice for the last month is attached to this letter.", "en"),
        ("4711 / 0815", None),
        (CODE, None),
    ],
)
def test_the_language_is_told_where_it_is_certain(text: str, language: str | None) -> None:
    assert [one.language for one in chunks.split(text)] == [language]


def test_a_page_of_nothing_has_no_chunks() -> None:
    assert chunks.split(" \n\t\r\n ") == []


async def test_chunks_are_stored_with_their_place_and_those_of_before_go(db: Database) -> None:
    async with db.transaction() as tx:
        document = await placed(tx)
        first = await chunked(tx, document, PARAGRAPH)
        again = await chunked(tx, document, "Short.\n")
        gone = await chunks.load(tx, [(document, 1, 1), (DocumentId(99), 1, 0), (document, 1, 0)])
    assert len(first) > 1
    assert [one.ordinal for one in first] == list(range(len(first)))
    assert gone == [None, None, *again]
    assert (again[0].text, again[0].start, again[0].stop) == ("Short.", 0, 6)
    assert first[0].hash == chunks.split(PARAGRAPH)[0].hash
