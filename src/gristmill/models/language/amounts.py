"""Finds amounts of money in every usual spelling: 1.234,50 €, CHF 1’234.50, 12 500 Kč, 99,- Kč, $1.2k."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from gristmill.models.language.months import DATE

SIGNS = {
    "€": "EUR", "$": "USD", "£": "GBP", "¥": "JPY", "₹": "INR", "Kč": "CZK", "Kc": "CZK", "zł": "PLN", "RM": "MYR",
    "kn": "HRK", "SFr.": "CHF",
}  # fmt: skip
DOLLARS = {"A": "AUD", "AU": "AUD", "C": "CAD", "CA": "CAD", "US": "USD", "NZ": "NZD", "HK": "HKD", "S": "SGD"}
CODES = "EUR|USD|GBP|CHF|CZK|PLN|JPY|CAD|AUD|NZD|SEK|NOK|DKK|HUF|INR|CNY|MYR|SGD|HKD|HRK|BAM|RSD"
NAMES = {  # written behind their number only: `Euro 2024` is a championship
    name: code
    for code, names in {
        "EUR": "euro euros eura eurů eurima eury",
        "USD": "dollar dollars dolarů dolara dolary",
        "CHF": "franken franků franaka",
        "CZK": "korun koruny koruna korunách",
        "HRK": "kuna kune kunu",
    }.items()
    for name in names.split()
}
SCALE = {"": 0} | {  # powers of ten
    name: power
    for power, names in {
        3: "k thousand tausend tsd tis tisíc tisíce tisuća tisuće",
        6: "m mio mil million millionen milion milionů miliony milijun milijuna",
        9: "bn billion mrd mld milliarde milliarden miliard miliardy milijardi",
    }.items()
    for name in names.split()
}
SCALE_WORD = "|".join(sorted((one for one in SCALE if len(one) > 2), key=len, reverse=True))
LONGEST = 30  # characters of a number; a longer one is a row of a table

LETTERED = rf"{CODES}|RM|Kč|Kc|zł|kn"
NAMED = "|".join(sorted(NAMES, key=len, reverse=True))
CURRENCY = (
    rf"(?<![A-Za-z])(?:{CODES}|[A-Z]{{1,2}})\$|(?<![^\W\d_])SFr\.(?=\s?\d)|(?<![^\W\d_])(?:{LETTERED})(?![^\W\d_])"
    rf"|[€$£¥₹]|(?<![^\W\d_])(?i:{NAMED})(?![^\W\d_])"
)
COUNTED = re.compile(
    r"\s?(?:%|(?:days?|weeks?|months?|years?|hours?|pieces?|pcs|times|tagen?|wochen|monaten?|stück|dn[íůy]|dana|kom)\b)",
    re.IGNORECASE,
)
NUMBER = (
    r"\d{1,2}(?:,\d\d)+,\d{3}(?:\.\d+)?"  # 12,34,567.50 as in India
    r"|[1-9]\d{0,2}(?P<group>[ \u00a0\u202f.,'’])\d{3}(?:(?P=group)\d{3})*(?:[.,]\d+)?"
    r"|\d{1,15}(?:[.,]\d+)?"
)
PIECE = re.compile(  # of an amount: a sign of currency or a number
    # looks at one letter first, because most of a text is neither
    rf"(?=[A-Zzekdpf€$£¥₹])(?P<sign>{CURRENCY})"
    rf"|(?=\d)(?:(?<![\w.,])|{'|'.join(f'(?<={one})' for one in LETTERED.split('|'))})(?P<number>{NUMBER})(?![.,]?\d)"
    r"(?:[.,](?:--?|[–—]))?"  # 99,- Kč
    rf"(?:(?i:(?P<close>k|m|bn)\b|\s?(?P<word>{SCALE_WORD})\b\.?|\s(?P<apart>k|m|bn)\b))?"
)

Pieces = list[re.Match[str]]


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount of money and its place in the text."""

    start: int
    stop: int
    value: Decimal
    currency: str


def find_amounts(text: str, start: int = 0, stop: int | None = None) -> Iterator[Amount]:
    """Every amount between two places of the text."""
    for chain in _split_chains(text, start, len(text) if stop is None else stop):
        for sign, number in _pair_signs(chain):
            leads = sign.start() < number.start()
            code = _find_currency(sign["sign"], leads)
            metres = number["apart"] and not leads  # `5 m EUR`: metres, not millions
            if code and not metres and len(number["number"]) <= LONGEST:
                first, last = min(sign.start(), number.start()), max(sign.end(), number.end())
                yield Amount(first, last, _read_value(number), code)


def format_amount(value: Decimal) -> str:
    """The amount with two decimals at least, and with all that were written."""
    whole, _, rest = f"{value:f}".partition(".")
    return f"{whole}.{rest.rstrip('0').ljust(2, '0')}"


def _split_chains(text: str, start: int, stop: int) -> Iterator[Pieces]:
    """Split the text into chains in which signs and numbers alternate, with at most a blank between them."""
    chain: Pieces = []
    for piece in PIECE.finditer(text, start, stop):
        if chain and not (bool(chain[-1]["sign"]) != bool(piece["sign"]) and _read_gap(chain[-1], piece) in ("", " ")):
            yield chain
            chain = []
        chain.append(piece)
    yield chain


def _read_gap(one: re.Match[str], other: re.Match[str]) -> str:
    """What stands between two pieces; anything longer than a blank is as good as a dash."""
    if other.start() - one.end() > 1:
        return "-"
    return re.sub(r"\s", " ", one.string[one.end() : other.start()])


def _pair_signs(chain: Pieces) -> Iterator[tuple[re.Match[str], re.Match[str]]]:
    """Pair each sign with its number: `$10 €20` and `10 $ 20 €` are clear, `2024 $ 500` has one number too many."""
    if len(chain) < 2:
        return
    signs_lead = bool(chain[0]["sign"]) or (not chain[-1]["sign"] and _is_odd_one_first(chain))
    if signs_lead:
        chain = chain if chain[0]["sign"] else chain[1:]
        yield from zip(chain[::2], chain[1::2], strict=False)
    else:
        yield from zip(chain[1::2], chain[::2], strict=False)


def _is_odd_one_first(chain: Pieces) -> bool:
    """Whether the first number belongs to no sign, in a chain that begins and ends with a number: it may be a year."""
    first, last = chain[0], chain[-1]
    if COUNTED.match(last.string, last.end()) or DATE.match(last.string, last.start()):
        return False
    closeness = (_read_gap(first, chain[1]) == "", _read_gap(chain[-2], last) == "")
    if closeness[0] != closeness[1]:
        return closeness[1]
    if _is_priced(first["number"]) != _is_priced(last["number"]):
        return _is_priced(last["number"])
    return _is_year(first["number"]) or not _is_year(last["number"])


def _is_priced(number: str) -> bool:
    """Whether a number is written as a price: 12.50 and 1,200 are; 3 and 2024 may be anything."""
    return re.search(r"[.,]\d\d$|[ \u00a0\u202f.,'’]\d{3}(?!\d)", number) is not None


def _is_year(number: str) -> bool:
    return re.fullmatch(r"(?:19|20)\d\d", number) is not None


def _find_currency(sign: str, leads: bool) -> str:
    """The code of a currency; empty for the dollars of an unknown country, and for a word before its number."""
    if len(sign) > 1 and sign.endswith("$"):
        return sign[:-1] if len(sign) == 4 else DOLLARS.get(sign[:-1], "")
    if sign in SIGNS:
        return SIGNS[sign]
    named = NAMES.get(sign.lower())
    if named:
        return "" if leads else named
    return sign


def _read_value(number: re.Match[str]) -> Decimal:
    scale = SCALE[(number["close"] or number["word"] or number["apart"] or "").lower()]
    return parse_number(number["number"]) * 10**scale


def parse_number(text: str) -> Decimal:
    """Read 1.234,50 and 1,234.50: the last of two signs is the decimal one; so is one that cannot divide thousands."""
    text = re.sub(r"[ \u00a0\u202f'’]", "", text)
    signs = re.findall(r"[.,]", text)
    whole, _, rest = text.rpartition(signs[-1]) if signs else ("", "", text)
    grouped = len(rest) == 3 and len(set(signs)) == 1 and not text.startswith("0")
    if not whole or grouped:
        return Decimal(re.sub(r"[.,]", "", text))
    return Decimal(f"{re.sub(r'[.,]', '', whole)}.{rest}")
