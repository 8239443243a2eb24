"""Links in texts: found once, with their label and the words around, in one spelling, however long the text."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.errors import Unsafe
from gristmill.sources import extract_links
from gristmill.sources.link.canonical import canonicalise, list_domains, name_urn
from gristmill.sources.link.extracting import BRACKETS, TRAILING, _trim  # pyright: ignore[reportPrivateUsage]


def urls(text: str) -> list[str]:
    return [one.url for one in extract_links(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("See https://example.org/a.", ["https://example.org/a"]),
        ("(https://example.org/a), <https://example.org/b>; “https://example.org/c”", ["a", "b", "c"]),
        ("https://en.wikipedia.org/wiki/Mill_(grinding)", ["https://en.wikipedia.org/wiki/Mill_(grinding)"]),
        ("(see https://en.wikipedia.org/wiki/Mill_(grinding))", ["https://en.wikipedia.org/wiki/Mill_(grinding)"]),
        ("[the page](https://example.org/a)", ["https://example.org/a"]),
        ('[x](<https://example.org/a> "title") and [y](https://example.org/b_(c))', ["a", "b_(c)"]),
        ("![picture](https://example.org/a.png) <img src=https://example.org/b.png>", []),
        ('<a class="b" href="https://example.org/a?x=1&amp;y=2">x</a>', ["https://example.org/a?x=1&y=2"]),
        ("<A HREF='https://example.org/a'>x</A> <a href=https://example.org/b>y</a>", ["a", "b"]),
        ("www.example.org/a and HTTP://EXAMPLE.org/a", ["https://www.example.org/a", "http://example.org/a"]),
        ("https://example.org/a https://example.org/a#part https://example.org:443/a", ["https://example.org/a"]),
        ("https://example.org/ä", ["https://example.org/%C3%A4"]),
        ("https://bücher.example/", ["https://xn--bcher-kva.example/"]),
        ("mailto:a@example.org ftp://example.org javascript:alert(1) user@www.example.org http:/x", []),
        ("http://127.1/ http://user@example.org/ http://[::1", []),
        ("https://example.org/a\u200b", ["https://example.org/a%E2%80%8B"]),
        ("", []),
    ],
)
def test_links_are_found_as_people_write_them(text: str, expected: list[str]) -> None:
    whole = [one if one.startswith("http") else f"https://example.org/{one}" for one in expected]
    assert urls(text) == whole


def test_a_link_comes_with_its_label_and_its_surroundings() -> None:
    text = 'Dear Ada,\nplease read <a href="https://example.org/a">the <b>whole</b> report</a> before Friday.\nBob'
    (found,) = extract_links(text)
    assert (found.label, found.leading) == ("the whole report", "please read")
    assert found.context == "Dear Ada, please read the whole report before Friday. Bob"


def test_the_words_before_a_link_are_its_own() -> None:
    one, other = extract_links("Unsubscribe: https://example.org/a or read https://example.org/b")
    assert (one.leading, other.leading) == ("Unsubscribe:", "or read")


def test_an_address_with_a_label_is_preferred_to_a_bare_one() -> None:
    (found,) = extract_links("https://example.org/a, that is [the report](https://example.org/a)")
    assert found.label == "the report"


@pytest.mark.parametrize(
    ("text", "spelling"),
    [
        ("https://example.org/a?utm_source=x&id=7&utm_medium=y&fbclid=z", "https://example.org/a?id=7"),
        ("https://example.org/a?UTM_Campaign=x", "https://example.org/a"),
        ("https://example.org/a?b=1&mc_eid=2#c", "https://example.org/a?b=1"),
        ("HTTPS://Example.ORG:443/a/../b/./c", "https://example.org/b/c"),
        ("https://example.org/%7euser/%c3%a4", "https://example.org/~user/%C3%A4"),
        ("https://example.org/a?q=a%20b+c", "https://example.org/a?q=a%20b+c"),
        (
            "https://eur01.safelinks.protection.outlook.com/?url=https%3A%2F%2Fexample.org%2Fa%3Futm_source%3Dx&data=1",
            "https://example.org/a",
        ),
        ("https://www.google.com/url?q=https://example.org/a&sa=D", "https://example.org/a"),
        ("https://l.facebook.com/l.php?u=https%3A%2F%2Fexample.org%2Fa&h=AT0", "https://example.org/a"),
        (
            "https://www.google.com/search?q=https://example.org/a",
            "https://www.google.com/search?q=https://example.org/a",
        ),
    ],
)
def test_an_address_has_one_spelling_without_what_counts_clicks(text: str, spelling: str) -> None:
    assert canonicalise(text).url == spelling
    assert canonicalise(spelling).url == spelling


@pytest.mark.parametrize(
    "inner", ["http://169.254.169.254.evil/", "http://user@127.0.0.1/", "javascript:alert(1)", "http://0x7f.1/"]
)
def test_a_wrapper_hides_nothing(inner: str) -> None:
    try:
        location = canonicalise(f"https://www.google.com/url?q={inner}")
    except Unsafe:
        return
    assert location.host in ("www.google.com", "169.254.169.254.evil")


def test_the_urn_of_a_link_follows_from_its_address() -> None:
    assert name_urn("https://example.org/a") == name_urn(canonicalise("https://EXAMPLE.org/a#x").url)
    assert list_domains("a.b.org") == ["a.b.org", "b.org", "org"]


@pytest.mark.parametrize(
    "text",
    [
        *("http://", "<a ", "[", "<a href='", "https://x.org/((((", "www.", "[a](https://", "<a href='https://a.org'>"),
        *("https://a.org ", "](https://", "href=", "https://a..org ", "</a>", "<", "&lt;a "),
    ],
)
def test_no_text_takes_long(text: str) -> None:
    """Twice the text takes about twice the time; a text that is looked through again and again would take minutes."""
    began = time.process_time()
    assert len(extract_links(text * (1_500_000 // len(text)))) <= 1
    assert time.process_time() - began < 20


def test_many_links_are_bounded() -> None:
    assert len(extract_links(" ".join(f"https://example.org/{n}" for n in range(5_000)))) == 200


@given(st.text(alphabet=st.sampled_from("htps:/w.[]()<>a href='\"&;#é\0\u202e\n") | st.characters(), max_size=200))
def test_whatever_is_found_can_be_read_again(text: str) -> None:
    for one in extract_links(text):
        assert canonicalise(one.url).url == one.url
        assert "\0" not in one.label + one.context + one.leading


def test_addresses_that_end_in_brackets_without_end_take_no_time() -> None:
    text = " ".join(f"https://example.org/{n}{')' * 7_000}" for n in range(500))
    started = time.process_time()
    assert len(urls(text)) == 200
    assert time.process_time() - started < 2  # 0.3 s; it took 5 s and grew with the square


@given(st.text("a.)(](,[", max_size=30))
def test_brackets_that_were_opened_within_an_address_stay(tail: str) -> None:
    """As they are counted from the end, one by one."""
    raw = slow = f"https://example.org/{tail}"
    while slow[-1] in TRAILING or (slow[-1] in BRACKETS and slow.count(slow[-1]) > slow.count(BRACKETS[slow[-1]])):
        slow = slow[:-1]
    assert _trim(raw) == slow
