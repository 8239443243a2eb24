"""The names of the months, in all cases in which a date may have them, and the shape of a whole date."""

import re

NAMES = """
january jan januar jänner jaenner janvier enero gennaio ledna leden lednu lednem siječnja siječanj siječnju januara
february feb februar feber février fevrier febrero febbraio února únor únoru únorem veljače veljača veljači februara
march mar märz maerz mars marzo března březen březnu březnem ožujka ožujak ožujku marta
april apr avril abril aprile dubna duben dubnu dubnem travnja travanj travnju aprila
may mai mayo maggio května květen květnu květnem svibnja svibanj svibnju maja
june jun juni juin junio giugno června červen červnu červnem lipnja lipanj lipnju juna
july jul juli juillet julio luglio července červenec červenci červencem srpnja srpanj srpnju jula
august aug août aout agosto srpna srpen srpnu srpnem kolovoza kolovoz kolovozu augusta
september sep sept septembre septiembre settembre září zářím rujna rujan rujnu septembra
october oct oktober okt octobre octubre ottobre října říjen říjnu říjnem listopada oktobra
november nov novembre noviembre listopadu listopad listopadem studenoga studenog studeni studenom novembra
december dec dezember dez décembre decembre diciembre dicembre prosince prosinec prosinci prosincem prosinca prosinac
"""
MONTHS = {name: number for number, line in enumerate(NAMES.strip().splitlines(), 1) for name in line.split()}
CROATIAN = {"listopad": 10, "listopadu": 10}  # the same words are November in Czech
MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
DATE = re.compile(
    rf"(?<![\w.-])(?:(?P<y1>\d{{4}})-(?P<m1>\d\d)-(?P<d1>\d\d)(?![\w-])"
    rf"|(?P<d2>\d{{1,2}})(?:st|nd|rd|th|\.)?\s(?:of\s)?(?P<n2>{MONTH})\b\.?,?\s(?P<y2>\d{{4}})\b"
    rf"|(?P<n3>{MONTH})\b\.?\s(?P<d3>\d{{1,2}})(?:st|nd|rd|th)?,?\s(?P<y3>\d{{4}})\b"
    rf"|(?P<n4>{MONTH})\b\.?\s(?P<y4>\d{{4}})\b"
    rf"|(?P<d5>\d{{1,2}})\.\s?(?P<m5>\d{{1,2}})\.\s?(?P<y5>\d{{4}})(?!\d)"
    rf"|(?P<a6>\d{{1,2}})/(?P<b6>\d{{1,2}})/(?P<y6>\d{{4}})(?![\d/]))",
    re.IGNORECASE,
)
