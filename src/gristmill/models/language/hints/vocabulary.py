"""The words of the calendar in English, German, Czech and Croatian: months, weekdays, numbers, units of time."""

from gristmill.models.language.hints.words import UMLAUTS, Words, fold, spell, spell_table
from gristmill.models.language.months import CROATIAN, MONTHS

SLAVIC = ("cs", "hr")
MONTH_NUMBERS = {fold(name): number for name, number in MONTHS.items()} | {
    fold(name.translate(UMLAUTS)): number for name, number in MONTHS.items()
}
ENGLISH_MONTHS = spell(
    """january jan february feb march mar april apr may june jun july jul august aug september sep sept october oct
    november nov december dec"""
)
WEEKDAYS = {
    "en": spell_table(dict(enumerate("monday tuesday wednesday thursday friday saturday sunday".split()))),  # noqa: SIM905
    "de": spell_table({
        0: "montag", 1: "dienstag", 2: "mittwoch", 3: "donnerstag", 4: "freitag", 5: "samstag sonnabend", 6: "sonntag",
    }),
    "cs": spell_table({
        0: "pondělí pondělím pondělka pondělek", 1: "úterý úterým úterka úterek",
        2: "středa středu středy středě středou",
        3: "čtvrtek čtvrtka čtvrtku čtvrtkem", 4: "pátek pátku pátkem", 5: "sobota sobotu soboty sobotě",
        6: "neděle neděli nedělí",
    }),
    "hr": spell_table({
        0: "ponedjeljak ponedjeljka ponedjeljku", 1: "utorak utorka utorku", 2: "srijeda srijedu srijede srijedi",
        3: "četvrtak četvrtka četvrtku", 4: "petak petka petku", 5: "subota subotu subote suboti",
        6: "nedjelja nedjelju nedjelje nedjelji",
    }),
}  # fmt: skip
SHORT_WEEKDAYS = {  # they say nothing by themselves: sat, sun, do and so are words, too
    "en": spell_table({0: "mon", 1: "tue tues", 2: "wed weds", 3: "thu thur thurs", 4: "fri", 5: "sat", 6: "sun"}),
    "de": spell_table({0: "mo", 1: "di", 2: "mi", 3: "do", 4: "fr", 5: "sa", 6: "so"}),
    "cs": spell_table({0: "po", 1: "út", 2: "st", 3: "čt", 4: "pá", 5: "so", 6: "ne"}),
    "hr": spell_table({0: "pon", 1: "uto", 2: "sri", 3: "čet", 4: "pet", 5: "sub", 6: "ned"}),
}
ALL_SHORT_WEEKDAYS = frozenset(word for words in SHORT_WEEKDAYS.values() for word in words)
PARTS_OF_DAY = spell(
    """morning afternoon evening night früh morgen vormittag mittag nachmittag abend nacht vormittags nachmittags
    abends ráno dopoledne odpoledne večer noc ujutro prijepodne poslijepodne popodne navečer"""
)
GERMAN_PARTS = ("morgen", "vormittag", "mittag", "nachmittag", "abend", "fruh", "frueh", "nacht")

NUMBERS = spell_table({
    1: "one ein eine einer einem einen eines jedna jedno jednoho jednom jedné jednu jedan jednog jednoga",
    2: "two zwei zweier dva dvě dvou dvěma dvije dvaju", 3: "three drei dreier tři tří třech třemi tri",
    4: "four vier čtyři čtyř čtyřech četiri", 5: "five fünf pět pěti pet", 6: "six sechs šest šesti",
    7: "seven sieben sedm sedmi sedam", 8: "eight acht osm osmi osam", 9: "nine neun devět devíti devet",
    10: "ten zehn deset deseti", 11: "eleven elf jedenáct jedenácti jedanaest",
    12: "twelve zwölf dvanáct dvanácti dvanaest",
    14: "fourteen vierzehn čtrnáct čtrnácti četrnaest", 15: "fifteen fünfzehn patnáct patnácti petnaest",
    20: "twenty zwanzig dvacet dvaceti dvadeset", 21: "einundzwanzig", 28: "achtundzwanzig", 24: "vierundzwanzig",
    30: "thirty dreißig třicet třiceti trideset", 45: "fünfundvierzig", 48: "achtundvierzig",
    60: "sixty sechzig šedesát šedesáti šezdeset", 90: "ninety neunzig devadesát devadesáti devedeset",
})  # fmt: skip
HOUR, DAY, WORKDAY, WEEK, FORTNIGHT, MONTH, YEAR = range(7)
UNITS = spell_table({
    HOUR: "hour hours hrs hr h std stunde stunden hodina hodinu hodiny hodin hod sat sata sati",
    DAY: "day days tag tage tagen den dne dny dní dnů dnech dan dana danima kalendertage kalendertagen",
    WORKDAY: "workday workdays werktag werktage werktagen arbeitstag arbeitstage arbeitstagen werktages arbeitstages",
    WEEK: "week weeks woche wochen týden týdne týdny týdnů týdnech týdnem tjedan tjedna tjedana tjednima",
    FORTNIGHT: "fortnight fortnights",
    MONTH: "month months monat monate monaten monats měsíc měsíce měsíců měsících měsícem mjesec mjeseca mjeseci",
    YEAR: "year years jahr jahre jahren rok roku roky let lety godina godine godinu godinama",
})  # fmt: skip
WORKING = spell("business working work bank banking pracovní pracovních pracovního radnih radna radni radnog")
ORDINARY = spell("calendar full kalendářních kalendářní kalendarskih kalendarska more further weiteren dalších")

FIRST_ORDINALS = spell_table({
    1: "first ersten erster prvního prvog prvoga", 2: "second zweiten druhého drugog",
    3: "third dritten třetího trećeg",
    4: "fourth vierten čtvrtého četvrtog", 5: "fifth fünften pátého petog", 6: "sixth sechsten šestého šestog",
    7: "seventh siebten sedmého sedmog", 8: "eighth achten osmého osmog", 9: "ninth neunten devátého devetog",
    10: "tenth zehnten desátého desetog", 11: "eleventh elften jedenáctého jedanaestog",
    12: "twelfth zwölften dvanáctého dvanaestog", 13: "thirteenth dreizehnten třináctého trinaestog",
    14: "fourteenth vierzehnten čtrnáctého četrnaestog", 15: "fifteenth fünfzehnten patnáctého petnaestog",
    16: "sixteenth sechzehnten šestnáctého šesnaestog",
    17: "seventeenth siebzehnten sedmnáctého sedamnaestog", 18: "eighteenth achtzehnten osmnáctého osamnaestog",
    19: "nineteenth neunzehnten devatenáctého devetnaestog", 20: "twentieth zwanzigsten dvacátého dvadesetog",
    30: "thirtieth dreißigsten třicátého tridesetog", 31: "einunddreißigsten",
})  # fmt: skip


def find_month(low: str, language: str) -> int | None:
    """The number of the month that a word names."""
    if language == "hr" and low in CROATIAN:
        return CROATIAN[low]
    return MONTH_NUMBERS.get(low)


def find_weekday(words: Words, place: int, language: str) -> int | None:
    """The weekday that a word names (Monday is 0). Without its accent a word counts only in its own language."""
    low = words.low(place)
    for own, names in WEEKDAYS.items():
        if low in names:
            return names[low] if _is_meant(words, place, own, language) else None
    if language in ("de", ""):
        for name, number in WEEKDAYS["de"].items():
            if low.startswith(name) and low[len(name) :] in GERMAN_PARTS:
                return number
    return None


def _is_meant(words: Words, place: int, own: str, language: str) -> bool:
    """Whether a word is meant as the weekday of its language: a Patek is a watch, patku a duck."""
    written = words.read_word(place)
    if own in ("en", "de") or own == language or not written.isascii():
        return True
    if language and language not in SLAVIC:
        return False
    return written.lower() not in PLAIN or words.low(place - 1) in BEFORE_WEEKDAYS


PLAIN = frozenset(
    {"patek", "patku", "streda", "stredu", "stredy", "utery", "ctvrtek", "nedele", "nedeli"}
)  # no accents
BEFORE_WEEKDAYS = spell("do v ve na od ode u k")
