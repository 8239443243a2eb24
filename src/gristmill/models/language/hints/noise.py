"""Recognises mails for whose answer nobody waits: auto-replies, bounces, receipts, newsletters, bare thanks."""

import re
from collections.abc import Iterator, Sequence

from gristmill.models.language.hints.model import About, Noise, NoiseKind, TextEvidence
from gristmill.models.language.hints.sentences import Sentence
from gristmill.models.language.hints.words import Words, spell

SUBJECTS: dict[NoiseKind, re.Pattern[str]] = {
    "calendar_reply": re.compile(
        r"^\W*(?:(?:re|aw): ?)?(?:accepted|declined|tentative(?:ly accepted)?|zugesagt|angenommen|abgelehnt|"
        r"abgesagt|vorläufig(?: angenommen)?|"
        r"mit vorbehalt|unter vorbehalt|přijato|odmítnuto|předběžně přijato|prihvaćeno|odbijeno|"
        r"uvjetno prihvaćeno|probno prihvaćeno)\s?:",
        re.IGNORECASE,
    ),
    "read_receipt": re.compile(
        r"^\W*(?:read|gelesen|přečteno|pročitano|lesebestätigung|read receipt|return receipt|potvrzení o přečtení|"
        r"potvrda o čitanju|empfangsbestätigung \(angezeigt\)|not read|ungelesen gelöscht)(?:\s?:|\s*$| \()",
        re.IGNORECASE,
    ),
    "bounce": re.compile(
        r"^\W*(?:undeliver(?:able|ed)|delivery (?:status notification|failure|has failed)|"
        r"mail delivery (?:failed|subsystem)|"
        r"returned mail|failure notice|unzustellbar|nicht zustellbar|zustellung fehlgeschlagen|nedoručitelné|"
        r"nedoručeno|"
        r"neisporučeno|neisporučivo|isporuka nije uspjela)",
        re.IGNORECASE,
    ),
    "newsletter": re.compile(
        r"^\W*(?:\[[^\]\n]{1,40}\]\W*)?(?:(?:daily|weekly|monthly|your) )?(?:[\w-]+ )?(?:digest|newsletter|"
        r"rundbrief|zpravodaj)\b",
        re.IGNORECASE,
    ),
    "auto_reply": re.compile(
        r"^\W*(?:(?:re|aw): ?)?(?:automatic reply|auto(?:matic)?[- ]?(?:reply|response)|out of (?:the )?office|"
        r"ooo\b|automatische antwort|"
        r"abwesenheit|abwesend|automatická odpověď|nepřítomnost|mimo kancelář|automatski odgovor|odsutnost|"
        r"izvan ureda)",
        re.IGNORECASE,
    ),
}
AWAY = re.compile(
    r"\b(?:i am|i'm|i will be) (?:currently )?(?:out of (?:the )?office|on (?:annual |parental )?leave|"
    r"on vacation|away)\b"
    r"|\bich bin (?:derzeit |momentan |bis )?[^.\n]{0,40}(?:nicht im büro|im urlaub|abwesend|nicht erreichbar)"
    r"|\b(?:jsem|budu) [^.\n]{0,40}(?:mimo kancelář|na dovolené|nepřítom)"
    r"|\b(?:nisam|bit ću) [^.\n]{0,40}(?:u uredu|odsut)|\bna (?:godišnjem )?odmoru sam\b|\bsam na godišnjem\b",
    re.IGNORECASE,
)
UNSUBSCRIBE = re.compile(
    r"\bunsubscribe\b|\byou (?:are receiving|receive|"
    r"received) this [^.\n]{0,30}because you[^.\n]{0,20} (?:subscribe|sign|register|opt)"
    r"|\bsie erhalten diese[^.\n]{0,30}weil sie[^.\n]{0,40}(?:angemeldet|abonniert|registriert)"
    r"|\bopt[- ]out\b|\bmanage (?:your )?(?:email )?preferences\b|"
    r"\bview (?:this (?:e-?mail )?)?in (?:your )?browser\b"
    r"|\bnewsletter (?:abbestellen|abmelden)|\bvom newsletter abmelden|\babbestellen\b|\bhier abmelden\b|"
    r"\bim browser (?:ansehen|öffnen)"
    r"|\bodhlásit (?:se )?(?:z |odběr|newsletter)|\bodhlášení (?:z )?odběru|\bodhlásit odběr|\bzobrazit v prohlížeči"
    r"|\bodjav(?:a|ite|iti)\b[^.\n]{0,40}(?:newsletter|liste|pretplat)|\bodjavite se\b|\bodjava\b|"
    r"\bpogledajte u pregledniku",
    re.IGNORECASE,
)
# A line of its own at the end.
LEAVING = re.compile(
    r"\W*(?:hier )?(?:abmelden|abbestellen|unsubscribe|opt out|odhlaste se|odhlásit(?: se)?|odjavite se|"
    r"odjava)(?: hier| zde| ovdje)?\W*"
    r"|[^.\n]{0,60}(?:keine|nechcete|nepřejete|ne želite)\b[^.\n]{0,40}(?:mails?|e-?maily?|newsletter\w*|zprávy|"
    r"mailove|poruke|vijesti)\W*",
    re.IGNORECASE,
)
NO_REPLY = re.compile(
    r"(?:^|[<\s\"])(?:no[-_.]?reply|do[-_.]?not[-_.]?reply|donotreply|nicht[-_.]?antworten|neodpovidat|"
    r"ne[-_.]?odgovaraj|mailer-daemon|"
    r"postmaster|bounces?|notifications?|notify|alerts?|news(?:letter)?|marketing|mailing|info-?mail|automailer|"
    r"system|jenkins|builds?)"
    r"(?:[+.\-_][\w.+-]*)?@",
    re.IGNORECASE,
)
BOUNCER = re.compile(r"(?:^|[<\s\"])(?:mailer-daemon|postmaster)@", re.IGNORECASE)
ACKNOWLEDGING = spell(
    """thanks thank you thx ty ok okay k great perfect super cool fine noted received got it will do sounds good many
    much very so a lot alright understood cheers nice awesome excellent works for me all agreed danke vielen dank
    besten herzlichen passt alles klar gut gerne prima wunderbar perfekt verstanden erhalten ist angekommen schön dir
    ihnen bestens in ordnung mach ich wird gemacht díky děkuji děkujeme moc dobře dobrá jasně rozumím v pořádku super
    beru na vědomí to je vše skvělé fajn souhlasím přijato ano hvala puno lijepa lijepo u redu može odlično razumijem
    primljeno vrijedi važi slažem se dogovoreno najljepša hvala! za info fyi informaci die info information den
    hinweis vam ti vám your the update quick reply help schnelle antwort zprávu email mail odgovor poruku yes ja da si
    top welcome np problem no kein kvůli brzkou brz rückmeldung odpověď"""
)
THANKING = spell(
    """thanks thank thx ok okay great perfect noted received danke dank passt klar verstanden díky děkuji děkujeme
    dobře jasně rozumím pořádku super hvala redu odlično primljeno dogovoreno prima perfekt cheers agreed souhlasím
    fajn gut fine cool top"""
)
CLOSING = re.compile(
    r"^[ \t]*(?:--|(?:best|kind|warm)(?: regards| wishes)?|regards|cheers|sincerely|br|yours|"
    r"mit (?:freundlichen|besten|lieben) grüßen|"
    r"(?:viele|liebe|beste|schöne) grüße|(?:lg|vg|mfg|bg)|gruß|s (?:pozdravem|úctou)|(?:hezký|pěkný) (?:den|"
    r"večer|víkend)|"
    r"(?:lijep|srdačan|lp)(?: pozdrav)?|pozdrav|lp|sent from|von meinem|odesláno z|poslano s)\b.*$",
    re.IGNORECASE | re.MULTILINE,
)
LONGEST_THANKS = 16  # words
ROBOTS = ("auto-replied", "auto-generated")


def find_noise(words: Words, sentences: Sequence[Sentence], about: About) -> tuple[Noise, ...]:
    """Every reason why nobody waits for an answer; each kind once."""
    found: dict[NoiseKind, Noise] = {}
    for noise in _find_all(words, sentences, about):
        found.setdefault(noise.kind, noise)
    return tuple(found.values())


def _find_all(words: Words, sentences: Sequence[Sentence], about: About) -> Iterator[Noise]:
    yield from _read_headers(about)
    yield from _read_subject(words.text, about)
    if about.type != "email":
        return
    yield from _read_text(words, sentences, about)
    if NO_REPLY.search(about.sender):
        yield Noise("noise_sender", f"the sender {about.sender} takes no answers", None)
    if noise := _find_acknowledgement(words, sentences):
        yield noise


def _read_headers(about: About) -> Iterator[Noise]:
    header = {name: value.lower() for name, value in about.headers.items()}
    kind = header.get("content-type", "")
    if "disposition-notification" in kind:
        yield Noise("read_receipt", "the content type says so", None)
    if "delivery-status" in kind or BOUNCER.search(about.sender):
        yield Noise("bounce", "the content type or the sender says so", None)
    if "text/calendar" in kind and "method=reply" in kind.replace('"', ""):
        yield Noise("calendar_reply", "the content type says so", None)
    automatic = header.get("auto-submitted", "no").split(";")[0].strip()
    if automatic == "auto-replied" or header.get("x-autoreply") or header.get("x-autorespond"):
        yield Noise("auto_reply", "the header Auto-Submitted says so", None)
    if header.get("precedence") == "auto_reply":
        yield Noise("auto_reply", "the header Precedence says so", None)
    if "list-unsubscribe" in header:
        yield Noise("newsletter", "the header List-Unsubscribe", None)
    if header.get("precedence") in ("bulk", "list", "junk") and automatic != "auto-replied":
        yield Noise("newsletter", f"the header Precedence: {header['precedence']}", None)


def _read_subject(text: str, about: About) -> Iterator[Noise]:
    subject = about.subject or text.partition("\n")[0]
    for kind, pattern in SUBJECTS.items():
        if match := pattern.match(subject):
            found = match[0].strip()
            place = text.find(found, 0, len(subject) + len(found) + 2) if found else -1
            evidence = TextEvidence(place, place + len(found), found) if place >= 0 else None
            yield Noise(kind, "the subject says so", evidence)


def _read_text(words: Words, sentences: Sequence[Sentence], about: About) -> Iterator[Noise]:
    for sentence in sentences[:6]:
        if match := AWAY.search(words.text, sentence.start, sentence.stop):
            yield Noise(
                "auto_reply", "it says that the writer is away", TextEvidence(match.start(), match.end(), match[0])
            )
            break
    for sentence in sentences[-12:]:
        match = UNSUBSCRIBE.search(words.text, sentence.start, sentence.stop)
        if match := match or LEAVING.fullmatch(words.text, sentence.start, sentence.stop):
            yield Noise("newsletter", "one can unsubscribe", TextEvidence(match.start(), match.end(), match[0]))
            break


def _find_acknowledgement(words: Words, sentences: Sequence[Sentence]) -> Noise | None:
    """Thanks!, Danke, passt: a short text in which every word thanks or agrees; a question or a wish is none."""
    if not sentences:
        return None
    start = sentences[0].start
    ending = CLOSING.search(words.text, start, sentences[-1].stop)
    stop = ending.start() if ending and ending.start() > start else sentences[-1].stop
    lows = [words.low(place) for place in range(sentences[0].first, words.find(stop))]
    said = [low for low in lows if low.isalnum()]
    if not said or len(said) > LONGEST_THANKS or "?" in lows:
        return None
    known = sum(low in ACKNOWLEDGING for low in said)
    named = len(said) - known  # a name or two: Thanks, Petr
    if not THANKING.intersection(said) or named > 2 or known < named * 2 or any(low.isdecimal() for low in said):
        return None
    first, last = sentences[0].start, max(words[words.find(stop) - 1].stop, sentences[0].start)
    return Noise("acknowledgement", "it only thanks or agrees", TextEvidence(first, last, words.text[first:last]))
