"""Pages of Confluence and their attachments."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from confluence_server import USER, ConfluenceServer
from fake_server import serve
from farm import Farm, a_farm
from test_trackers import bring, edges_of, page_of

from gristmill.db import Database
from gristmill.sources.kinds import KINDS
from gristmill.sources.model import Source
from gristmill.sources.wiki.storage import convert_storage


@pytest.fixture
async def farm(db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Farm]:
    monkeypatch.setenv("PROVIDER_TOKEN", "good")
    async with a_farm(db, tmp_path) as opened:
        yield opened


@pytest.fixture(params=[True, False], ids=["cloud", "server"])
async def wiki(request: pytest.FixtureRequest) -> AsyncIterator[ConfluenceServer]:
    async with serve(ConfluenceServer(cloud=request.param)) as opened:
        yield opened


async def add(farm: Farm, wiki: ConfluenceServer, **options: str) -> Source:
    source = await farm.add("confluence", url=wiki.url, user=USER, token="env:PROVIDER_TOKEN", **options)
    await farm.work()
    return source


async def test_a_page_tells_its_space_people_parent_and_labels(farm: Farm, wiki: ConfluenceServer) -> None:
    wiki.put("above")
    wiki.put("one", "The <strong>bearing</strong> sings.", parent="1001", labels=["grease", "noise"])
    _, found = await bring(farm, wiki, "confluence", user=USER)
    page = found["page/1002"]
    assert (page.urn, page.type, page.title) == ("confluence::MILL::1002", "wiki", "About one")
    assert page_of(page).startswith(
        "# About one\n\n**Space:** MILL  \n**Author:** Anna Berg  \n**Labels:** grease, noise"
    )
    assert "**Labels:** grease, noise  \n" in page_of(page)
    assert "The **bearing** sings." in page_of(page)
    assert str(page.metadata["url"]).startswith(wiki.url)
    assert {
        "confluence::1002 IN_SPACE space::mill",
        "confluence::1002 CHILD_OF confluence::1001",
        "confluence::1002 HAS_LABEL label::grease",
        "person::anna berg AUTHORED confluence::1002",
        "person::bob miller EDITED confluence::1002",
    } <= edges_of(page)


async def test_an_attachment_is_a_document_of_its_own_and_goes_with_its_page(
    farm: Farm, wiki: ConfluenceServer
) -> None:
    wiki.put("one")
    wiki.put("two")
    wiki.attach("notes", "one", b"Grease the bearing.", "notes.txt")
    wiki.attach("copy", "two", b"Grease the bearing.", "copy.txt")
    source = await add(farm, wiki)
    names = ("confluence::MILL::1001", "confluence::MILL::1002")
    files = (f"{names[0]}::att1003", f"{names[1]}::att1004")
    assert await farm.documents() == dict.fromkeys([*names, *files], 1)
    kept = await farm.rows(
        "SELECT b.id FROM blob b WHERE b.hash IN (SELECT hash FROM document WHERE urn = ANY (%(urns)s))",
        urns=list(files),
    )
    assert len(kept) == 1
    wiki.attach("notes", "one", b"Grease it twice.")
    await farm.poll(source)
    assert (await farm.documents())[files[0]] == 2
    wiki.drop("one")
    await farm.compare(source)
    assert set(await farm.documents()) == {names[1], files[1]}


async def test_an_attachment_that_cannot_be_had_does_not_hold_up_its_page(farm: Farm, wiki: ConfluenceServer) -> None:
    wiki.put("one")
    wiki.attach("bad", "one", b"x")
    wiki.attach("good", "one", b"Grease the bearing.")
    wiki.fault = lambda request, call: web.Response(status=500) if request.path == "/media/att1002" else None
    source = await add(farm, wiki)
    states = await farm.states(source)
    assert states == {"page/1001": "INDEXED", "attachment/att1002": "SET_ASIDE", "attachment/att1003": "INDEXED"}
    wiki.fault = lambda request, call: None
    await farm.compare(source)
    assert set((await farm.states(source)).values()) == {"INDEXED"}


async def test_comments_are_documents_that_come_change_and_go_by_themselves(farm: Farm, wiki: ConfluenceServer) -> None:
    wiki.put("one")
    wiki.comment("below", "one", "Who greases the <strong>bearing</strong>? See https://example.org/grease")
    wiki.comment("beside", "one", "Which one?", "the bearing")
    source, found = await bring(farm, wiki, "confluence", user=USER)
    (below,) = [one for one in found.values() if one.urn == "confluence::MILL::1001::1002"]
    assert (below.type, below.title) == ("wiki", "Comment on About one")
    assert "**Author:** Bob Miller  \n" in page_of(below)
    assert "Who greases the **bearing**?" in page_of(below)
    assert "person::bob miller COMMENTED_ON confluence::1001" in edges_of(below)
    (beside,) = [one for one in found.values() if one.urn == "confluence::MILL::1001::1003"]
    assert "**State:** open  \n**About:** the bearing  \n" in page_of(beside)
    await farm.work()
    assert await farm.rows("SELECT FROM link_place WHERE urn = 'confluence::MILL::1001::1002'")
    page, *said = "confluence::MILL::1001", "confluence::MILL::1001::1002", "confluence::MILL::1001::1003"
    assert await farm.documents() == dict.fromkeys([page, *said], 1)
    wiki.comment("beside", "one", "Which one?", "the bearing", state="resolved")
    await farm.poll(source)
    assert await farm.documents() == {page: 1, said[0]: 1, said[1]: 2}  # its page is not fetched again
    del wiki.contents["below"]
    await farm.compare(source)
    assert set(await farm.documents()) == {page, said[1]}
    wiki.drop("one")
    await farm.compare(source, agreed=True)
    assert await farm.documents() == {}


async def test_what_belongs_to_a_blog_post_is_left_out_as_the_post_is(farm: Farm) -> None:
    async with serve(ConfluenceServer(cloud=False)) as wiki:
        wiki.put("one")
        wiki.put("post", is_blog=True)
        wiki.comment("below", "post", "Well said.")
        wiki.attach("photo", "post", b"A photo.")
        source = await add(farm, wiki)
        assert set(await farm.documents()) == {"confluence::MILL::1001"}
        await farm.compare(source)
        assert set(await farm.states(source)) == {"page/1001"}


async def test_comments_can_be_left_out(farm: Farm, wiki: ConfluenceServer) -> None:
    wiki.put("one")
    wiki.comment("below", "one", "Who greases it?")
    await add(farm, wiki, comments="false")
    assert set(await farm.documents()) == {"confluence::MILL::1001"}


async def test_a_download_that_leads_into_our_own_network_is_set_aside(farm: Farm, wiki: ConfluenceServer) -> None:
    wiki.put("one")
    wiki.attach("bad", "one", b"x")
    inside = web.Response(status=302, headers={"Location": "http://169.254.169.254/latest/meta-data/"})
    wiki.fault = lambda request, call: inside if request.path.startswith("/download/") else None
    source = await add(farm, wiki)
    (aside,) = [item for item in await farm.items(source) if item.state == "SET_ASIDE"]
    assert "169.254.169.254" in aside.error


async def test_an_attachment_that_is_too_large_is_not_even_fetched(farm: Farm, wiki: ConfluenceServer) -> None:
    limited = farm.settings.documents.model_copy(update={"max_bytes": 1_000_000})
    farm.settings = farm.settings.model_copy(update={"documents": limited})
    wiki.put("one")
    wiki.attach("large", "one", b"x" * 1_000_001)
    source = await farm.add("confluence", url=wiki.url, user=USER, token="env:PROVIDER_TOKEN")
    await farm.by_hand(KINDS).poll(source)
    (aside,) = [item for item in await farm.items(source) if item.state == "SET_ASIDE"]
    assert "It has 1,000,001 bytes" in aside.error
    assert not any(path.startswith("/media") for path in wiki.paths)
    calls = wiki.calls
    await farm.by_hand(KINDS).poll(source)
    assert not any(path.endswith("att1002") for path in wiki.paths[calls:])  # it is not asked for again


async def test_only_the_spaces_that_are_named_come(farm: Farm, wiki: ConfluenceServer) -> None:
    wiki.put("one")
    wiki.put("other", space="200")
    wiki.attach("theirs", "other", b"secret")
    source = await add(farm, wiki, spaces="MILL")
    await farm.compare(source)
    assert set(await farm.documents()) == {"confluence::MILL::1001"}


async def test_a_page_in_the_trash_is_gone(farm: Farm, wiki: ConfluenceServer) -> None:
    wiki.put("one")
    wiki.put("two")
    wiki.attach("notes", "one", b"Grease the bearing.")
    source = await add(farm, wiki)
    wiki.contents["one"].status = "trashed"
    if not wiki.cloud:  # which lists the files of a page in the trash, too
        wiki.contents["notes"].status = "trashed"
    await farm.compare(source)
    assert set(await farm.documents()) == {"confluence::MILL::1002"}


async def test_links_of_a_page_are_written_down_with_the_text_around(farm: Farm, wiki: ConfluenceServer) -> None:
    wiki.put("one", 'As <a href="https://maker.example/grease?a=1&amp;b=2">the maker</a> says.')
    await add(farm, wiki)
    (row,) = await farm.rows("SELECT l.url, p.urn, p.label, p.context FROM link l JOIN link_place p ON p.link = l.id")
    assert (row.url, row.urn) == ("https://maker.example/grease?a=1&b=2", "confluence::MILL::1001")
    assert (row.label, "says." in row.context) == ("the maker", True)


async def test_a_space_that_is_not_there_is_told(farm: Farm) -> None:
    async with serve(ConfluenceServer()) as wiki:
        source = await add(farm, wiki, spaces="MILL,NONE")
        assert "has no space NONE" in str((await farm.look(source)).error)


CODE = (
    '<ac:structured-macro ac:name="code"><ac:parameter ac:name="language">py</ac:parameter>'
    '<ac:plain-text-body><![CDATA[if a < b:\n    print("<p>")]]></ac:plain-text-body></ac:structured-macro>'
)
TASKS = (
    "<ac:task-list><ac:task><ac:task-id>1</ac:task-id><ac:task-status>complete</ac:task-status>"
    "<ac:task-body>Grease</ac:task-body></ac:task><ac:task><ac:task-id>2</ac:task-id>"
    "<ac:task-status>incomplete</ac:task-status><ac:task-body>Listen</ac:task-body></ac:task></ac:task-list>"
)


@pytest.mark.parametrize(
    ("storage", "markdown"),
    [
        ("<h2>Bearing</h2><p>It <em>sings</em>&nbsp;&ndash; loud.</p>", "## Bearing\n\nIt *sings* – loud."),
        (CODE, '```py\nif a < b:\n    print("<p>")\n```'),
        (TASKS, "- [x] Grease\n- [ ] Listen"),
        ('<p>See <ac:link><ri:page ri:content-title="The wheel" /></ac:link>.</p>', "See The wheel."),
        (
            '<p><ac:link><ri:page ri:content-title="X"/><ac:plain-text-link-body><![CDATA[our wheel]]>'
            "</ac:plain-text-link-body></ac:link></p>",
            "our wheel",
        ),
        ('<p><ac:image><ri:attachment ri:filename="wheel.png"/></ac:image></p>', "*wheel.png*"),
        (
            '<ac:structured-macro ac:name="info"><ac:parameter ac:name="title">Note</ac:parameter>'
            "<ac:rich-text-body><p>Careful.</p></ac:rich-text-body></ac:structured-macro>",
            "**Note**\n\nCareful.",
        ),
        (
            '<p>Because of <ac:structured-macro ac:name="jira"><ac:parameter ac:name="server">J</ac:parameter>'
            '<ac:parameter ac:name="key">MILL-7</ac:parameter></ac:structured-macro>.</p>',
            "Because of MILL-7.",
        ),
        ('<p>On <time datetime="2024-03-01" /> it broke.</p>', "On 2024-03-01 it broke."),
        ("<p>Never closed <![CDATA[a < b", "Never closed a < b"),
    ],
)
def test_what_confluence_keeps_becomes_markdown(storage: str, markdown: str) -> None:
    assert convert_storage(storage) == markdown
