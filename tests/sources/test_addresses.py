"""Every spelling of a forbidden address is refused, and an operator can allow hosts by name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.errors import Unsafe
from gristmill.settings import FetchSettings
from gristmill.sources.fetch.addresses import explain_special, read_address
from gristmill.sources.fetch.location import check_address, read_location

SETTINGS = FetchSettings()

SPECIAL = """
0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 127.0.0.1 127.1.2.3 127.255.255.254 168.63.129.16
169.254.169.254 169.254.170.2 172.16.0.1 172.31.255.255 192.0.0.8 192.0.0.192 192.0.2.1 192.88.99.1 192.168.0.1
198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.9 224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255 :: ::1
::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:0:127.0.0.1 ::127.0.0.1 ::10.0.0.1
64:ff9b::7f00:1 64:ff9b::169.254.169.254 64:ff9b:1::1 2002:7f00:1:: 2002:a00:1:: 2002:c0a8:1:: 2002:808:808::
2001:0:53aa:64c::1 2001:2::1 2001:10::1 2001:20::1 2001:db8::1 3fff::1 100::1 5f00::1 fc00::1 fd00::1 fd00:ec2::254
fd20:ce::254 fe80::1 fe80::5efe:10.0.0.1 febf::1 fec0::1 ff02::1 ff0e::1 2606:4700::5efe:7f00:1
2606:4700::200:5efe:a00:1 fd12:3456::5efe:808:808 fe80::5efe:808:808 ff02::5efe:808:808 fec0::200:5efe:808:808
2002:7f00:1::5efe:808:808 2001:0:808:808::5efe:808:808 5f00::5efe:808:808 2001:db8::5efe:808:808
"""

PUBLIC = """
1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255
172.15.255.255 172.32.0.0 192.0.1.0 192.167.255.255 198.17.255.255 198.20.0.0 223.255.255.255 2606:4700::1111
2a00:1450:4001::1 2400:cb00::1 64:ff9b::808:808 ::ffff:8.8.8.8 2606:4700::5efe:808:808
"""


@pytest.mark.parametrize("text", SPECIAL.split())
def test_a_special_address_is_known_as_such(text: str) -> None:
    assert explain_special(read_address(text)) is not None


@pytest.mark.parametrize("text", PUBLIC.split())
def test_a_public_address_is_not_special(text: str) -> None:
    assert explain_special(read_address(text)) is None


def test_a_zone_does_not_hide_an_address() -> None:
    assert explain_special(read_address("fe80::1%eth0")) == "link-local"


# each is a spelling of an address of our own, or an address that programs read in different ways
SPELLINGS = """
http://127.0.0.1/ http://127.0.0.1:80/ http://127.1/ http://127.0.1/ http://2130706433/ http://017700000001/
http://0177.0.0.1/ http://0177.0.0.01/ http://0x7f.0.0.1/ http://0x7f000001/ http://0x7f.1/ http://0X7F.0.0.1/
http://00000177.0.0.1/ http://127.0.0.1./ http://127.0.0.1../ http://127.000.000.001/ http://0/ http://0.0.0.0/
http://00/ http://0x0/ http://4294967295/ http://425510785/ http://6425673729/ http://2852039166/
http://169.254.43518/ http://169.16689662/ http://0251.0376.0251.0376/ http://0xa9.0xfe.0xa9.0xfe/ http://0xA9FEA9FE/
http://0251.254.169.254/ http://10.1/ http://0xa000001/ http://192.168.1/ http://0300.0250.1/ http://1.2.3.4.5/
http://256.1.1.1/ http://1.1.1.0x/ http://[::1]/ http://[::]/ http://[0:0:0:0:0:0:0:1]/ http://[::ffff:127.0.0.1]/
http://[::ffff:7f00:1]/ http://[::127.0.0.1]/ http://[0000:0000:0000:0000:0000:ffff:7f00:0001]/
http://[64:ff9b::7f00:1]/ http://[2002:7f00:1::]/ http://[fe80::1]/ http://[fe80::1%25eth0]/ http://[fd00:ec2::254]/
http://[::ffff:a9fe:a9fe]/ http://[::ffff:0:a9fe:a9fe]/ http://[::1 http://[v1.x]/ http://[]/ http://[127.0.0.1]/
http://[fd12:3456::5efe:808:808]/ http://[fe80::5efe:808:808]/ http://[2002:7f00:1::5efe:808:808]/
http://[::1]evil.example/ http://[::1].example.org/ http://①②⑦.⓪.⓪.①/ http://127。0。0。1/ http://127．0．0．1/
http://１２７.0.0.1/ http://⑯⑨.②⑤④.⑯⑨｡②⑤④/ http://0x⑦f.1/ http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/ http://localhost/ http://LOCALHOST/
http://localhost./ http://localhost:8080/ http://a.localhost/ http://localhost.localdomain/ http://ip6-localhost/
http://printer.local/ http://metadata.google.internal/ http://metadata/ http://instance-data/ http://intranet/
http://router.lan/ http://x.home.arpa/ http://wiki.corp/ http://x.internal./ http://user@example.org/
http://user:pass@example.org/ http://example.org@127.0.0.1/ http://127.0.0.1@example.org/
http://example.org:80@127.0.0.1/ http://example.org%40127.0.0.1/ http://127.0.0.1%2f@example.org/ http://@example.org/
http://example.org\\@127.0.0.1/ http://127.0.0.1\\.example.org/ http:\\\\127.0.0.1/ http://127.0.0.1%00.example.org/
http://127%2e0%2e0%2e1/ http://%31%32%37.0.0.1/ http://%6c%6f%63alhost/ http://exa%20mple.org/ http://-example.org/
http://example..org/ http://.example.org/ http://example.org../ http:///etc/passwd http:// http://:80/
http:example.org //example.org/ /etc/passwd file:///etc/passwd ftp://example.org/ gopher://127.0.0.1:6379/_x
dict://127.0.0.1:11211/ ldap://127.0.0.1/ jar:http://example.org!/ data:text/html,x javascript:alert(1)
HTTP+unix://%2fvar%2frun/ blob:http://x/ http://example.org:22/ http://example.org:25/ http://example.org:6379/
http://example.org:0/ http://example.org:65536/ http://example.org:-80/ http://example.org:8o/
http://example.org:99999999999/ http://example.org:80:22/ https://168.63.129.16/metadata/
https://100.100.100.200/latest/ https://192.0.0.192/latest/ https://169.254.170.2/v2/
"""
HOSTILE = (
    *SPELLINGS.split(),
    "http://127.0.0.1\t/",
    "http://exam\nple.org/",
    " http://127.0.0.1/",
    "http://example.org /",
    "http://exam\x00ple.org/",
    "http://example.org\r\nHost: 127.0.0.1/",
    "http://" + "a" * 64 + ".org/",
    "http://" + "a." * 130 + "org/",
    "http://example.org/" + "x" * 9000,
    "",
)


@pytest.mark.parametrize("url", HOSTILE)
def test_a_hostile_spelling_is_refused_in_one_sentence(url: str) -> None:
    with pytest.raises(Unsafe) as refused:
        check_address(url, SETTINGS)
    assert "\n" not in str(refused.value)
    assert str(refused.value).endswith(".")


@pytest.mark.parametrize(
    ("url", "spelling"),
    [
        ("http://example.org", "http://example.org/"),
        ("HTTP://Example.ORG:80/A?b=c#d", "http://example.org/A?b=c"),
        ("https://example.org.:443/", "https://example.org/"),
        ("https://example.org:8443/x", "https://example.org:8443/x"),
        ("http://bücher.example/ä", "http://xn--bcher-kva.example/%C3%A4"),
        ("http://example。org/", "http://example.org/"),
        ("http://8.8.8.8/", "http://8.8.8.8/"),
        ("http://[2606:4700:0:0::1111]/", "http://[2606:4700::1111]/"),
        ("https://example.org/a?url=http://127.0.0.1/", "https://example.org/a?url=http://127.0.0.1/"),
        ("https://example.org/a%20b?c=%C3%A4", "https://example.org/a%20b?c=%C3%A4"),
        ("http://_dmarc.example.org/", "http://_dmarc.example.org/"),
    ],
)
def test_a_good_address_has_one_spelling(url: str, spelling: str) -> None:
    assert check_address(url, SETTINGS).url == spelling


@pytest.mark.parametrize(
    ("allowed", "url"),
    [
        ("wiki", "http://wiki:9000/"),
        ("wiki:9000", "http://wiki:9000/"),
        ("*.corp.example", "http://wiki.corp.example:9000/"),
        ("10.1.0.0/16", "http://10.1.2.3:9000/"),
        ("10.1.2.3", "http://10.1.2.3:9000/"),
        ("127.0.0.1:9000", "http://127.0.0.1:9000/"),
        ("[::1]:9000", "http://[::1]:9000/"),
        ("fd00::/8", "http://[fd00::7]:9000/"),
        ("Localhost", "http://LOCALHOST:9000/"),
    ],
)
def test_an_operator_can_allow_a_host(allowed: str, url: str) -> None:
    assert check_address(url, FetchSettings(allowed_hosts=(allowed,))).port == 9000


@pytest.mark.parametrize(
    ("allowed", "url"),
    [
        ("wiki:9000", "http://wiki:9001/"),
        ("wiki", "http://wiki2/"),
        ("*.corp.example", "http://evilcorp.example:9000/"),
        ("10.1.0.0/16", "http://10.2.0.1/"),
        ("127.0.0.1:9000", "http://127.0.0.2:9000/"),
        ("169.254.0.0/16", "http://169.254.169.254/"),
        ("169.254.169.254", "http://169.254.169.254/"),
        ("0.0.0.0/0", "http://169.254.169.254/"),
        ("::/0", "http://[::ffff:169.254.169.254]/"),
        ("fd00::/8", "http://[fd00:ec2::254]/"),
        ("::/0", "http://[fe80::5efe:808:808]/"),
        ("::/0", "http://[ff02::5efe:808:808]/"),
        ("::/0", "http://[2606:4700::5efe:a9fe:a9fe]/"),
        ("::/0", "http://[2002:a9fe:a9fe::]/"),
    ],
)
def test_an_allowance_is_narrow_and_never_opens_metadata(allowed: str, url: str) -> None:
    with pytest.raises(Unsafe):
        check_address(url, FetchSettings(allowed_hosts=(allowed,)))


def test_the_refusal_says_what_to_do() -> None:
    with pytest.raises(Unsafe) as refused:
        check_address("http://10.1.2.3:8080/x?token=secret", SETTINGS)
    assert str(refused.value) == (
        "10.1.2.3 is a private network, not the public Internet. "
        "If it is meant, add 10.1.2.3:8080 to the setting fetch.allowed_hosts."
    )


@given(st.text(max_size=60))
def test_no_text_breaks_the_check(text: str) -> None:
    for url in (text, f"http://{text}", f"http://example.org{text}", f"http://{text}@8.8.8.8:{text}/"):
        try:
            location = read_location(url)
        except Unsafe:
            continue
        assert read_location(location.url) == location, "the one spelling is read as it was written"
        assert location.url.isascii()
