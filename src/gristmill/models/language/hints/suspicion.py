"""Recognises texts that want to lead astray: orders to a machine that reads them, and lures for passwords and money."""

import re
from collections.abc import Iterable

from gristmill.models.language.hints.model import TextEvidence

# Orders to whatever program reads the text.
INJECTION = (
    r"(?:ignore|disregard|forget|override)\s+(?:all\s+|any\s+|the\s+|your\s+|of\s+){0,3}(?:previous|prior|above|earlier|former|"
    r"preceding|system|other)\s+(?:\w+\s+)?(?:instructions?|prompts?|rules|orders|messages|guidelines)"
    r"|(?:ignorier\w*|vergiss|vergessen\s+sie|missacht\w*)\s+(?:\w+\s+){0,3}(?:anweisung\w*|instruktion\w*|regeln|vorgaben)"
    r"|(?:ignoruj\w*|zapome[nň]\w*|nedbej\w*)\s+(?:\w+\s+){0,3}(?:pokyn\w*|instrukc\w*|příkaz\w*|pravid\w*)"
    r"|(?:zanemari\w*|ignoriraj\w*|zaboravi\w*)\s+(?:\w+\s+){0,3}(?:uput\w*|instrukcij\w*|pravil\w*|naredb\w*)"
    r"|(?:reveal|print|show|output)\s+(?:me\s+)?(?:your|the)\s+(?:system\s+)?prompt|system\s*prompt\s*:"
    r"|you\s+are\s+now\s+(?:a|an|in|the)\s+\w+\s*(?:assistant|mode|agent|ai|administrator)"
    r"|<\s*/?\s*(?:system|assistant|instructions?)\s*>|\[\s*/?\s*INST\s*\]"
    r"|(?:forward|send|export|mail)\s+(?:all|every|the\s+whole)\s+(?:\w+\s+){0,3}(?:e?-?mails?|inbox|mailbox|passwords?|"
    r"credentials|contacts)\s+to"
)
SECRET = (
    r"(?:passwords?|passcode|pin(?:\s+code|-code)?|login\s+(?:data|details)|credentials|card\s+(?:number|details)|cvv|"
    r"bank(?:ing)?\s+(?:details|data|login)|mailbox|account|one-time\s+code|tan"
    r"|passwor[dt]\w*|kennwort\w*|zugangsdaten|anmeldedaten|kartendaten|kreditkarten\w*|bankdaten|konto"
    r"|hesl[aoeu]\w*|přihlašovací\s+údaje|údaje\s+(?:o\s+)?kart\w*|účet"
    r"|lozink\w*|zapork\w*|podatke\s+(?:o\s+)?kartic\w*|korisničk\w+\s+račun\w*)"
)
ASKED = (
    r"(?:confirm|verify|validate|enter|update|unlock|reactivate|restore|send|provide|bestätig\w*|verifizier\w*|eingeben|"
    r"aktualisier\w*|entsperr\w*|senden|mitteilen|potvr\w*|ověř\w*|zadej\w*|aktualizuj\w*|odblok\w*|pošl\w*|unesite|ažuriraj\w*|"
    r"pošalj\w*|otključ\w*)"
)
THREAT = (
    r"(?:suspend\w*|lock(?:ed|out)|deactivat\w*|terminat\w*|delet\w*|unusual\s+(?:activity|sign-?in)|within\s+(?:24|48|12)\s+hours|"
    r"gesperrt|deaktiviert|gelöscht|ungewöhnlich\w*|innerhalb\s+von\s+(?:24|48)\s+stunden"
    r"|zablokov\w*|deaktivov\w*|smazán\w*|podezřel\w*|do\s+(?:24|48)\s+hodin"
    r"|blokiran\w*|deaktiviran\w*|obrisan\w*|sumnjiv\w*|u\s+roku\s+(?:od\s+)?(?:24|48)\s+sat\w*)"
)
GIFT_CARDS = (
    r"(?:buy|purchase|get)\s+(?:\w+\s+){0,4}(?:gift\s*cards?|steam\s+cards?|itunes\s+cards?)|geschenkkarten\s+kaufen"
)
LINK = re.compile(r"https?://|\bwww\.|\b(?:click|klick\w*|klikn\w*|link|odkaz\w*|poveznic\w*)\b", re.IGNORECASE)
ORDER = re.compile(rf"{INJECTION}|\b(?:{GIFT_CARDS})\b", re.IGNORECASE)
LURE = re.compile(rf"\b{ASKED}\b[^.!?\n]{{0,80}}\b{SECRET}\b|\b{SECRET}\b[^.!?\n]{{0,80}}\b{ASKED}\b", re.IGNORECASE)
THREATENED = re.compile(rf"\b{THREAT}\b", re.IGNORECASE)


def find_suspicion(text: str, spans: Iterable[tuple[int, int]]) -> TextEvidence | None:
    """The words by which a text shows that it wants to lead astray; a lure also has a threat and something to click."""
    for start, stop in spans:
        match = ORDER.search(text, start, stop)
        if match is None and THREATENED.search(text, start, stop) and LINK.search(text, start, stop):
            match = LURE.search(text, start, stop)
        if match is not None:
            return TextEvidence(match.start(), match.end(), match[0])
    return None
