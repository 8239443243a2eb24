"""Makes articles that nobody asks for, in the manner of those that are asked for: noise for `bench/ask.py`."""
# ruff: noqa: E501, SIM905 sentences and lists of words are easier to read whole

import random
from collections.abc import Callable

BEGINNINGS = "Al Ber Cor Dal El Fen Gar Hol Ib Jor Kal Lan Mar Nor Ol Per Quin Ros Sar Tor Ul Ver Wes Yor Zel".split()
MIDDLES = "a e i o u an en in on ar er or el il ath eth ost ask ell orr".split()
ENDINGS = "ric ton ley sen berg vik mond wick dale holm stad mere ford garth lund ova ani ello oux ham".split()
FIRST = "Ada Bruno Clara Dirk Edith Felix Greta Hugo Irma Jens Klara Lukas Mina Nora Otto Petra Rolf Sonja Tilda Viktor".split()
PEOPLES = "Danish Finnish Hungarian Portuguese Frisian Polish Irish Estonian Belgian Swiss Norwegian Czech".split()
GENRES = "drama comedy thriller documentary western musical romance war".split()
TRADES = "carpenter pharmacist sailor teacher watchmaker botanist printer surveyor baker glazier".split()
PASTIMES = "chess gliding beekeeping fencing pottery sailing birdwatching calligraphy skiing falconry".split()
SUBJECTS = "tides prime numbers glaciers dialects meteorites enzymes bridges vowels peat lichens".split()
BEASTS = "ponies goats bees falcons sheep dogs pigeons trout alpacas geese".split()

Article = tuple[str, str]


class Noise:
    """Writes articles with a random generator of its own: the same number gives the same articles."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)

    def place(self) -> str:
        return self.r.choice(BEGINNINGS) + self.r.choice(MIDDLES) + self.r.choice(ENDINGS)

    def person(self) -> str:
        return f"{self.r.choice(FIRST)} {self.place()}"

    def year(self, least: int = 1820, most: int = 2000) -> int:
        return self.r.randint(least, most)

    def film(self) -> list[Article]:
        title, director, composer = (
            f"The {self.place()} {self.r.choice(('Road', 'Window', 'Harvest', 'Tide', 'Clock'))}",
            self.person(),
            self.person(),
        )
        year = self.year(1930, 2010)
        return [
            (
                title,
                f"{title} is a {year} {self.r.choice(GENRES)} film directed by {director}. It tells of a {self.r.choice(TRADES)} in {self.place()}. The score was composed by {composer}.",
            ),
            (
                director,
                f"{director} ({year - self.r.randint(25, 60)}–{year + self.r.randint(5, 40)}) was a {self.r.choice(PEOPLES)} film director. Before turning to film, {director.split()[0]} studied in {self.place()} and worked as a {self.r.choice(TRADES)}.",
            ),
            (
                composer,
                f"{composer} is a {self.r.choice(PEOPLES)} composer, born in {self.place()}. For {self.r.randint(3, 30)} years {composer.split()[0]} was organist of the cathedral of {self.place()}.",
            ),
        ]

    def town(self) -> list[Article]:
        town, founder, river, mountain = self.place(), self.person(), self.place(), f"Mount {self.place()}"
        return [
            (
                town,
                f"{town} is a town on the river {river} with {self.r.randint(2, 90)},{self.r.randint(100, 999)} inhabitants. Its mill was founded in {self.year()} by {founder}.",
            ),
            (
                founder,
                f"{founder} was an industrialist, born in {self.place()}. In old age {founder.split()[0]} took up {self.r.choice(PASTIMES)}.",
            ),
            (
                river,
                f"The {river} is a river of {self.r.randint(40, 400)} kilometres. It rises on {mountain} and flows into the Bay of {self.place()}.",
            ),
            (
                mountain,
                f"{mountain} is a mountain of {self.r.randint(1, 4)},{self.r.randint(100, 999)} metres. It was first climbed in {self.year()} by the {self.r.choice(TRADES)} {self.person()}.",
            ),
        ]

    def band(self) -> list[Article]:
        band, writer = (
            f"The {self.place()} {self.r.choice(('Wrens', 'Lanterns', 'Brothers', 'Quartet'))}",
            self.person(),
        )
        return [
            (
                band,
                f"{band} were a folk band from {self.place()}, active from {self.year(1950, 1980)} on. Their best-known song, {self.place()} Lane, was written by {writer}.",
            ),
            (
                writer,
                f"{writer} is a songwriter. After the band broke up, {writer.split()[0]} bred {self.r.choice(BEASTS)} near {self.place()}.",
            ),
        ]

    def company(self) -> list[Article]:
        company, seat, founder = f"{self.place()} Works", self.place(), self.person()
        return [
            (
                company,
                f"{company} is a maker of cranes with its seat in {seat}. It was founded in {self.year()} by {founder} and employs {self.r.randint(2, 90)}00 people.",
            ),
            (
                founder,
                f"{founder} was an engineer who designed the bridge of {self.place()}. A pastime was {self.r.choice(PASTIMES)}.",
            ),
        ]

    def scholar(self) -> list[Article]:
        name, university = self.person(), f"University of {self.place()}"
        return [
            (
                name,
                f"{name} was a scholar who wrote a doctoral thesis on {self.r.choice(SUBJECTS)} and taught at the {university}.",
            ),
            (
                university,
                f"The {university} was founded in {self.year(1400, 1900)} by {self.person()}. It has a botanical garden.",
            ),
        ]


def make_noise(count: int, seed: int = 7) -> list[Article]:
    """So many articles, each title once."""
    noise = Noise(seed)
    kinds: list[Callable[[], list[Article]]] = [noise.film, noise.town, noise.band, noise.company, noise.scholar]
    found: dict[str, str] = {}
    while len(found) < count:
        found |= dict(noise.r.choice(kinds)())
    return list(found.items())[:count]
