"""An operator looks through the eyes of a client; nobody else can."""

from serving import Browser, Web

from gristmill.documents import Item, take_in
from gristmill.scopes import Scope


async def add_document(web: Web, name: str, client: str) -> None:
    async with web.db.transaction() as tx:
        await take_in(tx, Item(f"test:{name}", name, b"text", Scope(client)))


async def test_an_operator_sees_what_a_client_sees_and_everything_again(web: Web) -> None:
    await add_document(web, "of-acme", "acme")
    await add_document(web, "of-globex", "globex")
    browser = web.make_browser()
    await browser.sign_in(web.keys["operator"])
    assert "of-globex" in (await browser.client.get("/")).text
    token = await browser.read_token()
    answer = await browser.client.post("/view-as", data={"client": "acme", "csrf": token})
    assert answer.status_code == 303
    narrowed = (await browser.client.get("/")).text
    assert "of-acme" in narrowed
    assert "of-globex" not in narrowed
    assert (await browser.client.get("/queues")).status_code == 403
    assert 'value="globex"' in (await browser.client.get("/view-as")).text
    await browser.client.post("/view-as", data={"client": "", "csrf": token})
    assert "of-globex" in (await browser.client.get("/")).text


async def test_a_client_cannot_look_as_another(web: Web) -> None:
    await add_document(web, "of-globex", "globex")
    browser = web.make_browser()
    await browser.sign_in(web.keys["acme admin"])
    token = await browser.read_token()
    assert (await browser.client.post("/view-as", data={"client": "globex", "csrf": token})).status_code == 403
    browser.client.cookies.set("gristmill_6455_view", "globex")
    assert "of-globex" not in (await browser.client.get("/")).text


async def test_over_https_cookies_are_set_and_removed_as_secure_and_signing_out_forgets_the_view(web: Web) -> None:
    site, headers = "https://127.0.0.1", {"Origin": "https://127.0.0.1"}
    browser = web.make_client()
    browser.base_url = site
    await browser.post("/sign-in", data={"key": web.keys["operator"]}, headers=headers)
    token = await Browser(browser).read_token()
    told = list[str]()
    for path, form in (("/view-as", {"client": "acme"}), ("/view-as", {"client": ""}), ("/sign-out", {})):
        answer = await browser.post(path, data={**form, "csrf": token}, headers=headers)
        told += [one for one in answer.headers.get_list("set-cookie") if one.startswith("__Host-")]
    assert [cookie.partition("=")[0] for cookie in told if "_view" in cookie] == ["__Host-gristmill_view"] * 3
    assert len(told) == 4
    assert all("Secure" in cookie for cookie in told)


async def test_what_an_operator_changes_who_looks_as_a_client_is_not_in_the_log_of_the_client(web: Web) -> None:
    browser = web.make_browser()
    await browser.sign_in(web.keys["operator"])
    token = await browser.read_token()
    await browser.client.post("/view-as", data={"client": "acme", "csrf": token})
    form = {"name": "mine", "query": "status=failed", "csrf": token}
    assert (await browser.client.post("/documents/views", data=form)).status_code in (204, 303)
    own = (await web.client("acme admin").get("/api/audit")).json()["items"]
    assert [line for line in own if line["action"] == "save view"] == []
    (line,) = (await web.client("operator").get("/api/audit", params={"action": "save view"})).json()["items"]
    assert (line["caller"], line["client"], line["details"]["seen_as"]) == ("operator", "", "acme")
