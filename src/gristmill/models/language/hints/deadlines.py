"""Tells a day by which something must be done from any other day: by Friday, due 3 May, bis zum, do pátku, rok je."""

from datetime import timedelta

from gristmill.models.language.hints.clock import read_clock
from gristmill.models.language.hints.days import Calendar, Read
from gristmill.models.language.hints.named_days import NAMED_DAYS
from gristmill.models.language.hints.vocabulary import ALL_SHORT_WEEKDAYS, MONTH_NUMBERS, PARTS_OF_DAY, find_weekday
from gristmill.models.language.hints.words import Words, spell

# Directly before a date they make it a deadline.
CUES = spell(
    """by until till before due deadline latest payable bis spätestens längstens fällig zahlbar frist abgabefrist
    zahlungsfrist
    fälligkeit fälligkeitsdatum fälligkeitstermin abgabetermin stichtag einsendeschluss anmeldeschluss do nejpozději
    splatnost splatnosti splatná splatnou splatného splatný splatné splatno termínu uzávěrka lhůta najkasnije rok roka
    dospijeće dospijeća dospijeva dospijećem dospjela dospjelo dospio valuta eta"""
)
CUE_ENDS = ("frist", "schluss", "stichtag")  # Angebotsfrist, Meldeschluss
LIMITS = spell("by until till bis do thru through to")  # these may also end a span of time
# What may stand between a cue and its date.
FILLERS = spell(
    """the zum den dem der am on at latest later than no not an as of day date datum dne dana je is was war ist byla
    byl bila bio falls fell within back zu o clock spätestens nejpozději najkasnije and ab vor k ke v ve u dana před
    prije
    plaćanja placanja naplatu plaćanje faktury računa na za noon end close business this is: friday"""
) | frozenset({":", ",", "(", "-", "–", "—", "*", "|", "="})
NOUNS = spell(
    """deadline frist abgabefrist abgabetermin stichtag fälligkeit einsendeschluss anmeldeschluss uzávěrka lhůta
    splatnost rok rokom dospijeće due zahlungsziel cutoff"""
)
COPULAS = spell(
    """close closes schließt is was are ist war je jsou byl byla byly bila bio ends expires endet läuft končí ističe
    istječe vyprší :"""
)
EXPIRES = spell("close closes schließt expires ends endet končí ističe istječe vyprší ausläuft abläuft")
BEHIND = (
    ("at", "the", "latest"),
    ("latest",),
    ("spatestens",),
    ("nejpozdeji",),
    ("najkasnije",),
    ("deadline",),
    ("is", "the", "deadline"),
    ("(", "deadline"),
    ("fallig",),
    ("zahlbar",),
    ("zu", "zahlen"),
)
FROM = spell("from von vom od ode between zwischen mezi između since seit")
# Somebody is away, or a thing lasts, until that day: nobody has to do anything by then.
LASTING = spell(
    """vacation holiday holidays leave office away urlaub abwesend abwesenheit dovolená dovolené dovolenou odmor
    odmoru godišnjem geöffnet open opening otevřeno otvoreno closed geschlossen zavřeno zatvoreno runs läuft dauert
    trvá traje stays remains bleibt bleiben zůstává zůstane ostaje erreichbar reachable available maintenance
    wartung odstávka nepřítomen odsutan odsutna nepřítomna
    sale"""
)
DISCOUNTS = spell("skonto skonta discount rabatt sleva slevu slevy popust popusta")
NEAR = 8
FAR = 12


def judge_deadline(words: Words, read: Read, calendar: Calendar) -> tuple[bool, int]:
    """Whether the date is a deadline, and the place of the first word that says so (or of the date)."""
    if read.is_deadline is False or _is_discounted(words, read):
        return False, read.first
    cue = _find_cue(words, read)
    if read.is_deadline:
        return True, cue if cue is not None else read.first
    if cue is not None and _is_cue_meant(words, cue, calendar):
        return True, cue
    if _is_end_of_term(words, read) or _is_too_late_after(words, read):
        return True, read.first
    if _is_named_by_noun(words, read, calendar) or any(words.lows(read.after, len(one)) == one for one in BEHIND):
        return True, read.first
    return False, read.first


def _is_end_of_term(words: Words, read: Read) -> bool:
    """Zítra končí lhůta, sutra istječe rok, tomorrow the deadline expires."""
    behind = words.lows(read.after, 6)
    return not ENDING.isdisjoint(behind[:4]) and not TERM.isdisjoint(behind)


def _is_too_late_after(words: Words, read: Read) -> bool:
    """Entries after 19 October cannot be considered; nach dem 19. 10. nicht mehr."""
    at = read.first - 1
    at -= words.low(at) in ("the", "dem", "den")
    return words.low(at) in ("after", "nach", "po", "nakon") and not DENIALS.isdisjoint(words.lows(read.after, 8))


DENIALS = spell("not no cannot can't won't nicht keine kein nelze nebude nebudou nebudeme ne neće nećemo nisu")
ENDING = spell("expires ends lapses runs endet läuft končí uplyne vyprší ističe istječe završava")
TERM = NOUNS | spell("lhůty lhůtu rok roka term period berufungsfrist widerspruchsfrist einspruchsfrist")


def _find_cue(words: Words, read: Read) -> int | None:
    """The place of the cue before the date, with nothing but small words between."""
    at, found = read.first - 1, None
    while at >= 0 and at > read.first - NEAR:
        low = words.low(at)
        if "\n\n" in words.gap(at) or (low == "." and not _is_abbreviated(words, at)):
            break
        if (
            low in CUES
            or low.endswith(CUE_ENDS)
            or _is_before(words, at, read)
            or (low == "later" and words.low(at - 1) in ("no", "not"))
        ):
            found = at - 1 if low == "later" else at
        elif (
            low not in FILLERS and low not in ALL_SHORT_WEEKDAYS and low not in PARTS_OF_DAY and not _is_time(words, at)
        ):
            break
        at -= 1
    return found


def _is_before(words: Words, at: int, read: Read) -> bool:
    """Vor dem 30. September, před 5. červnem: nothing but an article stands between."""
    between = words.lows(at + 1, read.first - at - 1)
    return words.low(at) in ("vor", "pred", "prije") and all(one in ("dem", "den", "der") for one in between)


def _is_abbreviated(words: Words, at: int) -> bool:
    return words.low(at - 1) in ALL_SHORT_WEEKDAYS and words.is_close(at - 1)


def _is_time(words: Words, at: int) -> bool:
    """Whether this word is a piece of a time of day: do 12 h v pátek."""
    return words[at].is_number or words.low(at) in ("h", "hod", "uhr", "sati", "am", "pm", ".", ":")


def _is_cue_meant(words: Words, cue: int, calendar: Calendar) -> bool:
    """Whether the word before the date sets a limit to the reader, and is no other word that is spelt the same."""
    low = words.low(cue)
    if low == "do" and calendar.language in ("en", "de"):
        return False
    if low == "rok" and (calendar.language == "cs" or words.low(cue - 1) in ("otkazni", "jamstveni", "probni")):
        return False
    if low == "by" and words.low(cue - 1) in ("written", "signed", "followed", "surprised"):
        return False
    before = _read_clause(words, cue)
    if low in LIMITS and (_has_beginning(words, cue, calendar) or words.low(cue - 1) in ("-", "–")):
        return False
    return not (low in LIMITS and low != "by" and LASTING.intersection(before))  # an absence lasts until, never by


def _has_beginning(words: Words, cue: int, calendar: Calendar) -> bool:
    """Whether a day is named from which on: vom 3. bis 5. Juni. `Von 140 Euro` names none."""
    for at in range(cue - 2, max(-1, cue - 8), -1):
        if words.low(at) in (":", ";", "!", "?"):
            return False
        if words.low(at) in FROM:
            begin = at + 1 + (words.low(at + 1) in ("the", "dem", "den", "dne"))
            low, behind = words.low(begin), words.low(begin + 1)
            named = low in NAMED_DAYS or low in MONTH_NUMBERS or low in ("now", "jetzt", "ted", "sada")
            if named or find_weekday(words, begin, calendar.language) is not None:
                return True
            if not MONEY.isdisjoint(words.lows(begin + 1, 4)):  # von 120 € bis Montag
                return False
            return low.isdecimal() and not (behind.isalpha() and behind not in MONTH_NUMBERS and behind not in BETWEEN)
    return False


MONEY = spell("eur euro czk kč usd gbp chf kn eura") | frozenset("€$£%")
BETWEEN = spell("to bis do až uhr hodin sati h und a i am pm st nd rd th until till through and")


def _read_clause(words: Words, place: int) -> list[str]:
    """The few words before a place in the same clause, the nearest first."""
    before: list[str] = []
    for at in range(place - 1, max(-1, place - 1 - NEAR), -1):
        if words.low(at) in (":", ";", "!", "?") or "\n\n" in words.gap(at):
            break
        before.append(words.low(at))
    return before


def _is_named_by_noun(words: Words, read: Read, calendar: Calendar) -> bool:
    """The deadline for all reports is 5 June; rok za prijavu je 5. lipnja; the offer expires on 5 June."""
    at = read.first - 1
    while at >= 0 and at > read.first - 4 and words.low(at) in ("on", "am", "dne", "dana", "the", "den", "already"):
        at -= 1
    if words.low(at) not in COPULAS:
        return False
    if words.low(at) in EXPIRES or (words.low(at) == "lauft" and not RUNS_OUT.isdisjoint(words.lows(read.after, 2))):
        return True
    before: list[str] = []
    for one in range(at - 1, max(-1, at - FAR), -1):
        if (words.low(one) in ".!?" and words.low(one)) or "\n\n" in words.gap(one):
            break
        before.append(words.low(one))
    nouns = NOUNS | CZECH_NOUNS if calendar.language == "cs" else NOUNS
    return bool(nouns.intersection(before))


RUNS_OUT = frozenset({"ab", "aus"})  # das Passwort läuft am 3. Mai ab
CZECH_NOUNS = spell("termín termínem")  # elsewhere it is an appointment


def _is_discounted(words: Words, read: Read) -> bool:
    """2 % Skonto within 7 days is an offer; the payment is due later."""
    for one in range(read.first - 1, max(-1, read.first - 7), -1):
        if words.low(one) in (",", ";", ".", "\0") or "\n" in words.gap(one):
            break
        if words.low(one) in DISCOUNTS:
            return True
    for one in range(read.after, min(len(words), read.after + 6)):
        if words.low(one) in (",", ";", ".") or "\n" in words.gap(one - 1):
            break
        if words.low(one) in DISCOUNTS:
            return True
    return False


def read_time_alone(words: Words, place: int, calendar: Calendar) -> Read | None:
    """By 5pm, bis 17 Uhr, do 15:00: today, or tomorrow if that hour has passed."""
    low = words.low(place - 1)
    if low not in ("by", "until", "before", "bis", "do", "spatestens", "nejpozdeji", "najkasnije"):
        return None
    found = read_clock(words, place)
    if found is None or not _is_cue_meant(words, place - 1, calendar):
        return None
    clock, after = found
    if words.low(after) in ("-", "–") or words.number(place - 2) is not None:
        return None
    passed = clock <= calendar.written.time()
    day = calendar.today if not passed else calendar.today + timedelta(days=1)
    return Read(place, after, day, clock, is_deadline=True)
