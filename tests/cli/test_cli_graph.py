"""`gristmill graph`: what people see of the graph."""

import asyncio
import os
import sys
import threading
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "knowledge"))

from graph_shelf import contribute, shelve
from gristmill.db import Database
from gristmill.knowledge import graph
from gristmill.models import Extraction


@pytest.fixture
def family(url: str) -> None:
    """Jane – Bob – Eve, for all; Jane and a secret, for acme."""

    async def fill() -> None:
        async with Database(url) as db:
            one, two = await shelve(db, "Jane met Bob.", "Bob knows Eve.")
            await contribute(db, one, "Jane -MET-> Bob")
            await contribute(db, two, "Bob -KNOWS-> Eve")
            (secret,) = await shelve(db, "Jane keeps a Secret.", client="acme")
            await contribute(db, secret, "Jane -KEEPS-> Secret", client="acme")

    asyncio.run(fill())


def test_a_node_is_shown_with_its_edges_and_places(cli, family):
    shown = cli("graph", "show", "bob").out
    assert "←MET─ Jane" in shown
    assert "─KNOWS→ Eve" in shown
    assert "A note p. 1 (9–12)" in shown
    assert "“Jane met Bob.”" in shown
    data = cli("graph", "show", "person::BOB", "--json").json
    assert (data["key"], data["chunks"], len(data["neighbours"])) == ("person::bob", 2, 2)
    assert "Secret" not in cli("graph", "show", "jane").out
    assert "Secret" in cli("graph", "show", "jane", "--client", "acme").out


def test_who_is_not_there_is_answered_in_one_sentence(cli, family):
    said = cli("graph", "show", "person::jan")
    assert (said.code, said.err) == (1, "There is no node “person::jan” in GLOBAL: did you mean person::jane?\n")


def test_a_path_is_shown_step_by_step(cli, family):
    shown = cli("graph", "path", "jane", "eve").out
    assert "─MET→" in shown
    assert "“Bob knows Eve.”" in shown
    data = cli("graph", "path", "eve", "jane", "--json").json
    assert [step["edge"]["type"] for step in data["steps"]] == ["KNOWS", "MET"]
    said = cli("graph", "path", "jane", "eve", "--hops", "1")
    assert (said.code, said.out) == (1, "No way leads from “jane” to “eve” within 1 steps.\n")
    assert "same node" in cli("graph", "path", "jane", "person::Jane").out


def test_nodes_are_found_counted_and_exported(cli, family, tmp_path):
    assert [one["key"] for one in cli("graph", "find", "E", "--json").json] == ["person::eve", "person::jane"]
    assert cli("graph", "find", "zzz").code == 1
    assert cli("graph", "stats", "--json").json["nodes"] == 3
    assert "KNOWS" in cli("graph", "stats").out
    assert "Wrote" in cli("graph", "export", tmp_path / "g.graphml", "--client", "acme").out
    assert (
        len(list(ET.parse(tmp_path / "g.graphml").getroot().iter("{http://graphml.graphdrawing.org/xmlns}node"))) == 4
    )
    said = cli("graph", "export", tmp_path / "no" / "g.graphml")
    assert (said.code, "cannot be written" in said.err) == (1, True)


def test_aliases_are_added_listed_and_removed(cli, family):
    assert "1 mentions and 1 relations were moved" in cli("graph", "alias", "add", "person::eve", "person::eva").out
    assert cli("graph", "alias", "list", "--json").json == [{"alias": "person::eve", "key": "person::eva"}]
    assert cli("graph", "show", "Eve", "--json").json["key"] == "person::eva"
    assert "no alias of" in cli("graph", "alias", "rm", "person::eve").out
    assert cli("graph", "alias", "rm", "person::eve").code == 1
    assert cli("graph", "alias", "add", "eve", "person::eva").err.startswith("“eve” is no key of a node")


def test_the_doctor_tells_of_an_llm_that_finds_nothing(cli, url):
    async def fill(silent: bool, n: int) -> None:
        async with Database(url) as db:
            for chunk in await shelve(db, *(f"{silent} {at}" for at in range(n))):
                async with db.transaction() as tx:
                    await graph.save(tx, chunk, "", Extraction(silent=silent), b"k")

    asyncio.run(fill(False, 12))
    checks = {one["name"]: one for one in cli("doctor", "--json").json["checks"]}
    assert checks["extraction"]["verdict"] == "ok"
    asyncio.run(fill(True, 8))
    checks = {one["name"]: one for one in cli("doctor", "--json").json["checks"]}
    assert (checks["extraction"]["verdict"], "8 of the last 20" in checks["extraction"]["sentence"]) == ("warn", True)


def test_a_device_or_pipe_is_written_to_and_never_replaced(cli, family, tmp_path):
    pipe, heard = tmp_path / "pipe", []
    os.mkfifo(pipe)
    listener = threading.Thread(target=lambda: heard.append(pipe.read_text()))
    listener.start()
    said = cli("graph", "export", pipe)
    listener.join(30)
    assert (said.code, said.out, pipe.is_fifo()) == (0, "", True)
    assert len(ET.fromstring(heard[0])) > 0


def test_a_dash_is_standard_output(cli, family, tmp_path):
    said = cli("graph", "export", "-")
    assert (said.code, len(ET.fromstring(said.out)) > 0) == (0, True)
    assert not (tmp_path / "-").exists()
    both = cli("graph", "export", "-", "--json")
    assert both.code == 2
    assert "leave --json out" in both.json["error"]


def test_a_folder_is_no_file_to_export_to(cli, family, tmp_path):
    assert cli("graph", "export", "").err == ". is a folder: name the file to write, for example graph.graphml.\n"
    assert cli("graph", "export", tmp_path).code == 1


def test_types_that_are_left_out_of_a_table_are_counted(cli, url):
    async def fill() -> None:
        async with Database(url) as db:
            (note,) = await shelve(db, "Jane met Bob.")
            await contribute(db, note, *(f"Jane -T{n}-> Bob" for n in range(15)))

    asyncio.run(fill())
    assert "… and 3 more types: --json" in cli("graph", "stats").out


def test_edges_that_are_left_out_are_counted(cli, family):
    assert "… and 1 more edge: --limit" in cli("graph", "show", "bob", "--limit", 1).out
