"""The policy: pure decisions about what may happen, and the levels at which it is kept."""

from time import process_time

import pytest

from gristmill.agents.effects import Allow, Ask, RefuseEffect
from gristmill.agents.policy import (
    DEFAULT,
    Policy,
    Proposal,
    Target,
    check_policy,
    combine_policies,
    drop_policy,
    find_pattern,
    find_policy,
    is_named,
    judge,
    load_policy,
    set_policy,
)
from gristmill.agents.provenance import Origin, TargetKind, Who
from gristmill.db import Database
from gristmill.errors import Refused
from gristmill.scopes import GLOBAL, Scope

ACME, MILL = Scope("acme"), Scope("acme", "mill")


def target(kind: TargetKind, value: str, who: Who = "nobody") -> Target:
    return Target("to", kind, value, Origin(who, ("mail 7",) if who == "untrusted" else ()))


def mail(*to: Target) -> Proposal:
    return Proposal("send_mail", "outside", to)


def write(*files: str, who: Who = "workspace") -> Proposal:
    return Proposal("write_file", "workspace", [target("path", one, who) for one in files], files)


# --- files and branches


def test_the_workspace_may_be_changed_within_the_policy() -> None:
    assert judge(write("src/main.py"), DEFAULT) == Allow()
    assert judge(write("src/new.py", who="nobody"), DEFAULT) == Allow()


def test_a_file_whose_name_a_text_chose_is_asked_for() -> None:
    verdict = judge(write("src/backdoor.py", who="untrusted"), DEFAULT)
    assert isinstance(verdict, Ask)
    assert "'src/backdoor.py', and it comes from mail 7" in verdict.reasons[0]


@pytest.mark.parametrize(
    "file",
    [
        ".env",
        "deploy/.env.production",
        "certs/server.PEM",
        ".github/workflows/release.yml",
        ".GitHub/Workflows/x/y.yml",
        ".git/hooks/pre-commit",
        "keys/id_rsa",
        ".gitlab-ci.yml",
        ".github/actions/build/action.yml",
        ".circleci/config.yml",
        "azure-pipelines.yml",
        ".azure-pipelines/build.yml",
        "bitbucket-pipelines.yml",
        ".gitea/workflows/build.yaml",
        ".forgejo/workflows/build.yaml",
        ".woodpecker.yml",
        ".woodpecker/build.yaml",
    ],
)
def test_secrets_and_robots_are_never_changed(file: str) -> None:
    assert isinstance(judge(write(file, who="person"), DEFAULT), RefuseEffect)


def test_the_twenty_first_file_of_a_run_is_asked_for() -> None:
    before = [f"src/{n}.py" for n in range(20)]
    assert judge(write("src/0.py"), DEFAULT, before) == Allow()
    verdict = judge(write("src/20.py"), DEFAULT, before)
    assert verdict == Ask(("The run would change 21 files, and the policy allows 20.",))


def test_only_branches_that_the_policy_names_are_written() -> None:
    push = Proposal("git_push", "outside", branch="main", pushes=True)
    assert isinstance(judge(push, DEFAULT), RefuseEffect)
    assert isinstance(judge(push, Policy(auto_push=True)), RefuseEffect)
    named = Proposal("git_push", "outside", branch="agent/7", pushes=True)
    assert isinstance(judge(named, DEFAULT), Ask)
    assert judge(named, Policy(auto_push=True)) == Allow()


@pytest.mark.parametrize(
    ("path", "pattern", "fits"),
    [
        ("a/b/c.pem", "*.pem", True),
        ("a/b/c.pem", "a/*.pem", False),
        ("a/b/c.pem", "a/**", True),
        ("a/b/c.pem", "a/**/**/c.pem", True),
        ("a/b/c.pem", "**/b/**", True),
        ("a/b/c.pem", "**/a/**/b/**/c.pem", True),
        ("a/b/c.pem", "**/*/*/*/*", False),
        ("a/b/c.pem", "a/**/b", False),
        ("a/b/c.pem", "**/c.pem", True),
        ("c.pem", "**/c.pem", True),
        ("a/.env/x", ".env", True),
        ("a/environment", ".env", False),
    ],
)
def test_patterns_of_files(path: str, pattern: str, fits: bool) -> None:
    assert (find_pattern(path, [pattern]) is not None) == fits


@pytest.mark.parametrize(
    "pattern", ["**/" * 18 + "x", "**/" * 90 + "x", "**/*/" * 50 + "x", "*/**/" * 50 + "x", "**/*a*b" * 40, "*a" * 140]
)
def test_no_pattern_takes_long(pattern: str) -> None:
    begun = process_time()
    for path in ("a/b/c/d/e/f/g/h/main.py", "a/" * 1_000 + "y", "a" * 100 + "y"):
        assert find_pattern(path, [pattern]) is None
    assert process_time() - begun < 1


# --- the outside


@pytest.mark.parametrize("who", ["person", "untrusted", "nobody"])
def test_mail_to_whomever_is_asked_for_unless_the_policy_names_the_recipient(who: Who) -> None:
    assert isinstance(judge(mail(target("recipient", "anna@acme.example", who)), DEFAULT), Ask)
    named = Policy(recipients=("anna@acme.example",))
    assert judge(mail(target("recipient", "Anna@acme.example", who)), named) == Allow()
    assert isinstance(judge(mail(target("recipient", "xanna@acme.example", who)), named), Ask)


def test_one_recipient_that_the_policy_does_not_name_is_enough_to_ask() -> None:
    policy = Policy(recipients=("*@acme.example",))
    both = mail(target("recipient", "anna@acme.example"), target("recipient", "eve@evil.example", "untrusted"))
    assert isinstance(judge(both, policy), Ask)
    assert isinstance(judge(mail(target("recipient", "eve@x.acme.example")), policy), Ask)
    assert isinstance(judge(mail(target("recipient", "a@b@acme.example")), policy), Ask)


def test_a_tool_of_the_policy_acts_only_on_what_a_person_named() -> None:
    policy = Policy(tools=("comment_on_issue",))
    comment = [
        Proposal("comment_on_issue", "outside", [target("name", "MILL-1", who)]) for who in ("person", "untrusted")
    ]
    assert judge(comment[0], policy) == Allow()
    assert isinstance(judge(comment[1], policy), Ask)
    assert isinstance(judge(comment[0], DEFAULT), Ask)


def test_a_page_is_fetched_where_a_person_or_the_policy_sent_us() -> None:
    def fetch(url: str, who: Who) -> Proposal:
        return Proposal("fetch_page", "nothing", [target("url", url, who)])

    policy = Policy(domains=("docs.example.org", "*.acme.example"))
    assert judge(fetch("https://evil.example/", "person"), DEFAULT) == Allow()
    assert isinstance(judge(fetch("https://evil.example/?q=secret", "untrusted"), policy), Ask)
    assert isinstance(judge(fetch("https://evil.example/?q=secret", "nobody"), policy), Ask)
    assert judge(fetch("https://docs.example.org/x", "untrusted"), policy) == Allow()
    for odd in (
        "https://docs.example.org.evil.example/",
        "https://docs.example.org@evil.example/",
        "https://evil.example\\@docs.example.org/",
        "ftp://docs.example.org/",
        "https://acme.example/",
        "https://evilacme.example/",
    ):
        assert isinstance(judge(fetch(odd, "untrusted"), policy), Ask), odd


def test_a_command_runs_if_a_person_said_it_or_the_policy_names_it_word_by_word() -> None:
    policy = Policy(commands=("make test", "pytest *"))

    def run(command: str, who: Who = "nobody") -> Proposal:
        return Proposal("run_command", "workspace", [target("command", command, who)])

    assert judge(run("make test"), policy) == Allow()
    assert judge(run("pytest -q tests"), policy) == Allow()
    assert judge(run("curl evil.example", "person"), policy) == Allow()
    assert isinstance(judge(run("make"), policy), Ask)
    assert isinstance(judge(run("make test install"), policy), Ask)
    assert isinstance(judge(run("curl evil.example", "untrusted"), policy), Ask)


def test_a_policy_names_no_paths() -> None:
    assert not is_named(target("path", "x"), Policy(commands=("x",)))


# --- levels


def test_what_any_level_forbids_is_forbidden_and_the_nearest_permits() -> None:
    everybody = Policy(forbidden_files=("*.key",), max_files=5, auto_push=True)
    project = Policy(forbidden_files=("*.pem",), max_files=50, recipients=("a@b.example",))
    found = combine_policies([everybody, project])
    assert (found.forbidden_files, found.max_files) == (("*.key", "*.pem"), 5)
    assert (found.auto_push, found.recipients) == (False, ("a@b.example",))


async def test_a_project_has_its_own_policy_or_that_of_its_client_or_that_of_everybody(db: Database) -> None:
    async with db.transaction() as tx:
        assert await load_policy(tx, MILL) == DEFAULT
        await set_policy(tx, GLOBAL, "anna", max_files=7)
        await set_policy(tx, ACME, "anna", domains=("docs.example.org",))
        assert (await load_policy(tx, MILL)).domains == ("docs.example.org",)
        await set_policy(tx, MILL, "anna", auto_push=True)
        await set_policy(tx, MILL, "anna", commands=("make test",))
        found = await load_policy(tx, MILL)
    assert (found.auto_push, found.commands, found.domains, found.max_files) == (True, ("make test",), (), 7)
    async with db.transaction() as tx:
        assert await drop_policy(tx, MILL)
        assert not await drop_policy(tx, MILL)
        assert await find_policy(tx, MILL) is None
        assert (await load_policy(tx, MILL)).domains == ("docs.example.org",)


async def test_a_client_reads_everybodys_policy_and_changes_its_own_alone(db: Database) -> None:
    async with db.transaction() as tx:
        await set_policy(tx, GLOBAL, "anna", max_files=7)
        await set_policy(tx, Scope("beta"), "anna", max_files=1)
    async with db.transaction(seen_from=ACME) as tx:
        await set_policy(tx, MILL, "ben", auto_push=True)
        assert (await load_policy(tx, MILL)).max_files == 7
        assert await find_policy(tx, Scope("beta")) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_files": -1},
        {"recipients": ("*",)},
        {"recipients": ("*@",)},
        {"recipients": ("anna",)},
        {"domains": ("https://x.example",)},
        {"domains": ("*",)},
        {"domains": ("example",)},
        {"domains": ("nonsense..x",)},
        {"domains": ("*.-x.example",)},
        {"domains": ("docs.example.org:8080",)},
        {"commands": ("* test",)},
        {"branches": (" main",)},
        {"branches": ("",)},
        {"forbidden_files": ("x" * 301,)},
        {"commands": tuple(f"make {n}" for n in range(201))},
    ],
    ids=str,
)
def test_a_policy_that_says_nothing_or_everything_is_refused(wrong) -> None:
    with pytest.raises(Refused):
        check_policy(Policy(**wrong))
