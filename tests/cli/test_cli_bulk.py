"""`gristmill bulk`: preview, confirm, run, list, undo."""

from desk import MILL


def send(cli, n: int) -> None:
    for item in range(n):
        cli("task", "send", "demo-extract.facts", f'{{"item": {item}}}', "--app", MILL)


def test_an_action_is_previewed_run_and_undone(cli):
    send(cli, 3)
    seen = cli("bulk", "run", "cancel", "--queue", "demo-extract", "--preview", "--json").json
    assert (seen["count"], seen["exact"], len(seen["samples"])) == (3, True, 3)
    assert {task["status"] for task in cli("task", "list", "--json").json} == {"pending"}
    refused = cli("bulk", "run", "cancel", "--queue", "demo-extract")
    assert (refused.code, "This would cancel 3 tasks" in refused.err) == (2, True)
    done = cli("bulk", "run", "cancel", "--queue", "demo-extract", "--yes", "--json").json
    assert (done["status"], done["changed"], done["filter"]["queue"]) == ("done", 3, "demo-extract")
    assert "cancel" in cli("bulk", "list").out
    assert "demo-extract" in cli("bulk", "show", done["id"]).out
    assert "3 of 3 are as they were before." in cli("bulk", "undo", done["id"]).out
    kept = cli("task", "list", "--queue", "demo-extract", "--json").json
    assert {task["status"] for task in kept} == {"pending"}


def test_what_cannot_be_done_is_one_sentence(cli):
    assert "no action" in cli("bulk", "run", "burn", "--preview").err
    assert "There is no bulk action 9." in cli("bulk", "show", "9").err
    assert cli("bulk", "stop", "9").code == 1
    assert "No task fits." in cli("bulk", "run", "retry", "--preview").out
    send(cli, 1)
    assert "“lost” is no status" in cli("bulk", "run", "retry", "--status", "lost", "--preview").err


def test_tasks_are_found_by_text_and_the_list_says_how_to_go_on(cli):
    send(cli, 2)
    found = cli("task", "list", "--text", '"item": 1', "--json").json
    assert [task["payload"]["item"] for task in found] == [1]
    assert cli("task", "list", "--text", "nowhere", "--json").json == []
    assert "leave the status out" in cli("task", "list", "--cluster", "x", "--status", "pending").err
