"""Compiles lists of phrases, one in a line, into patterns for the folded words of a sentence.

A sentence is matched as its words with one blank between them, signs among them: `could you , please , send it ?`. A
phrase is a regular expression in natural spelling; accents are taken away from it as they are from the sentence. No
phrase begins or ends amid a word, unless it ends with `…`. A line that begins with `+ ` goes on with the line before.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache

from gristmill.models.language.hints.words import FOLDS, UMLAUTS

REST = r"[^.;]*"  # the rest of a clause: `…` behind a blank


def compile_phrases(*lists: str) -> re.Pattern[str]:
    """One pattern for all phrases of these lists."""
    phrases = [phrase for text in lists for phrase in _split_phrases(text)]
    anchored = [_read_phrase(one) for one in phrases if one.startswith("^")]
    free = [_read_phrase(one) for one in phrases if not one.startswith("^")]
    # the beginning of a word is looked for once, not once for each phrase: most characters begin none
    joined = [rf"(?<!\w)(?:{'|'.join(free)})"] if free else []
    return re.compile("|".join([*anchored, *joined]))


def _split_phrases(text: str) -> list[str]:
    lines = "\n".join(line.strip() for line in text.strip().splitlines() if line.strip())
    return lines.replace("\n+ ", "").split("\n")


def compile_by_language(lists: Mapping[str, str]) -> Callable[[str], re.Pattern[str]]:
    """A function that finds the pattern of a language; of an unknown one, the pattern of all phrases.

    A pattern is compiled when it is first asked for. All of them take 0.15 s, and most processes read no mail.
    """

    @cache
    def compile_known(language: str) -> re.Pattern[str]:
        return compile_phrases(*([lists[language]] if language else lists.values()))

    return lambda language: compile_known(language if language in lists else "")


def _read_phrase(phrase: str) -> str:
    if phrase.endswith(" …"):
        phrase, ends = phrase[:-2], rf"\b{REST}"
    elif phrase.endswith("…"):
        phrase, ends = phrase[:-1], ""
    else:
        ends = r"(?!\w)"
    return f"(?:{_fold_phrase(phrase)}){ends}"


def _fold_phrase(phrase: str) -> str:
    """Without accents; a German umlaut may also be two letters."""
    spelt = "".join(f"(?:{one.translate(FOLDS)}|{one.translate(UMLAUTS)})" if one in "äöü" else one for one in phrase)
    return spelt.translate(FOLDS)
