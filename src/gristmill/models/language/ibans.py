"""Finds the numbers of bank accounts (IBAN): the right length for the country, and digits that check out."""

import re
from collections.abc import Iterator

IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?:[ \u00a0]?[A-Z0-9]{4}){2,7}(?:[ \u00a0]?[A-Z0-9]{1,3})?\b")
COUNTRIES = """
AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 ES24
FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21
LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22
RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30
"""
LENGTHS = {one[:2]: int(one[2:]) for one in COUNTRIES.split()}


def find_ibans(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the place of each account number, and the number without blanks."""
    for match in IBAN.finditer(text):
        if found := _cut_to_length(match[0]):
            written, number = found
            yield match.start(), match.start() + len(written), number


def _cut_to_length(written: str) -> tuple[str, str] | None:
    """The account number at the beginning of the words; the next word in capitals (a BIC) is no part of it."""
    length = LENGTHS.get(written[:2], 0)
    places = [place for place, one in enumerate(written) if one.isalnum()]
    if not length or len(places) < length:
        return None
    stop = places[length - 1] + 1
    number = "".join(one for one in written[:stop] if one.isalnum())
    whole = stop == len(written) or not written[stop].isalnum()
    return (written[:stop], number) if whole and is_iban(number) else None


def is_iban(number: str) -> bool:
    """Whether an account number without blanks has the length of its country and the remainder 1 of 97."""
    if LENGTHS.get(number[:2]) != len(number) or re.fullmatch(r"[A-Z]{2}\d\d[A-Z0-9]+", number) is None:
        return False
    return int("".join(str(int(one, 36)) for one in number[4:] + number[:4])) % 97 == 1
