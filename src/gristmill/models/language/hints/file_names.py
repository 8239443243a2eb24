"""Leaves the names of files out of sentences: by the name of a file, nobody asks for anything."""

import re
from collections.abc import Iterator, Sequence

from gristmill.models.language.hints.sentences import Sentence
from gristmill.models.language.hints.words import Words

Span = tuple[int, int]
SUFFIX = re.compile(
    r"\.(?:pdf|docx?|odt|rtf|xlsx?|ods|csv|tsv|pptx?|odp|txt|md|rst|tex|html?|xml|json|ya?ml|toml|ini|sql|log|eml|msg|"
    r"ics|vcf|png|jpe?g|gif|tiff?|bmp|webp|svg|heic|mp[34]|wav|mov|avi|zip|gz|bz2|xz|7z|rar|tar|py|js|tsx?|java|cpp|"
    r"php|rb|rs|sh|css)(?!\w)",
    re.IGNORECASE,
)
OPENING = {'"': '"', "”": "“„", "“": "„“", "’": "‘‚", "'": "'", "»": "«", "«": "»", "`": "`"}  # of a closing sign
BLANKS = " \t\r\n\u00a0"


def leave_out_files(words: Words, sentences: Sequence[Sentence], named: Sequence[Span]) -> list[Sentence]:
    """The sentences without the names of files in them; one that is nothing else is left out.

    `named` are places that are known to be names of files: these may have blanks, and need no suffix.
    """
    kept: list[Sentence] = []
    for one in sentences:
        files = [
            *_find_files(words.text, one.start, one.stop),
            *(span for span in named if span[0] < one.stop and one.start < span[1]),
        ]
        low = _spell_without(words, one, files) if files else one.low
        if low:
            kept.append(one._replace(low=low))
    return kept


def drop_file_names(text: str) -> str:
    """A sentence as it is written, without the names of files in it."""
    files = list(_find_files(text, 0, len(text)))
    return "".join(sign for at, sign in enumerate(text) if not any(start <= at < stop for start, stop in files))


def _find_files(text: str, start: int, stop: int) -> Iterator[Span]:
    """From the suffix of a file back to the blank before it, or to the quotation mark that opens its name."""
    for match in SUFFIX.finditer(text, start, stop):
        blank = max(text.rfind(sign, start, match.start()) for sign in BLANKS)
        signs = OPENING.get(text[match.end() : match.end() + 1], "")
        quoted = max((text.rfind(sign, start, match.start()) for sign in signs), default=-1)
        yield max(start, blank + 1 if quoted < 0 else quoted), match.end()


def _spell_without(words: Words, sentence: Sentence, files: Sequence[Span]) -> str:
    """The folded words outside these places; empty if only signs are left."""
    said = [words[place] for place in range(sentence.first, sentence.after)]
    left = [one.low for one in said if not any(start <= one.start < stop for start, stop in files)]
    return " ".join(left) if any(low.isalnum() for low in left) else ""
