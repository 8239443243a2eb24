"""What becomes of a link, and why: in the order that was asked for, and never what does something when it is opened."""

import pytest

from gristmill.settings import FetchSettings
from gristmill.sources import FoundLink, extract_links
from gristmill.sources.fetch.location import read_location
from gristmill.sources.link.canonical import canonicalise
from gristmill.sources.link.deciding import choose_rule, decide_link
from gristmill.sources.link.model import LinkDecision, LinkRule
from gristmill.sources.link.patterns import find_spoof, find_unsafe_pattern

SETTINGS = FetchSettings()
ALLOW = LinkRule(1, "allow", "example.org", "")
DENY = LinkRule(2, "deny", "evil.example", "")


def decide(url: str, *rules: LinkRule, is_indexed: bool = False, found: FoundLink | None = None) -> LinkDecision:
    return decide_link(canonicalise(url), found=found, is_indexed=is_indexed, rules=rules, settings=SETTINGS)


@pytest.mark.parametrize(
    ("url", "is_indexed", "verdict", "state"),
    [
        ("https://example.org/login", True, "skip", "indexed"),  # already indexed goes first
        ("https://example.org/login", False, "blocked", "refused"),  # an unsafe pattern goes before an allowed domain
        ("http://10.0.0.1/a", False, "blocked", "refused"),
        ("https://example.org/a", False, "safe", "queued"),
        ("https://docs.example.org/a", False, "safe", "queued"),
        ("https://evil.example/a", False, "unsafe", "refused"),
        ("https://other.example/a", False, "uncertain", "waiting"),
        ("https://notexample.org/a", False, "uncertain", "waiting"),
    ],
)
def test_the_order_of_the_decision(url: str, is_indexed: bool, verdict: str, state: str) -> None:
    decision = decide(url, ALLOW, DENY, is_indexed=is_indexed)
    assert (decision.verdict, decision.state) == (verdict, state)
    assert decision.reason.endswith(".")


def test_the_rule_that_decided_is_named() -> None:
    assert decide("https://evil.example/a", ALLOW, DENY) == LinkDecision("unsafe", "evil.example is denied.", 2)
    assert decide("https://example.org/a", ALLOW, DENY) == LinkDecision("safe", "example.org is allowed.", 1)


@pytest.mark.parametrize(
    ("url", "chosen"),
    [
        ("https://a.org/x", 1),
        ("https://a.org/private", 2),
        ("https://a.org/private/x", 2),
        ("https://a.org/private?x", 2),
        ("https://a.org/privateer", 1),
        ("https://b.a.org/private", 3),
        ("https://c.org/x", 5),
        ("https://d.org/", None),
    ],
)
def test_the_rule_that_says_most_counts(url: str, chosen: int | None) -> None:
    rules = [
        LinkRule(1, "allow", "a.org", ""),
        LinkRule(2, "deny", "a.org", "/private"),
        LinkRule(3, "allow", "b.a.org", ""),
        LinkRule(4, "deny", "c.org", "", nearness=0),
        LinkRule(5, "allow", "c.org", "", nearness=2),
    ]
    rule = choose_rule(read_location(url), rules)
    assert (rule.id if rule else None) == chosen


NEVER = """
https://a.org/unsubscribe https://a.org/u/unsub?x=1 https://a.org/opt-out https://a.org/newsletter/abmelden https://a.org/odjava
https://a.org/?unsubscribe=1 https://a.org/list/optout/77 https://a.org/Unsubscribe.aspx
https://a.org/login https://a.org/users/sign-in https://a.org/signin.php https://a.org/oauth2/authorize https://a.org/sso
https://a.org/password/reset https://a.org/forgot-password https://a.org/magic-link/77 https://a.org/auth/callback
https://a.org/?token=abc https://a.org/x?access_token=1 https://a.org/x?a=1&TOKEN=2 https://a.org/x?sig=1 https://a.org/x?key=1
https://a.org/x?code=77 https://a.org/x?jwt=1 https://a.org/x?session_id=1 https://a.org/x?X-Amz-Signature=1 https://a.org/?otp=1
https://a.org/accept https://a.org/invite/accept https://a.org/accept-invite/77 https://a.org/decline https://a.org/confirm/77
https://a.org/email/verify https://a.org/approve?id=7 https://a.org/activate https://a.org/rsvp https://a.org/vote/7
https://a.org/item/7/delete https://a.org/subscription/cancel https://a.org/pay/77 https://a.org/checkout https://a.org/potvrdi
https://a.org/best%61etigen https://a.org/%61ccept https://a.org/ACCEPT https://a.org/?confirm=1
https://click.a.org/x https://track.a.org/x https://a.org/track/open.gif https://a.org/click/77 https://x.list-manage.com/a
https://u77.ct.sendgrid.net/ls/click?upn=1 https://a.org/redirect?to=x https://email.a.org/c/abc https://a.org/pixel.png
https://a.org/setup.exe https://a.org/a.dmg https://a.org/run.ps1 https://a.org/x.apk https://a.org/a.iso
https://a.org/%73etup.EXE
https://a.org/x?action=unsubscribe&id=7 https://a.org/x?do=delete https://a.org/x?cmd=accept https://a.org/?page=logout
https://a.org/x?resetToken=1 https://a.org/x?confirm_token=1 https://a.org/x?access-token=1 https://a.org/x?user[token]=1
https://a.org/x?user%5Btoken%5D=1 https://a.org/x?invitation_token=1 https://a.org/x;token=1 https://a.org/x;jsessionid=1?a=2
https://a.org/x?a=1;token=2 https://a.org/x?t=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI3In0.c2lnbmF0dXJl
https://a.org/v/eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI3In0.c2lnbmF0dXJl https://a.org/user/token/abc https://a.org/x?apiKey=1
https://a.org/acceptInvitation https://a.org/confirmEmail https://a.org/ResetPassword https://a.org/a/optOut/7
https://a.org/confirm-your-email-address https://a.org/click-here-to-unsubscribe https://a.org/verifyYourEmailAddress/7
https://a.org/désabonner https://a.org/d%C3%A9sabonner https://a.org/abmeldung https://a.org/bestätigen https://a.org/kündigen
https://pаypal.com/a https://xn--pypal-4ve.com/a https://аррӏе.com/ https://xn--80ak6aa92e.com/ https://gооgle.com/
"""


@pytest.mark.parametrize("url", NEVER.split())
def test_a_link_that_does_something_or_fools_us_is_never_fetched(url: str) -> None:
    """Not even on a domain that is allowed."""
    location = canonicalise(url)
    rule = LinkRule(1, "allow", location.host, "")
    decision = decide(url, rule)
    assert decision.verdict == "blocked", decision


GOOD = """
https://a.org/ https://a.org/blog/how-to-cancel-a-contract-with-your-provider https://a.org/authors/ada
https://a.org/2026/11/the-order-of-the-phoenix-and-other-stories https://a.org/docs/report.pdf https://a.org/x?page=2&lang=en
https://a.org/wiki/Login_(disambiguation_page_of_the_wiki) https://bücher.example/a https://пример.рф/ https://a.org/tracks/7
https://example.com/a https://a.org/clicker https://a.org/keyboard?model=7 https://müller.de/kontakt
https://a.org/blog/how-to-accept-payments-online https://a.org/docs/token-based-auth https://a.org/blog/how-to-accept-payments?page=2
https://a.org/blog/how-to-cancel https://a.org/the-best-way-to-accept-payments-in-2026 https://a.org/x?country_code=de&sortOrder=up
https://a.org/news/2026/why-people-cancel-their-orders https://a.org/search?q=unsubscribe https://a.org/PayPal https://a.org/JavaScript
https://a.org/questions/4711/how-do-i-delete-a-branch https://a.org/docs/tokens https://a.org/docs/token/overview
https://a.org/x?user[name]=ada https://a.org/x?lang=en&view=full https://a.org/a;v=2/b https://a.org/wie-man-einen-vertrag-kuendigt
https://a.org/d/9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d https://a.org/Universität https://a.org/aktuelles/einladung-zum-sommerfest
"""

DOUBTFUL = """
https://a.org/accept-payments-online-with-our-widget https://a.org/blog/how-to-cancel-a-contract/4711 https://a.org/x?tab=payment
https://a.org/blog/how-to-accept-payments-online?user=7 https://a.org/how-to-accept-payments-online-3f2a9c1b7d https://a.org/x?doDelete=1
https://a.org/x?invite_code=7 https://a.org/x?session-id=7 https://a.org/x?state=confirm https://a.org/x?confirmEmail=1
"""


@pytest.mark.parametrize("url", GOOD.split())
def test_an_ordinary_page_is_not_suspected(url: str) -> None:
    location = canonicalise(url)
    assert find_unsafe_pattern(location) is None
    assert decide(url, LinkRule(1, "allow", location.host, "")).verdict == "safe"


@pytest.mark.parametrize("url", DOUBTFUL.split())
def test_a_link_that_may_do_something_waits_for_a_person_even_where_its_domain_is_allowed(url: str) -> None:
    decision = decide(url, LinkRule(1, "allow", "a.org", ""))
    assert (decision.verdict, decision.state) == ("uncertain", "waiting")
    assert decision.reason.endswith("a person decides.")
    assert decide(url, LinkRule(1, "deny", "a.org", "")).verdict == "unsafe"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('<a href="https://a.org/x7">Unsubscribe</a>', "ends a subscription"),
        ('<a href="https://a.org/x7">Click to confirm your order</a>', "does something"),
        ("Unsubscribe: https://a.org/x7", "ends a subscription"),
        ("[Sign in here: login](https://a.org/x7)", "signing in"),
        ("[https://bank.example/account](https://a.org/x7)", "shows bank.example, but it leads to a.org"),
        ('<a href="https://a.org/x7">www.bank.example</a>', "shows www.bank.example"),
        ("[Abmelden](https://a.org/x7)", "ends a subscription"),
        ("[Désabonner](https://a.org/x7)", "ends a subscription"),
    ],
)
def test_what_people_read_before_they_click_counts(text: str, reason: str) -> None:
    (found,) = extract_links(text)
    decision = decide(found.url, LinkRule(1, "allow", "a.org", ""), found=found)
    assert decision.verdict == "blocked"
    assert reason in decision.reason


@pytest.mark.parametrize(
    "text",
    [
        "[our report](https://a.org/x7)",
        "[https://a.org/x7](https://a.org/x7)",
        "[www.a.org](https://a.org/x7)",
        "[docs.a.org](https://a.org/x7)",
        "If you wish to cancel the contract that you made with us last year, please read https://a.org/x7",
        "In order to understand it, read https://a.org/x7",
    ],
)
def test_ordinary_words_do_no_harm(text: str) -> None:
    (found,) = extract_links(text)
    assert decide(found.url, LinkRule(1, "allow", "a.org", ""), found=found).verdict == "safe"


def test_a_name_in_letters_of_another_script_is_told() -> None:
    assert find_spoof("paypal.com") is None
    assert "mixes letters" in (find_spoof("xn--pypal-4ve.com") or "")
    assert "looks like another one" in (find_spoof("xn--80ak6aa92e.com") or "")


def test_an_allowed_machine_of_our_own_may_be_linked_to() -> None:
    settings = FetchSettings(allowed_hosts=("wiki.corp.example",))
    rule = LinkRule(1, "allow", "wiki.corp.example", "")
    location = canonicalise("http://wiki.corp.example:9000/a")
    decided = [
        decide_link(location, found=None, is_indexed=False, rules=[rule], settings=one).verdict
        for one in (SETTINGS, settings)
    ]
    assert decided == ["blocked", "safe"]
