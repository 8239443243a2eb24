"""Tools that look things up: sources, events, work, dates, sums, secrets, dependencies and pipelines."""

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from time import process_time

import pytest
from desk_work import PROJECT
from workbench import Workbench

from gristmill.agents.tools.calculate import compute
from gristmill.agents.tools.check_ci import find_mistakes
from gristmill.agents.tools.fetch_page import decode
from gristmill.agents.tools.list_events import ListEvents, is_between
from gristmill.agents.tools.manifests import read_manifest
from gristmill.agents.tools.patch_file import show_change
from gristmill.agents.tools.search_files import check_pattern
from gristmill.agents.tools.secrets import find_secrets, hides_secret
from gristmill.agents.tools.tell_date import TellDate, move_date
from gristmill.documents import index_document
from gristmill.errors import Refused, Transient
from gristmill.models import FakeEmbedder
from gristmill.qualifier import ItemWish, add_item
from gristmill.scopes import Scope
from gristmill.sources import Wanted, add_source

ADD_ITEM = """
INSERT INTO source_item (source, scope, external, state, urn, title, document, removed)
VALUES (%(source)s, %(scope)s, %(external)s, 'INDEXED', %(external)s, %(title)s, %(document)s, %(removed)s::jsonb)
"""


async def fill_source(bench: Workbench, wanted: Wanted, items: dict[str, tuple[str, str]], removed: str = "") -> None:
    """A source with items as a poll leaves them: name to title and text."""
    async with bench.db.transaction() as tx:
        source = await add_source(tx, wanted)
    for external, (title, text) in items.items():
        document = await index_document(
            bench.db, [FakeEmbedder()], external, text, title, wanted.name, scope=wanted.scope
        )
        gone = '{"documents": 1}' if external == removed else None
        row = {"external": external, "title": title, "document": document, "removed": gone}
        async with bench.db.transaction() as tx:
            await tx.execute(ADD_ITEM, source=source.id, scope=source.scope, **row)


def folder_source(name: str, kind: str, folder: Path, scope: Scope = PROJECT) -> Wanted:
    folder.mkdir(exist_ok=True)
    return Wanted(name, kind, {"path": str(folder)}, scope)


# --- sources


async def test_the_items_of_the_projects_own_sources_are_listed(bench: Workbench, tmp_path: Path) -> None:
    issues = {
        "MILL-1": ("Stones are worn", "They are worn."),
        "MILL-2": ("Flour is wet", "It is wet."),
        "MILL-3": ("Stones are gone", "They were here."),
    }
    await fill_source(bench, folder_source("issues", "markdown", tmp_path / "a"), issues, removed="MILL-3")
    theirs = folder_source("theirs", "markdown", tmp_path / "b", Scope("beta"))
    await fill_source(bench, theirs, {"SECRET-1": ("Secret", "Theirs.")})
    await bench.begin("What is open?")
    places = await bench.call("list_places")
    assert places.text.splitlines() == ["code (git)", "issues (markdown)"]
    found = await bench.call("list_items", source="issues", contains="stones")
    assert found.text.startswith("MILL-1: Stones are worn (document ")
    assert "MILL-3" not in found.text  # it was deleted at its source
    read = await bench.call("read_document", document=found.data["documents"][0])
    assert "They are worn." in read.text
    assert (await bench.call("list_items", source="issues", contains="nowhere")).text == "There are no such items."
    assert "There is no source “theirs”" in (await bench.call("list_items", source="theirs")).text


async def test_events_between_two_days_are_listed(bench: Workbench, tmp_path: Path) -> None:
    events = {
        "a": ("Milling", "# Milling\n\n**When:** 2027-05-03 14:00 UTC – 2027-05-03 15:00 UTC  \n\nBring flour."),
        "b": ("Fair", "# Fair\n\n**When:** 2027-05-01 – 2027-05-09  "),
        "c": ("Baking", "# Baking\n\n**When:** 2027-06-01 08:00 UTC  "),
    }
    await fill_source(bench, folder_source("diary", "ics", tmp_path / "ics"), events)
    await bench.begin("Is Monday free?")
    found = await bench.call("list_events", calendar="diary", first_day="2027-05-03", last_day="2027-05-04")
    assert [line.partition(" (document")[0] for line in found.text.splitlines()] == [
        "2027-05-01 – 2027-05-09: Fair",
        "2027-05-03 14:00 UTC – 2027-05-03 15:00 UTC: Milling",
    ]
    none = await bench.call("list_events", calendar="diary", first_day="2028-05-03", last_day="2028-05-03")
    assert none.text == "No event from 2028-05-03 to 2028-05-03."
    wrong = await bench.call("list_events", calendar="diary", first_day="2027-05-04", last_day="2027-05-03")
    assert "before the first" in wrong.text
    assert (
        "no source “code” of the kind"
        in (await bench.call("list_events", calendar="code", first_day="2027-05-04", last_day="2027-05-05")).text
    )


async def test_the_work_of_a_project_is_listed_what_is_due_first(bench: Workbench) -> None:
    due = datetime(2030, 5, 3, tzinfo=UTC)
    async with bench.db.transaction() as tx:
        await add_item(tx, PROJECT, ItemWish("Sharpen the stones"), by="anna")
        await add_item(tx, PROJECT, ItemWish("Pay the miller", deadline=due, urgency="high"), by="anna")
        await add_item(tx, Scope("beta"), ItemWish("Their secret"), by="bob")
    await bench.begin("What is due?")
    first, second = (await bench.call("list_work")).text.splitlines()
    assert ": Pay the miller (user_task, " in first
    assert "urgency high, due 2030-05-03" in first
    assert ": Sharpen the stones (" in second
    assert (await bench.call("list_work", contains="stones")).data == {"items": 1}
    assert (await bench.call("list_work", contains="their")).text == "There is no such work."


# --- dates and sums


@pytest.mark.parametrize(
    ("day", "by", "found"),
    [
        ("2027-01-31", {"months": 1}, "2027-02-28"),
        ("2027-12-31", {"days": 1}, "2028-01-01"),
        ("2028-02-29", {"months": 12}, "2029-02-28"),
        ("2027-05-03", {"weeks": -1, "days": 2}, "2027-04-28"),
        ("2027-01-15", {"months": -13}, "2025-12-15"),
    ],
)
def test_a_day_is_counted_from_another(day: str, by: dict[str, int], found: str) -> None:
    assert move_date(date.fromisoformat(day), TellDate.model_validate(by)).isoformat() == found


async def test_the_day_of_today_is_the_databases_and_a_day_has_its_weekday(bench: Workbench) -> None:
    await bench.begin("What day is it?")
    told = await bench.call("tell_date", day="2027-05-03", days=1)
    assert told.text.startswith("It is 2027-05-04, a Tuesday, in week 18.\nNow it is ")
    assert "Wednesday 2027-05-05" in told.text
    assert "(+02:00)" in (await bench.call("tell_date", zone="Africa/Johannesburg")).text
    assert "no time zone" in (await bench.call("tell_date", zone="Mill/Stone")).text
    assert "no year" in (await bench.call("tell_date", day="9999-12-31", days=10)).text


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("0.1 + 0.2", "0.3"),
        ("sum(19.99, 5.00, 0.01) * 1.19", "29.7500"),
        ("round(100 / 3, 2)", "33.33"),
        ("-(2 + 3) * 4", "-20"),
        ("max(1, 2.5) - min(1, 2.5)", "1.5"),
        ("sum(1_000,\n  2.5)", "1002.5"),
        ("12345678901234567890.01 + 0.01", "12345678901234567890.02"),
    ],
)
def test_a_sum_is_exact(expression: str, value: str) -> None:
    assert compute(expression) == Decimal(value)


@pytest.mark.parametrize(
    "expression",
    [
        "1 / 0",
        "2 ** 99",
        "__import__('os')",
        "open",
        "1,234.50 + 1",
        "'1'",
        "1e400",
        "sum(",
        "(" * 500,
        "1e-50000000",
        "0e-50000000",
        "0 * 1e-90 * 1e-90",
        "round(0, 400000)",
        "round(1, 1e50000000)",
        "round(1, 1e30)",
        "1e-90 * 1e-90 * 1e90 * 1e90",
        "round(1, 0.5, 2)",
    ],
)
def test_what_is_no_sum_is_refused(expression: str) -> None:
    with pytest.raises(Refused):
        compute(expression)


def test_a_sum_of_many_numbers_is_not_read_anew_for_each_of_them() -> None:
    begun = process_time()
    assert compute(f"sum({'1,' * 1_900} 1)") == 1901
    assert process_time() - begun < 0.3


async def test_a_sum_is_told_with_how_it_was_made(bench: Workbench) -> None:
    await bench.begin("Add it up.")
    assert (await bench.call("calculate", expression="19.99 + 0.01")).text == "19.99 + 0.01 = 20.00"
    assert (await bench.call("calculate", expression="exit()")).is_error


def test_an_event_at_a_day_that_no_calendar_has_is_passed_over() -> None:
    wanted = ListEvents(calendar="work", first_day=date(2027, 5, 3), last_day=date(2027, 5, 4))
    assert not is_between("2027-13-41", wanted)
    assert is_between("2027-13-41 and 2027-05-03", wanted)


# --- the workspace


@pytest.mark.parametrize("pattern", [r"(a*)*\1", "((a{1,250}){1,250}){1,250}", "(a{99}){99}"])
def test_a_pattern_that_could_take_hours_or_all_memory_is_refused(pattern: str) -> None:
    with pytest.raises(Refused):
        check_pattern(pattern)


async def test_patterns_with_small_counts_are_looked_for(bench: Workbench) -> None:
    await bench.begin("Look for it.")
    assert (await bench.call("search_files", pattern="[a-z]{3,6} a - b{1}")).data["lines"] == 1
    assert (await bench.call("search_files", pattern=r"(a)\1")).is_error
    assert not (await bench.call("search_files", pattern=r"(a)\1", is_literal=True)).is_error


async def test_a_git_that_wants_more_memory_than_it_may_have_ends(bench: Workbench) -> None:
    await bench.begin("Look for it.")
    git = replace((await bench.context.files()).git, most_memory=1 << 20)
    with pytest.raises(Transient):
        await git.run("version")


@pytest.mark.parametrize("charset", [None, "utf-8", "UTF8", "idna", "punycode", "zlib", "undefined", "no such one"])
def test_a_text_is_read_whatever_its_server_calls_its_characters(charset: str | None) -> None:
    begun = process_time()
    assert decode(b"a" * 300_000, charset) == "a" * 300_000
    assert process_time() - begun < 1
    assert decode("Mühle".encode("latin-1"), "iso-8859-1") == "Mühle"


def test_a_change_is_shown_from_its_first_line_to_its_last() -> None:
    before = [f"line {n}" for n in range(1, 9)]
    after = [*before[:3], "new", "newer", *before[5:]]
    assert list(show_change(before, after)) == [
        *("@@ -2,6 +2,6 @@", " line 2", " line 3", "-line 4", "-line 5", "+new", "+newer", " line 6", " line 7")
    ]
    assert list(show_change(["a"], ["a", "a"])) == ["@@ -1,1 +1,2 @@", " a", "+a"]
    assert list(show_change(["a", "a", "b"], ["a", "b"]))[1:] == [" a", "-a", " b"]
    begun = process_time()
    lines = [f"{n % 97}" for n in range(100_000)]
    list(show_change(lines, lines[::-1]))
    assert process_time() - begun < 1


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("-----BEGIN RSA PRIVATE KEY-----", "a private key"),
        ("aws = AKIA" + "ABCDEFGHIJKLMNOP", "a key of AWS"),
        ("token: ghp_" + "a1" * 18, "a token of GitHub"),
        ("https://anna:hunter22@mill.example/x", "a password in an address"),
        ("db_password = 'correcthorse9'", "a password"),
        ('"api-key": "9f8a7b6c5d4e"', "a password"),
        ("password = 'your-key-here', old_password = 'correcthorse9'", "a password"),
        ("my.password.of-the_mill: 'correcthorse9'", "a password"),
        ("token-eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w", "a signed token"),
        ("x" * 300_000 + " password = 'correcthorse9' " + "x" * 300_000, "a password"),
        ("x " * 9_995 + "password = 'correcthorse9'", "a password"),  # where one window ends
        (" " * 19_990 + "AKIA" + "ABCDEFGHIJKLMNOP", "a key of AWS"),
        ("password = os.environ['X']", None),
        ("password = '${PASSWORD}'", None),
        ("api_key = 'your-key-here'", None),
        ("token = 'xxxxxxxxxxxx'", None),
        ("The password is secret.", None),
        ("postgres://anna:$PASSWORD@host/db", None),
    ],
)
def test_a_secret_is_known_by_its_shape(line: str, kind: str | None) -> None:
    assert hides_secret(line) == kind
    for found in find_secrets(line):
        assert len(found.hint.partition("…")[0]) <= 4


@pytest.mark.parametrize(
    "part", ["a.", "secret", "passwd ", "password='", "eyJ-", "eyJaaaaaaaaaa.", "a://b:", "ghp_", "-----BEGIN A", "é_"]
)
def test_no_line_takes_long_to_look_through_for_secrets(part: str) -> None:
    begun = process_time()
    list(find_secrets(part * (400_000 // len(part))))
    assert process_time() - begun < 2


@pytest.mark.parametrize(
    "text",
    [
        " " * 100_000 + "x",
        "\n" * 100_000,
        "curl " * 40_000,
        "${{ github.event." * 20_000,
        "FROM " * 40_000,
        "- " * 99_999,
    ],
)
def test_no_file_takes_long_to_look_through_for_mistakes(text: str) -> None:
    begun = process_time()
    list(find_mistakes(".github/workflows/ci.yml", text))
    assert process_time() - begun < 2


async def test_a_scan_says_where_secrets_stand_and_never_what_they_are(bench: Workbench) -> None:
    await bench.begin("Is it safe?")
    assert "No secret was found." in (await bench.call("scan_secrets")).text
    files = await bench.context.files()
    await files.write("deep/settings.py", "DEBUG = True\npassword = 'correcthorse9'\n")
    (bench.folder / "picture.png").write_bytes(b"\x89PNG\xff\xfe")
    found = await bench.call("scan_secrets")
    assert "deep/settings.py:2: a password, corr… (13 characters)" in found.text
    assert "correcthorse9" not in found.text
    assert "1 were not" in found.text
    assert (await bench.call("scan_secrets", folder="docs")).data["secrets"] == 0


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        (
            "requirements.txt",
            "a==1.0 --hash=sha256:x\nb>=2 # why\n-r more.txt\nc\n",
            {"a": False, "b": True, "c": True},
        ),
        ("pyproject.toml", '[project]\ndependencies=["a==1.0","b[x]>=2; os_name==\'nt\'"]', {"a": False, "b": True}),
        (
            "package.json",
            '{"dependencies": {"a": "1.2.3", "b": "^2", "c": "git+ssh://x/y"}}',
            {"a": False, "b": True, "c": True},
        ),
        ("Cargo.toml", '[dependencies]\na = "=1.2.3"\nb = {version = "1"}', {"a": False, "b": True}),
        ("go.mod", "module x\n\nrequire (\n\texample.org/a v1.2.3\n)\n", {"example.org/a": False}),
        ("go.mod", "require example.org/a v1.2.3 // indirect", {"example.org/a": False}),
        pytest.param("go.mod", f"{'a.' * 50_000}\n\ngo 1.22\n", {}, id="long"),
    ],
)
def test_a_dependency_is_firm_or_loose(path: str, text: str, found: dict[str, bool]) -> None:
    assert {one.name: bool(one.trouble) for one in read_manifest(path, text)} == found


async def test_dependencies_of_the_workspace_are_listed_also_where_a_file_is_broken(bench: Workbench) -> None:
    await bench.begin("What do we need?")
    files = await bench.context.files()
    await files.write("requirements.txt", "flour>=1\n")
    await files.write("web/package.json", "{broken")
    await files.write("deep/package.json", "[" * 100_000)
    await files.write("odd/pyproject.toml", "[project]\ndependencies = 5\n")
    found = await bench.call("list_dependencies")
    assert "requirements.txt: flour >=1 – any version that fits is taken" in found.text
    for broken in ("web/package.json", "deep/package.json", "odd/pyproject.toml"):
        assert f"{broken}: it cannot be read" in found.text
    assert found.data == {"dependencies": 1, "loose": 1}


@pytest.mark.parametrize(
    ("path", "line", "said"),
    [
        (".github/workflows/ci.yml", "  - uses: actions/checkout@v4", "not named by a commit"),
        (".github/workflows/ci.yml", f"  - uses: actions/checkout@{'a' * 40}", ""),
        (".github/workflows/ci.yml", "on: pull_request_target", "code of strangers"),
        (".github/workflows/ci.yml", "  run: echo ${{ github.event.issue.title }}", "words of strangers"),
        ("Dockerfile", "RUN curl https://x | sh", "run unseen"),
        ("Dockerfile", "FROM python", "no version"),
        ("Dockerfile", "FROM python:3.13-slim", ""),
        ("compose.yml", "    image: mill:latest", "no version"),
        ("compose.yml", "    privileged: true", "anything"),
        ("Dockerfile", "RUN cat x | wget -O- https://x | sudo bash", "run unseen"),
        ("Dockerfile", "RUN curl https://x | tee y | sh", ""),
        (".gitlab-ci.yml", "  allow_failure: true", "passed over"),
        (".gitlab-ci.yml", "  # allow_failure: true", ""),
    ],
)
def test_a_mistake_of_a_pipeline_is_found_at_its_line(path: str, line: str, said: str) -> None:
    found = [words for _, words in find_mistakes(path, f"permissions: read\n{line}\n")]
    assert (said in " ".join(found)) if said else found == []


async def test_pipelines_of_the_workspace_are_looked_through(bench: Workbench) -> None:
    await bench.begin("Is CI right?")
    assert "has no files of CI" in (await bench.call("check_ci")).text
    await (await bench.context.files()).write("Dockerfile", "FROM python\n")
    found = await bench.call("check_ci")
    assert found.text == "Looked at Dockerfile.\nDockerfile:1: no version is named"
    assert found.data == {"files": ["Dockerfile"], "mistakes": 1}
