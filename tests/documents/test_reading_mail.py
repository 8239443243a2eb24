"""Mail: headers on top, the body that says something, attachments as parts, and nothing that breaks it."""

from datetime import UTC, datetime
from email.message import EmailMessage
from email.parser import BytesParser
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from documents.files import attached, put
from gristmill.documents.reading import Bookmark, Inspection, Limits, inspect, mail, read
from gristmill.errors import Permanent

LIMITS = Limits()


def opened(folder: Path, data: bytes | str) -> tuple[Inspection, str]:
    path = put(folder, "mail.eml", data)
    found = inspect(path, "mail.eml", LIMITS)
    return found, read(path, found.type, 1, LIMITS).text


def letter(**headers: str) -> EmailMessage:
    message = EmailMessage()
    for name, value in {
        "From": '"Miller, Ada" <ada@example.com>',
        "To": "Bó Bäcker <bo@example.org>",
        "Date": "Tue, 3 Mar 2026 10:00:00 +0100",
        "Subject": "Žito a mouka",
        **headers,
    }.items():
        message[name] = value
    message.set_content("We need flour.\n\n> On Monday you wrote:\n> Do you need flour?\n")
    return message


def test_an_address_of_nothing_but_brackets_costs_a_mail_nothing_else(tmp_path: Path) -> None:
    path = put(tmp_path, "a.eml", "From: ada@mill.example\nTo: " + "(" * 50_000 + "\nSubject: Moles\n\nThey dig.\n")
    found = inspect(path, "a.eml", Limits())
    assert (found.type, found.title, found.meta["from"]) == ("mail", "Moles", ["ada@mill.example"])


def test_a_mail_is_a_page_with_its_headers_on_top(tmp_path: Path) -> None:
    found, text = opened(tmp_path, letter(**{"Message-ID": "<1@example.com>"}).as_bytes())
    assert (found.type, found.pages, found.title) == ("mail", 1, "Žito a mouka")
    assert found.written_at == datetime(2026, 3, 3, 9, tzinfo=UTC)
    assert found.meta["from"] == ['"Miller, Ada" <ada@example.com>']
    assert found.meta["to"] == ["Bó Bäcker <bo@example.org>"]
    assert found.meta["message_id"] == "<1@example.com>"
    assert text == (
        '**From:** "Miller, Ada" <ada@example.com>  \n'
        "**To:** Bó Bäcker <bo@example.org>  \n"
        "**Date:** Tue, 03 Mar 2026 10:00:00 +0100  \n**Subject:** Žito a mouka\n\n"
        "We need flour.\n\n> On Monday you wrote:\n> Do you need flour?"
    )


def test_attachments_and_mails_within_are_parts(tmp_path: Path) -> None:
    message = letter()
    message.add_attachment("a,b\n1,2\n", subtype="csv", filename="stückliste.csv")
    message.add_attachment(b"%PDF-", maintype="application", subtype="pdf", filename="../../etc/offer.pdf")
    message.add_attachment(letter(Subject="Older"))
    found, text = opened(tmp_path, message.as_bytes())
    assert [(part.name, part.suffix) for part in found.parts] == [
        ("stückliste.csv", "attachment=1"),
        ("offer.pdf", "attachment=2"),
        ("Older.eml", "attachment=3"),
    ]
    assert found.parts[1].data == b"%PDF-"
    assert b"Subject: Older" in found.parts[2].data
    assert "**Attachments:** stückliste.csv, offer.pdf, Older.eml" in text
    assert not found.more


def test_many_attachments_come_in_portions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gristmill.documents.reading.portions.BYTES", 250)
    message = letter()
    for number in range(5):
        message.add_attachment(bytes(100), maintype="application", subtype="octet-stream", filename=f"{number}.bin")
    path = put(tmp_path, "mail.eml", message.as_bytes())
    names: list[str] = []
    while True:
        found = inspect(path, "mail.eml", LIMITS, Bookmark(len(names)))
        names += [part.name for part in found.parts]
        if not found.more:
            break
    assert names == ["0.bin", "1.bin", "2.bin", "3.bin", "4.bin"]


@pytest.mark.parametrize("name", ["mail.eml", "mail.pdf", "box"])
def test_no_portion_has_more_parts_than_one_transaction_takes(tmp_path: Path, name: str) -> None:
    message = letter()
    for number in range(450):
        message.add_attachment(b"x", maintype="application", subtype="octet-stream", filename=f"{number}.bin")
    mails = "".join(f"From a@b.c Tue Mar  3 10:00:00 2026\nSubject: {n}\n\nx\n\n" for n in range(450))
    files = [(f"{number}.bin", b"x") for number in range(450)]
    path = put(tmp_path, name, {"mail.eml": message.as_bytes(), "mail.pdf": attached(files)}.get(name, mails.encode()))
    sizes = [len(inspect(path, name, LIMITS, Bookmark(known)).parts) for known in (0, 200, 400)]
    assert (sizes, inspect(path, name, LIMITS, Bookmark(400)).more) == ([200, 200, 50], False)


def test_a_mail_has_no_more_pages_than_are_read(tmp_path: Path) -> None:
    path = put(tmp_path, "long.eml", letter().as_string() + "word word word word\n" * 20_000)
    with pytest.raises(Permanent, match="The file has 11 pages; at most 2 are read"):
        inspect(path, "long.eml", Limits(pages=2))


def test_endless_headers_are_cut_and_say_so(tmp_path: Path) -> None:
    to = ",\n ".join(f"u{n}@example.com" for n in range(50_000))
    found, _ = opened(tmp_path, f"From: a@b.c\nSubject: {'x' * 3_000_000}\nTo: {to}\n\nThe end.\n")
    assert (len(found.meta["to"]), len(found.meta["subject"])) == (200, 1_000)
    assert found.meta["to"][:2] == ["u0@example.com", "u1@example.com"]
    assert len(orjson.dumps(found.meta)) < 20_000
    pages = [read(str(tmp_path / "mail.eml"), "mail", 1 + n, LIMITS).text for n in range(found.pages)]
    assert "u4000@example.com" in "".join(pages)
    assert [page.count("…") for page in pages if "…" in page] == [1, 1], "that there was more"
    assert pages[-1].endswith("The end.")


def test_the_body_is_taken_in_its_first_form_that_speaks_and_no_other_is_converted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(html: str) -> str:
        raise Permanent("The HTML page is damaged and cannot be opened.")

    monkeypatch.setattr("gristmill.documents.reading.mail.markdown", refuse)
    message = letter()
    message.add_alternative("<p>Other <b>words</b></p>", subtype="html")
    message.get_payload()[1].add_related(b"x", maintype="image", subtype="png", filename="logo.png")  # pyright: ignore
    found, text = opened(tmp_path, message.as_bytes())
    assert "We need flour." in text
    assert [part.name for part in found.parts] == ["logo.png"], "what else lies in it is kept"


def test_the_pages_of_a_mail_are_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[mail.OpenedMail] = []
    monkeypatch.setattr(mail, "_pages", lambda one, real=mail._pages: made.append(one) or real(one))
    path = put(tmp_path, "long.eml", letter().as_string() + "word word word word\n" * 20_000)
    for number in range(1, inspect(path, "long.eml", LIMITS).pages + 1):
        assert read(path, "mail", number, LIMITS).text
    assert len(made) == 1


def test_plain_text_is_preferred_to_html(tmp_path: Path) -> None:
    message = letter()
    message.add_alternative("<p>Other <b>words</b></p>", subtype="html")
    assert "We need flour." in opened(tmp_path, message.as_bytes())[1]
    assert "Other" not in opened(tmp_path, message.as_bytes())[1]


def test_html_is_read_when_plain_text_says_nothing(tmp_path: Path) -> None:
    message = letter()
    message.set_content("  \n")
    message.add_alternative("<h2>Offer</h2><p>12 <b>sacks</b></p>", subtype="html")
    assert opened(tmp_path, message.as_bytes())[1].endswith("## Offer\n\n12 **sacks**")


@pytest.mark.parametrize(
    ("headers", "body", "said"),
    [
        ("Content-Type: text/plain; charset=windows-1250", "žluť".encode("cp1250"), "žluť"),
        ("Content-Type: text/plain; charset=no-such-thing", "žluť".encode(), "žluť"),
        ("Content-Type: text/plain; charset=us-ascii", "žluť".encode(), "žluť"),
        (
            "Content-Type: text/plain; charset=utf-8",
            "Mühle an der Förde, größer".encode("latin-1"),
            "Mühle an der Förde",
        ),
        ("Content-Transfer-Encoding: base64", b"bm90IHF1aXRlIGJhc2U2NA", "not quite base64"),
        ("Content-Transfer-Encoding: quoted-printable", b"M=C3=BChle=ZZ", "Mühle"),
        ("Content-Transfer-Encoding: x-unknown", b"as it is", "as it is"),
        ("Content-Type: text", b"as it is", "as it is"),
        ("Content-Type: multipart/mixed", b"no boundary", "no boundary"),
    ],
)
def test_broken_encodings_survive(tmp_path: Path, headers: str, body: bytes, said: str) -> None:
    data = f"From: a@example.com\nTo: b@example.com\nSubject: x\n{headers}\n\n".encode() + body
    assert said in opened(tmp_path, data)[1]


@pytest.mark.parametrize(
    ("subject", "title"),
    [
        ("=?utf-8?B?xb1pdG8=?= =?utf-8?Q?_a_mouka?=", "Žito a mouka"),
        ("=?no-such?Q?M=C3=BChle?=", "Mühle"),
        ("=?utf-8?B?!!!?=", "=?utf-8?B?!!!?="),
        ("folded\n over lines", "folded over lines"),
        ("", "mail"),
    ],
)
def test_subjects_are_decoded_as_well_as_possible(tmp_path: Path, subject: str, title: str) -> None:
    assert opened(tmp_path, f"From: a@example.com\nTo: b@example.com\nSubject: {subject}\n\nx")[0].title == title


def test_raw_bytes_in_headers_are_read(tmp_path: Path) -> None:
    data = "From: a@example.com\nTo: b@example.com\nSubject: Größere Mühle\n\nx"
    assert opened(tmp_path, data.encode())[0].title == "Größere Mühle"
    assert opened(tmp_path, data.encode("latin-1"))[0].title == "Größere Mühle"


@pytest.mark.parametrize("said", ["", "yesterday", "Tue, 99 Foo 2026 10:00:00 +9999", "0"])
def test_a_date_that_is_none_is_none(tmp_path: Path, said: str) -> None:
    assert opened(tmp_path, f"From: a@example.com\nTo: b@example.com\nDate: {said}\n\nx")[0].written_at is None


def test_a_signature_is_no_document(tmp_path: Path) -> None:
    message = letter()
    message.add_attachment(b"x", maintype="application", subtype="pkcs7-signature", filename="smime.p7s")
    found, _ = opened(tmp_path, message.as_bytes())
    assert found.parts == ()
    assert found.meta["signed"] is True


def test_an_encrypted_mail_says_so(tmp_path: Path) -> None:
    data = "From: a@example.com\nTo: b@example.com\nContent-Type: multipart/encrypted; boundary=x\n\n--x\n\ny\n--x--\n"
    with pytest.raises(Permanent, match="The mail is encrypted"):
        opened(tmp_path, data)


def test_parts_within_parts_have_an_end(tmp_path: Path) -> None:
    data = "From: a@example.com\nTo: b@example.com\n"
    for depth in range(3000):
        data += f"Content-Type: multipart/mixed; boundary=b{depth}\n\n--b{depth}\n"
    with pytest.raises(Permanent, match="too deep"):
        opened(tmp_path, data + "\nx")


def test_a_mailbox_gives_its_messages_in_portions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gristmill.documents.reading.portions.PARTS", 2)
    mails = "".join(
        f"From ada@example.com Tue Mar  3 10:0{number}:00 2026\nFrom: ada@example.com\nTo: bo@example.com\n"
        f"Subject: Letter {number}\n\nFrom here on it is text.\n>From Monday 10:00 in 2026 on\n\n"
        for number in range(5)
    )
    path = put(tmp_path, "box", mails)
    found = inspect(path, "box", LIMITS)
    assert (found.type, found.pages, len(found.parts), found.more) == ("mailbox", 0, 2, True)
    last = inspect(path, "box", LIMITS, Bookmark(4))
    assert (len(last.parts), last.more) == (1, False)
    assert (last.parts[0].name, last.parts[0].suffix) == ("message-5.eml", "message=5")
    assert last.parts[0].data.endswith(b"From here on it is text.\nFrom Monday 10:00 in 2026 on\n\n")
    assert opened(tmp_path, last.parts[0].data)[0].title == "Letter 4"


HEAD_LINES = (
    *(b"From: Anna <anna@acme.test>\r\n", b"Subject:  two  spaces \r\n", b"Subject:\r\n folded\r\n\tfurther\r\n"),
    *(b"to: b@acme.test\n", b"Content-Type: text/html; charset=latin-1\r\n", b"Content-Type: multipart/mixed\r\n"),
    *(
        b"Content-Type: message/rfc822\r\n",
        b"Content-Transfer-Encoding: base64\r\n",
        b"X-Long: " + b"x" * 101_000 + b"\n",
    ),
    *(b"Content-Disposition: " + b"y" * 9_000 + b"\r\n", b"X-Bytes: \xe9\xff\r\n", b": nameless\r\n", b"no colon\r\n"),
    *(b"From anna Mon Mar  2 10:00:00 2026\n", b"Lone: a\rb\r\n", b" begins with a blank\r\n", b"Empty:\r\n"),
)


@given(
    st.lists(st.sampled_from(HEAD_LINES), max_size=6), st.sampled_from((b"\r\n", b"\n", b"")), st.binary(max_size=60)
)
def test_a_mail_in_one_part_is_parsed_as_the_library_parses_it(head: list[bytes], gap: bytes, body: bytes) -> None:
    data = (b"".join(head) + gap + body).lstrip()
    simple = mail.parse_simple(data)
    if simple is not None:
        usual = BytesParser(policy=mail.POLICY).parsebytes(data)
        assert list(simple.raw_items()) == list(usual.raw_items())
        assert simple.get_payload() == usual.get_payload()
        assert simple.is_multipart() == usual.is_multipart()


def test_nearly_all_mails_in_one_part_are_simple() -> None:
    assert mail.parse_simple(b"From: a@acme.test\r\nSubject: x\r\n y\r\n\r\nHello.\r\n") is not None
