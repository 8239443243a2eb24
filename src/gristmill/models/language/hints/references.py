"""Finds the numbers by which people speak of invoices, orders, contracts, issues and cases, and bank accounts."""

import re
from collections.abc import Iterator

from gristmill.models.language.hints.model import FoundReference, ReferenceKind, TextEvidence
from gristmill.models.language.ibans import find_ibans
from gristmill.models.language.structure import ID, NO_ID

Spans = tuple[tuple[int, int], ...]

LABELS: dict[ReferenceKind, str] = {
    "invoice": (
        r"invoice|bill|rechnung|rechnungs|re|faktura|faktury|fakturu|faktur[ae]|daňový doklad|račun|računa|računu|"
        r"variabilní symbol|var\. symbol|vs|poziv na broj|mahnung|gutschrift|dobropis"
    ),
    "order": (
        r"order|purchase order|po|bestellung|bestell|auftrag|auftrags|objednávka|objednávky|objednávku|zakázka|zakázky|"
        r"narudžba|narudžbe|narudžbu|narudžbenica|narudžbenice"
    ),
    "contract": (
        r"contract|agreement|policy|vertrag|vertrags|police|smlouva|smlouvy|smlouvu|ugovor|ugovora|polica|pojistka"
    ),
    "case": (
        r"case|ticket|claim|request|reference|vorgang|vorgangs|aktenzeichen|az|fall|schaden|schadens|sp\. ?zn|"
        r"spisová značka|"
        r"č\. ?j|čj|jednací|predmet|predmeta|klasa|urbroj|hlášení|požadavek|prijava"
    ),
    "issue": r"issue|bug|pr|pull request|merge request|mr|defect",
}
NUMBER_WORD = r"(?:no\.?|nr\.?|number|nummer|num\.?|č\.|čís\.|číslo|čísla|broj|br\.|id|-?nr\.?|-?nummer)"
VALUE = r"(?=[\w/.-]{0,40}\d)[A-Za-z0-9](?:[A-Za-z0-9]|[/._-](?=[A-Za-z0-9])){1,39}"
LABELLED = re.compile(
    r"(?<![\w-])(?:"  # once for all of them: most characters begin no word
    + "|".join(
        rf"(?P<{kind}>{labels})(?:\s?{NUMBER_WORD}\s?[:#]?\s?|\s?[:#]\s?|\s)#?(?P<{kind}_value>{VALUE})"
        for kind, labels in LABELS.items()
    )
    + ")",
    re.IGNORECASE,
)
NUMBERED_FIRST = re.compile(  # číslo faktury: 123, broj računa 123, number of the invoice is left alone
    rf"(?<!\w)(?:číslo|broj|č\.|br\.)\s(?P<label>faktury|objednávky|smlouvy|zakázky|računa|narudžbe|ugovora|"
    rf"predmeta)\s?:?\s?(?P<value>{VALUE})",
    re.IGNORECASE,
)
HASHED = re.compile(r"(?<![\w&/#])(?:[A-Za-z0-9_.-]{1,40}/[A-Za-z0-9_.-]{1,60})?#(\d{1,7})(?![\w-])")
FIRST_LABELS: dict[str, ReferenceKind] = {
    "faktury": "invoice", "računa": "invoice", "objednávky": "order", "zakázky": "order", "narudžbe": "order",
    "smlouvy": "contract", "ugovora": "contract", "predmeta": "case",
}  # fmt: skip
SHORTEST = 3  # characters of a number behind a label: `invoice 2` is the second one
CODES: dict[str, ReferenceKind] = {
    "INV": "invoice", "RE": "invoice", "RG": "invoice", "FA": "invoice", "FV": "invoice", "RN": "invoice",
    "PO": "order", "ORD": "order", "OBJ": "order", "NAR": "order",
    "CASE": "case", "TICKET": "case", "CS": "case", "CON": "contract", "SML": "contract", "UG": "contract",
}  # fmt: skip
LOUD = frozenset({"po", "re", "vs", "pr", "mr", "az"})  # words elsewhere: these labels are written in capitals


def find_references(text: str, spans: Spans) -> tuple[FoundReference, ...]:
    """All numbers in the order of the text, each kind and value once."""
    found: dict[tuple[str, str], FoundReference] = {}
    taken: list[tuple[int, int]] = []
    for one in sorted(_find_all(text, spans), key=lambda one: (one.evidence.start, -one.evidence.stop)):
        place = one.evidence
        if taken and place.start < taken[-1][1]:
            continue
        taken.append((place.start, place.stop))
        found.setdefault((one.kind, one.value), one)
    return tuple(found.values())


def _find_all(text: str, spans: Spans) -> Iterator[FoundReference]:
    for start, stop in spans:
        part = text[start:stop]
        for begin, end, number in find_ibans(part):
            yield _make("iban", number, text, start + begin, start + end)
        for match in LABELLED.finditer(part):
            if one := _read_labelled(match, text, start):
                yield one
        for match in NUMBERED_FIRST.finditer(part):
            kind = FIRST_LABELS[match["label"].lower()]
            yield _make(kind, match["value"], text, start + match.start(), start + match.end())
        for match in ID.finditer(part):
            if match[1] not in NO_ID:
                yield _make(CODES.get(match[1], "issue"), match[0], text, start + match.start(), start + match.end())
        for match in HASHED.finditer(part) if "#" in part else ():
            yield _make("issue", match[0], text, start + match.start(), start + match.end())


def _read_labelled(match: re.Match[str], text: str, start: int) -> FoundReference | None:
    kinds: Iterator[ReferenceKind] = (kind for kind in LABELS if match[kind] is not None)
    kind = next(kinds)
    label, value = match[kind], match[f"{kind}_value"]
    if label.lower() in LOUD and not label.isupper():
        return None
    bare = match.string[match.end(kind) : match.start(f"{kind}_value")].strip() == ""
    if len(value) < SHORTEST or (bare and not _is_number_of_its_own(value)):
        return None
    return _make(kind, value, text, start + match.start(), start + match.end())


def _is_number_of_its_own(value: str) -> bool:
    """Whether a value without `no.` or a colon before it is surely a number: Rechnung 2026-017, not Rechnung 2026."""
    digits = sum(one.isdigit() for one in value)
    return digits >= 4 and not re.fullmatch(r"(?:19|20)\d\d|\d{1,2}[./-]\d{1,2}(?:[./-]\d{2,4})?", value)


def _make(kind: ReferenceKind, value: str, text: str, start: int, stop: int) -> FoundReference:
    return FoundReference(kind, value.upper().rstrip("."), TextEvidence(start, stop, text[start:stop]))
