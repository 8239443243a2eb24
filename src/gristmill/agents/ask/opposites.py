"""Words that are the opposite of others: each axis has poles, and a word of one pole denies every word of another."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from gristmill.agents.ask.words import Term, read_terms, stem
from gristmill.knowledge import fold

# An axis is a line; “/” stands between its poles. Irregular forms are listed, the others have the same stem.
AXES = {
    "en": """
        increase raise rise rose risen grow grew grown growth higher climb surge boost double
            / decrease reduce reduction lower fall fell fallen drop decline shrink shrank shrunk diminish halve
        more / less fewer
        accept approve / reject refuse
        agree / disagree refuse
        win won / lose lost
        open / close shut
        start begin began begun / end stop finish
        allow permit / forbid forbidden prohibit ban
        include / exclude
        true / false
        success succeed pass / failure fail
        earlier / later
        early / late
        buy bought / sell sold
        import / export
        enable / disable
        add / remove
        present / absent
        alive / dead
        male / female
        hot / cold
        older / younger
        larger bigger largest biggest / smaller smallest
        longer / shorter
        heavier / lighter
        faster / slower
        positive / negative
        upregulate activate promote / downregulate inhibit
        gain profit / loss
        credit / debit
        safe / dangerous
        public / private
        internal inner / external outer
        minimum / maximum
        arrive / leave depart
        strong / weak
        cheaper / dearer costlier
        extend lengthen prolong / shorten
        buyer / seller
        creditor / debtor
        employer / employee""",
    "de": """
        erhöhen erhöht steigern gesteigert steigen steigt stieg stiegen gestiegen wachsen wächst wuchs wuchsen gewachsen
            zunehmen zugenommen anheben angehoben höher
            / senken senkt senkte gesenkt sinken sinkt sank sanken gesunken fallen fällt fiel fielen gefallen verringern
            verringert reduzieren reduziert abnehmen abgenommen schrumpfen geschrumpft niedriger
        mehr / weniger
        annehmen angenommen akzeptiert genehmigt / ablehnen abgelehnt abgewiesen
        geöffnet öffnet offen / geschlossen schließt
        gewonnen gewann / verloren verlor
        beginnt begann begonnen / endet endete beendet
        gekauft kaufte kauft / verkauft verkaufte
        erlaubt / verboten
        früher / später
        verlängert / verkürzt
        käufer / verkäufer
        länger / kürzer
        größer / kleiner
        älter / jünger
        schwerer / leichter
        schneller / langsamer
        positiv / negativ
        öffentlich / privat
        gewinn / verlust
        sicher / gefährlich""",
    "cs": """
        zvýšit zvýšil zvýšila zvýšilo zvýšily zvýšen zvyšuje zvyšují roste rostl rostla vzrostl vzrostla vzrostly stoupl
            stoupla stouply stoupá vyšší
            / snížit snížil snížila snížilo snížily snížen snižuje snižují klesl klesla kleslo klesly klesá nižší
        více víc / méně míň
        přijal přijala přijat přijata schválil schválila schválen schválena
            / odmítl odmítla odmítnut odmítnuta zamítl zamítla zamítnut zamítnuta
        otevřen otevřena otevřel otevřela / zavřen zavřena zavřel zavřela uzavřen uzavřena
        vyhrál vyhrála / prohrál prohrála
        koupil koupila / prodal prodala
        povolen povoleno / zakázán zakázáno
        dříve / později
        delší / kratší
        větší / menší
        starší / mladší
        rychlejší / pomalejší
        zisk / ztráta
        bezpečný bezpečné / nebezpečný nebezpečné""",
    "hr": """
        povećava povećavaju povećao povećala povećalo povećali povećati raste rastu rastao porastao porasla porasli viši
            / smanjuje smanjuju smanjio smanjila smanjili smanjiti snižava snizio snizila pao pala palo pali opada niži
        više / manje
        prihvatio prihvatila prihvaćen odobrio odobrila odobren / odbio odbila odbijen
        otvoren otvorena otvorio otvorila / zatvoren zatvorena zatvorio zatvorila
        pobijedio pobijedila / izgubio izgubila
        kupio kupila / prodao prodala
        dopušten dozvoljen dopušteno dozvoljeno / zabranjen zabranjeno
        ranije / kasnije
        duži / kraći
        veći / manji
        stariji / mlađi
        brži / sporiji
        dobit dobitak / gubitak
        siguran sigurno / opasan opasno""",
}
# Words that say which one of several is meant, and count with the word that they stand by: the left bearing.
CHOICES = {
    "en": """
        first / second / third / fourth / fifth / last final
        left / right
        new / old
        upper top / lower bottom
        north northern / south southern / east eastern / west western""",
    "de": """
        erste ersten erster erstes / zweite zweiten zweiter zweites / dritte dritten dritter drittes
            / vierte vierten vierter / letzte letzten letzter letztes
        neue neuer neues neuen neuem / alte alter altes alten altem
        linke linken linker linkes links / rechte rechten rechter rechtes rechts
        obere oberen oberer / untere unteren unterer
        nördlich nördliche nördlichen / südlich südliche südlichen / östlich östliche östlichen
            / westlich westliche westlichen""",
    "cs": """
        první / druhý druhá druhé druhého druhou / třetí / čtvrtý čtvrtá čtvrté / poslední
        nový nová nové novou nového / starý stará staré starou starého
        levý levá levé levého levou / pravý pravá pravé pravého pravou
        horní / dolní spodní
        severní / jižní / východní / západní""",
    "hr": """
        prvi prva prvo prvog prvu / drugi druga drugo drugog drugu / treći treća treće / četvrti četvrta
            / posljednji posljednja zadnji zadnja
        novi nova novo novu novog / stari stara staro staru starog
        lijevi lijeva lijevo lijevog lijevu / desni desna desno desnog desnu
        gornji gornja gornje / donji donja donje
        sjeverni sjeverna / južni južna / istočni istočna / zapadni zapadna""",
}
SLAVIC = ("cs", "sk", "pl", "hr", "sl", "sr", "bs")
PREFIXES = ("un", "in", "im", "il", "ir", "dis", "non")
NEAR = 3  # telling words on each side that a word has to do with
APART = re.compile(
    r"[,;:()–—]|\b(?:but|while|whereas|although|when|aber|sondern|während|obwohl|ale|ali)\b", re.IGNORECASE
)

Pole = tuple[str, int, int]  # the language, the axis, and its side


def _read_axes(table: Mapping[str, str]) -> Mapping[str, Mapping[str, frozenset[Pole]]]:
    """For each language the poles of its words, by their folded spelling and by their stem."""
    found: dict[str, dict[str, frozenset[Pole]]] = {}
    for language, text in table.items():
        known = found.setdefault(language, {})
        joined = re.sub(r"\n\s*/", " /", re.sub(r"\n {12}(?! |/)", " ", text))
        for axis, line in enumerate(joined.strip().splitlines()):
            for side, words in enumerate(line.split("/")):
                for key in {key for word in words.split() for key in (fold(word), stem(word, language))}:
                    known[key] = known.get(key, frozenset()) | {(language, axis, side)}
    return found


POLES, CHOSEN = _read_axes(AXES), _read_axes(CHOICES)


def find_poles(table: Mapping[str, Mapping[str, frozenset[Pole]]], term: Term, language: str | None) -> frozenset[Pole]:
    """The poles of a word; where its language is not known, or has no list, those of English."""
    known = table.get(language or "en", table["en"])
    found = known.get(fold(term.text)) or known.get(term.term)
    return found or (frozenset() if language else known.get(stem(term.text, "en"), frozenset()))


def are_apart(one: frozenset[Pole], other: frozenset[Pole]) -> bool:
    return any(a[:2] == b[:2] and a[2] != b[2] for a in one for b in other)


def are_opposite(one: Term, other: Term, language: str | None) -> bool:
    """Whether two words deny each other: increase and fall, complete and incomplete, podepsal and nepodepsal."""
    if are_apart(find_poles(POLES, one, language), find_poles(POLES, other, language)):
        return True
    short, long = sorted((one.term, other.term), key=len)
    if len(short) < 4 or short == long:
        return False
    prefixes = ("ne", "nie") if language in SLAVIC else PREFIXES
    return any(long == prefix + short for prefix in prefixes)


def find_opposite(claim: str, text: str, language: str | None, spoken: str | None) -> tuple[Term, Term] | None:
    """A word of the claim and its opposite in a text that says it of the same thing and has no word like it."""
    ours, theirs = read_terms(claim, language), read_terms(text, spoken)
    own, there = {one.term for one in ours}, {one.term for one in theirs}
    for term in ours:
        if term.term in there:
            continue
        poles = find_poles(POLES, term, language)
        beside = [other for n, other in enumerate(theirs) if _find_neighbours(text, theirs, n) & own]
        if any(poles & find_poles(POLES, other, spoken) for other in beside):
            continue
        for other in beside:
            if other.term not in own and are_opposite(term, other, spoken):
                return term, other
    return None


def _find_neighbours(text: str, terms: tuple[Term, ...], at: int) -> set[str]:
    """The telling words around one, as far as its clause goes."""
    return {
        one.term
        for n, one in enumerate(terms)
        if 0 < abs(n - at) <= NEAR and not APART.search(text, *sorted((one.stop, terms[at].stop)))
    }


def find_other_choice(claim: str, text: str, language: str | None, spoken: str | None) -> tuple[str, str] | None:
    """The left bearing, where the text only speaks of the right bearing."""
    ours, there = read_choices(claim, language), read_choices(text, spoken)
    for written, poles, thing in ours:
        same = [one for one in there if one[2] == thing]
        if any(poles & other for _, other, _ in same):
            continue
        own = frozenset[Pole]().union(*(others for _, others, other in ours if other == thing))
        for other, others, _ in same:
            if are_apart(poles, others) and not own & others:
                return written, other
    return None


@lru_cache(maxsize=2_048)
def read_choices(text: str, language: str | None) -> tuple[tuple[str, frozenset[Pole], str], ...]:
    return tuple(_find_choices(text, language))


def _find_choices(text: str, language: str | None) -> Iterator[tuple[str, frozenset[Pole], str]]:
    """Each word that chooses, its poles, and what it chooses: the next telling word, or the last one at the end."""
    terms = read_terms(text, language)
    for n, term in enumerate(terms):
        if poles := find_poles(CHOSEN, term, language):
            axes = {one[:2] for one in poles}
            following = (
                one for one in terms[n + 1 :] if not axes & {pole[:2] for pole in find_poles(CHOSEN, one, language)}
            )
            before = terms[n - 1].term if n else ""
            yield term.text, poles, next((one.term for one in following), before)
