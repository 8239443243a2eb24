"""What the indexer finds in mails: ids, threads, people; and hostile mails, which harm nobody but themselves."""

import email
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from farm import a_mail

from gristmill.documents import Limits
from gristmill.documents.reading import mail as mails
from gristmill.errors import Permanent
from gristmill.sources.describing import describe_item
from gristmill.sources.mail.index import describe_mail, is_sent_folder
from gristmill.sources.model import Description, Fetched

CORPORA = Path(os.environ.get("GRISTMILL_CORPORA", Path(__file__).parents[3] / "shared" / "corpora"))
SAMPLES = CORPORA / "email-samples"


def described(mail: bytes, **note: object) -> Description:
    found = describe_item(describe_mail, Fetched("one", "1", note, mail), Limits())
    if isinstance(found, Permanent):
        raise found
    return found.found


def test_a_mail_is_known_by_its_message_id_and_belongs_to_those_that_it_answers() -> None:
    found = described(a_mail("three", References="<one@acme.test> <two@acme.test>", In_Reply_To="<two@acme.test>"))
    assert found.urn == "email::three@acme.test"
    assert found.messages == ("three@acme.test", "one@acme.test", "two@acme.test")
    assert (found.type, found.reading, found.sent) == ("email", "mail", False)


def test_a_mail_without_an_id_is_known_by_its_content() -> None:
    one, same, other = (described(a_mail(1, text, Message_ID="")) for text in ("a", "a", "b"))
    assert one.urn == same.urn
    assert one.urn != other.urn
    assert one.urn.startswith("email::sha256-")


def test_the_same_mail_over_another_server_is_the_same() -> None:
    there = described(b"Received: from elsewhere\r\nX-Spam: no\r\n" + a_mail(1))
    assert there.digest == described(a_mail(1)).digest
    assert there.digest != described(a_mail(1, "Forged.")).digest


def attach(name: str, content: str) -> bytes:
    text = (
        f"--b\r\n\r\nSee the file.\r\n--b\r\nContent-Disposition: attachment; filename={name}\r\n\r\n{content}\r\n--b--"
    )
    return a_mail(1, text, Content_Type="multipart/mixed; boundary=b")


def test_a_mail_with_another_attachment_is_another_mail() -> None:
    bills = [attach("bill.txt", "10 EUR"), attach("bill.txt", "99 EUR"), attach("note.txt", "10 EUR")]
    assert len({described(mail).digest for mail in bills}) == 3
    assert described(b"Received: from elsewhere\r\n" + bills[0]).digest == described(bills[0]).digest


def test_encrypted_mails_are_told_apart_by_their_bytes() -> None:
    one, same, other = (
        described(a_mail(1, f"--b\r\n\r\n{secret}--b--", Content_Type="multipart/encrypted; boundary=b"))
        for secret in ("x1", "x1", "x2")
    )
    assert one.digest == same.digest
    assert one.digest != other.digest


@pytest.mark.parametrize(
    ("name", "is_sent"),
    [("INBOX.Sent", True), ("[Gmail]/Sent Mail", True), ("Gesendet", True), ("INBOX/Odeslané", True), ("INBOX", False)],
)
def test_a_folder_of_sent_mails_is_known_by_its_name(name: str, is_sent: bool) -> None:
    assert is_sent_folder(name) == is_sent


def nest(depth: int) -> bytes:
    body = b"Content-Type: text/plain\r\n\r\ndeep\r\n"
    for n in range(depth):
        mark = f"b{n}".encode()
        body = b'Content-Type: multipart/mixed; boundary="%s"\r\n\r\n--%s\r\n%s\r\n--%s--\r\n' % (
            mark,
            mark,
            body,
            mark,
        )
    return b"From: a@b.test\r\nMessage-ID: <nested@b.test>\r\n" + body


HOSTILE = {
    "10,000 recipients": a_mail(1, To=", ".join(f"P{n} <p{n}@x.test>" for n in range(10_000))),
    "100 parts deep": nest(100),
    "1,000 parts deep": nest(1_000),
    "a header of a megabyte": a_mail(1, Subject="x" * 1_000_000),
    "an id of a megabyte": a_mail(1, Message_ID=f"<{'x' * 1_000_000}@y>"),
    "20,000 references": a_mail(1, References=" ".join(f"<{n}@x.test>" for n in range(20_000))),
    "brackets without end": a_mail(1, From="(" * 100_000),
    "encoded words without end": a_mail(1, Subject="=?utf-8?q?" * 50_000),
    "bytes that are no text": b"From: a@b.test\r\nSubject: \xff\xfe\x00\r\n\r\n\x00\xff" + bytes(range(256)) * 100,
    "a bomb of base64": b"From: a@b.test\r\nContent-Transfer-Encoding: base64\r\n\r\n" + b"QUFB" * 2_000_000,
}


@pytest.mark.parametrize("mail", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_mail_is_described_or_refused_in_time(mail: bytes) -> None:
    began = time.process_time()
    try:
        found = described(mail)
    except Permanent:
        found = None
    assert time.process_time() - began < 20
    if found is not None:
        assert len(found.urn) < 600
        assert len(found.messages) <= 110
        assert found.urn.isprintable()


def samples() -> Iterator[Path]:
    return (path for path in sorted(SAMPLES.rglob("*")) if path.is_file() and path.suffix in (".eml", ".txt", ""))


def test_every_sample_is_described_or_refused() -> None:
    if not SAMPLES.is_dir():
        pytest.skip("the samples of mails are not here")
    described_, refused = 0, 0
    for path in samples():
        try:
            found = described(path.read_bytes())
        except Permanent:
            refused += 1
            continue
        described_ += 1
        assert found.urn.startswith("email::")
        if (said := email.message_from_bytes(path.read_bytes()).get("Message-ID")) and len(said) < 200:
            assert str(said).strip("<> \t\r\n").split()[0][:20] in found.urn
    assert described_ > 20
    assert refused < described_


def test_a_mail_that_is_added_by_hand_is_told_apart_by_the_same_digest() -> None:
    bill = attach("bill.txt", "10 EUR")
    for mail in (a_mail(1), bill):
        assert mails.inspect(mail, "one.eml", "mail", Limits()).meta["digest"] == described(mail).digest.hex()  # pyright: ignore[reportOptionalMemberAccess]
