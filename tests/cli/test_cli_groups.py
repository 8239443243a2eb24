"""`gristmill group` and `gristmill dead`: many tasks, and those that failed."""

import json

from desk import within

from gristmill.queue import Envelope, open_group, seal, send_many
from mill import Convert, Extract


def group_of(url, *letters, sealed=True):
    async def fill(tx):
        group = await open_group(tx, label="a book")
        await send_many(tx, [Envelope(letter, parent=group) for letter in letters])
        if sealed:
            await seal(tx, group)
        return group

    return within(url, fill)


def test_a_group_is_watched_to_its_end(cli, url, ground):
    group = group_of(url, Extract(1), Extract(2), Convert(1))
    assert cli("group", "show", group, "--json").json["pending"] == 3
    ground()
    last = json.loads(cli("group", "show", group, "--watch", "--json").out.splitlines()[-1])
    assert (last["status"], last["done"], last["total"], last["failed"]) == ("failed", 3, 3, 1)
    assert "no password is known" in last["errors"][0]["error"]
    assert "3 of 3" in cli("group", "show", group).out
    assert "failed, 3 of 3" in cli("group", "show", group, "--watch").out


def test_a_phase_of_a_group_is_retried(cli, url, ground):
    group = group_of(url, Extract(1), Convert(1))
    ground()
    said = cli("group", "retry", group, "--kind", "demo-extract.facts")
    assert (said.code, said.out) == (1, f"Task {group} stays as it is: nothing in it is to be retried.\n")
    assert len(cli("group", "retry", group, "--queue", "demo-broken", "--json").json["tasks"]) == 1
    assert cli("group", "show", group, "--json").json["status"] == "pending"


def test_a_group_is_sealed_once_and_cancelled(cli, url):
    group = group_of(url, Extract(1), sealed=False)
    assert cli("group", "seal", group, "--json").json["sealed"] is True
    assert "sealed already" in cli("group", "seal", group).err
    assert cli("group", "cancel", group).out == "1 cancelled.\n"
    assert cli("group", "show", group, "--json").json["status"] == "cancelled"


def test_a_dead_letter_names_the_document_it_belongs_to(cli, ground, url, tmp_path):
    (tmp_path / "plan.md").write_text("# Plan\n")
    cli("add", tmp_path / "plan.md")
    owners = ("document:1", "document:99", "document:x", None)
    within(url, lambda tx: send_many(tx, [Envelope(Convert(n), owner=owner) for n, owner in enumerate(owners, 1)]))
    ground()
    named = {one["owner"]: one["document"] for one in cli("dead", "list", "--json").json}
    assert named == {"document:1": "plan.md", "document:99": None, "document:x": None, None: None}
    assert cli("dead", "list").out.count("plan.md") == 1


def test_a_task_is_no_group(cli, sent):
    (task,) = sent(Extract(1))
    for command in ("show", "retry", "cancel", "seal"):
        said = cli("group", command, task)
        assert (said.code, said.err) == (1, f"There is no group {task}.\n")


def test_dead_letters_are_counted_listed_and_clustered(cli, sent, ground, monkeypatch):
    assert "no dead letters" in cli("dead", "stats").out
    sent(*(Convert(item) for item in range(1, 6)))
    ground()
    stats = cli("dead", "stats", "--json").json
    assert (stats["total"], stats["alert"], stats["threshold"]) == (5, False, 10)
    monkeypatch.setenv("GRISTMILL_QUEUE_DEAD_ALERT", "5")
    assert cli("dead", "stats", "--json").json["alert"] is True
    assert "5 are alarming" in cli("dead", "stats").out
    assert len(cli("dead", "list", "--limit", 2, "--json").json) == 2
    first, second = cli("dead", "clusters", "--json").json
    assert (first["count"], second["count"]) == (3, 2)
    assert "<path>" in cli("dead", "clusters").out
    assert len(cli("dead", "list", "--cluster", second["fingerprint"], "--json").json) == 2


def test_a_dead_letter_is_shown_with_its_failures(cli, sent, ground):
    dead, done = sent(Convert(1), Extract(1))
    ground()
    shown = cli("dead", "show", dead, "--json").json
    assert shown["task"]["status"] == "failed"
    assert "failed" in [event["what"] for event in shown["history"]]
    assert cli("dead", "show", done).err == f"Task {done} is completed, not dead: gristmill task show {done}.\n"


def test_dead_letters_are_replayed_by_id_queue_cluster_or_all(cli, sent, ground):
    ids = sent(*(Convert(item) for item in range(1, 6)))
    for words, n in (([ids[0]], 1), (["--queue", "demo-broken"], 5), (["--all"], 5)):
        ground()
        assert cli("dead", "replay", *words, "--json").json == {"replayed": n}
    ground()
    largest = cli("dead", "clusters", "--json").json[0]["fingerprint"]
    assert cli("dead", "replay", "--cluster", largest).out == "3 dead letters are pending again.\n"
    said = cli("dead", "replay")
    assert said.code == 2
    assert "Say which dead letters" in said.err


def test_a_dead_letter_that_is_not_there_is_not_replayed(cli, sent, ground):
    assert cli("dead", "replay", "--all").out == "There was no dead letter to replay.\n"
    (done,) = sent(Extract(1))
    ground()
    for words, sentence in (
        ([99], "There is no task 99."),
        ([done], f"Task {done} is completed, not a dead letter: gristmill task why {done}."),
        (["--queue", "demo-extrac"], "There is no queue “demo-extrac”. Did you mean demo-extract?"),
        (["--cluster", "abc"], "No dead letters are in the cluster “abc”: gristmill dead clusters lists them all."),
    ):
        said = cli("dead", "replay", *words)
        assert (said.code, said.err) == (1, f"{sentence}\n")


def test_purging_asks_first(cli, sent, ground):
    sent(*(Convert(item) for item in range(1, 6)))
    ground()
    assert cli("dead", "purge", "--keep", 2).code == 2  # nobody is there to say yes
    assert "say --yes" in cli("dead", "purge", "--keep", 2, "--json").err
    assert cli("dead", "purge", "--keep", 2, "--yes", "--json").json == {"purged": 3}
    said = cli("dead", "purge", "--yes", "--older-than", "1d")
    assert said.out == "Nothing to remove: no dead letter is older than 1d, and there are no more than 5,000.\n"
    assert cli("dead", "purge", "--yes", "--older-than", "0s", "--json").json == {"purged": 2}
