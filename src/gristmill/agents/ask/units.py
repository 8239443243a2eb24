"""Units and multiples behind numbers, so that 5 g is not 5 mg, 5 km is 5,000 m, and 5 million is no 5."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

# For each thing that is measured: how much of its first unit a unit is, and how people write it. Spellings of three
# letters or fewer keep their case (MW is no mW). A star stands for any ending: Kilometern, kilometrů. Left out is what
# is an ordinary word as well: in, an, s, den.
DIMENSIONS = {
    "mass": """1 g gram* | 1000 kg kilos kilogram* | 0.001 mg milligram* miligram* | 1000000 t tonne* tons
        | 0.000001 µg μg mcg microgram* mikrogram* | 453.59237 lb lbs | 28.349523125 oz ounce*""",
    "length": """1 m meter* metre* mètre* metry metrů metros metar* | 1000 km kilomet* kilómet*
        | 0.01 cm centimet* zentimet* centímet* | 0.001 mm millimet* milimet* milímet*
        | 0.000001 µm μm micromet* mikromet* microns | 0.000000001 nm nanomet*
        | 1609.344 mi mile miles meile* milles millas milja milje | 0.9144 yd yards | 0.3048 ft foot feet
        | 0.0254 inch inches zoll""",
    "volume": """1 l L liter* litre* litro* litr* | 0.001 ml mL millilit* mililit* | 0.01 cl | 0.1 dl decilit*
        | 100 hl hectolit* hektolit* | 3.785411784 gal gallon* | 1000 m³ m3""",
    "area": "1 m² m2 | 1000000 km² km2 | 10000 ha hectare* hektar* | 4046.8564224 acre acres",
    "time": """1 sec second seconds sekund* seconde* segundo* | 60 min mins minute minutes minut* minuto*
        | 3600 h hr hrs hour hours stunde* heure* horas hodin* sati
        | 86400 day days tage tagen jour jours días dny dní dana
        | 604800 week weeks woche* semaine* semana* týden týdn* tjedan tjed*""",
    "months": """1 month months monat monate monaten mois meses měsíc* mjesec*
        | 12 year years yr yrs jahr jahre jahren année* año años rok roky roků godin*""",
    "celsius": "1 °C celsius",
    "fahrenheit": "1 °F fahrenheit",
    "angle": "1 ° degree degrees grad degré* grado* stup*",
    "power": "1 W watt watts | 1000 kW kilowatt* | 1000000 MW megawatt* | 1000000000 GW gigawatt*",
    "energy": "1 Wh | 1000 kWh kilowattstunde* | 1000000 MWh | 1000000000 GWh",
    "data": """1 byte bytes | 1000 kB KB kilobyte* | 1000000 MB megabyte* | 1000000000 GB gigabyte*
        | 1000000000000 TB terabyte*""",
    "voltage": "1 V volt volts | 1000 kV kilovolt* | 0.001 mV millivolt*",
    "pressure": "1 Pa pascal* | 100 hPa hectopascal* | 1000 kPa | 100000 bar bars | 100 mbar millibar*",
    "frequency": "1 Hz hertz | 1000 kHz | 1000000 MHz | 1000000000 GHz",
}
MULTIPLES = (
    ("1000", "thousand tausend tisíc* tisuć*"),
    ("1000000", "million millions millionen mio milion* milijun* millón millones"),
    ("1000000000", "billion billions milliarde* milliard milliards mrd miliard* milijard*"),
)
SHORT = 3  # letters of a symbol


@dataclass(frozen=True, slots=True)
class MeasureUnit:
    """What is measured, and how many of its first unit this one is."""

    dimension: str
    factor: Decimal


@dataclass(frozen=True, slots=True)
class Spelling:
    """One way to write a unit."""

    text: str
    has_endings: bool
    unit: MeasureUnit

    @property
    def pattern(self) -> str:
        body = re.escape(self.text) + (r"\w*" if self.has_endings else "")
        return body if len(self.text) <= SHORT else f"(?i:{body})"

    def fits(self, written: str) -> bool:
        if len(self.text) <= SHORT:
            return written == self.text
        word = written.casefold()
        return word.startswith(self.text) if self.has_endings else word == self.text


def _read_spellings() -> Iterator[Spelling]:
    for dimension, units in DIMENSIONS.items():
        for one in units.split("|"):
            factor, *spellings = one.split()
            unit = MeasureUnit(dimension, Decimal(factor))
            yield from (Spelling(word.rstrip("*"), word.endswith("*"), unit) for word in spellings)


SPELLINGS = sorted(_read_spellings(), key=lambda one: len(one.text), reverse=True)  # km is looked for before m
UNIT = re.compile(
    rf"[-\s]?(?P<unit>{'|'.join(one.pattern for one in SPELLINGS)})(?![\w'’-])"
    r"(?:\s?/\s?(?P<by>\w+)|\s(?:per|pro|par|por|za)\s(?P<each>\w+))?"
)
MULTIPLIERS = {
    word.rstrip("*"): Decimal(factor) for factor, spellings in MULTIPLES for word in spellings.split()
}  # by how they begin: milionů
MULTIPLE = re.compile(rf"\s(?P<word>(?:{'|'.join(MULTIPLIERS)})\w*)\.?", re.IGNORECASE)


def read_unit(text: str, at: int) -> tuple[MeasureUnit, int] | None:
    """The unit that stands here, and where it ends."""
    match = UNIT.match(text, at)
    unit = _find_unit(match["unit"]) if match else None
    if match is None or unit is None:
        return None
    if other := match["by"] or match["each"]:
        per = _find_unit(other)
        unit = MeasureUnit(
            f"{unit.dimension} per {f'{per.factor} {per.dimension}' if per else other.casefold()}", unit.factor
        )
    return unit, match.end()


def _find_unit(written: str) -> MeasureUnit | None:
    return next((one.unit for one in SPELLINGS if one.fits(written)), None)


def read_multiple(text: str, at: int) -> tuple[Decimal, int] | None:
    """By how much the word behind a number multiplies it, and where that word ends: 5 million."""
    match = MULTIPLE.match(text, at)
    if match is None:
        return None
    word = match["word"].casefold()
    return MULTIPLIERS[max((one for one in MULTIPLIERS if word.startswith(one)), key=len)], match.end()
