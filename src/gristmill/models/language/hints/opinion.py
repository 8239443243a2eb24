"""A second opinion on a whole text: whether its writer wants something, and whether something is to be paid.

Rules know phrases; people find new ones. Two small models know pieces of words in four languages instead, and so hear
a wish in words that no rule has. They were trained on the items of `tests/data/qualifier` by
`bench/train_opinion.py`; the weights are data (`wish.bin`, `bill.bin`). The first can only raise: what a rule finds
stays.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from pathlib import Path

from gristmill.models.language.hints.concepts import find_concepts
from gristmill.models.language.hints.sentences import Sentence
from gristmill.models.language.hints.weights import hash_feature, load_weights

WISH, BILL = Path(__file__).with_name("wish.bin"), Path(__file__).with_name("bill.bin")
PIECES = (3, 4, 5)  # characters of a piece of a word
TIMES = 3  # that a concept counts
WHOLE = 3  # letters up to which a word has no pieces
RECEIPT = -2.5  # a margin: few bills lie below it
LONGEST = 120  # words that are weighed together; a longer text is weighed part by part


def weigh_wish(sentences: Sequence[Sentence]) -> tuple[float, Sentence | None]:
    """How surely somebody wants something (above 0: yes), and the sentence that says it most clearly.

    Long texts have many parts, one of which may sound like a wish by chance: each part must say it more clearly.
    """
    model = load_weights(WISH)
    parts = list(_divide(sentences))
    weighed = [(model.weigh(find_features(part)) - (len(parts) > 1), part) for part in parts]
    margin, part = max(weighed, key=lambda one: one[0], default=(-1.0, list[Sentence]()))
    if margin < 0:
        return margin, None
    return margin, max(part, key=lambda one: model.weigh(find_features([one])))


def sounds_like_bill(sentences: Sequence[Sentence]) -> bool:
    """Whether a text that names an amount asks for a payment; as above, the parts of a long one must say it clearly."""
    margins = _weigh_bill(sentences)
    return max(margins, default=-1.0) > (len(margins) > 1)


def sounds_like_receipt(sentences: Sequence[Sentence]) -> bool:
    """Whether it is very sure that no part of a text asks for a payment."""
    return max(_weigh_bill(sentences), default=0.0) < RECEIPT


def _weigh_bill(sentences: Sequence[Sentence]) -> list[float]:
    return [load_weights(BILL).weigh(find_features(part)) for part in _divide(sentences)]


def find_features(sentences: Sequence[Sentence]) -> list[int]:
    """Concepts and their pairs, words, pairs of words, and pieces of words, each as the number of its bucket, once.

    All numbers are one. A concept counts several times: there are few of them beside the many pieces of words.
    """
    words: list[str] = []
    found: set[str] = set()
    for sentence in sentences:
        said = ["0" if one.isdecimal() else one for one in sentence.low.split()]
        found.update(_pair_concepts(said))
        words += said
        if len(words) > LONGEST:
            break
    del words[LONGEST:]
    found.update([f"{one} {other}" for one, other in pairwise(["^", *words, "$"])])
    for word in set(words):
        found.add(word)
        if len(word) > WHOLE:
            edged = f"<{word}>"
            found.update([edged[at : at + size] for size in PIECES for at in range(len(edged) - size + 1)])
    return sorted({hash_feature(one) for one in found})


def _pair_concepts(words: Sequence[str]) -> Iterator[str]:
    """What a sentence means: its concepts, and which of them stand together in it."""
    concepts = sorted({concept for word in words for concept in find_concepts(word)})
    for one in concepts:
        yield from [f"{time} {one}" for time in range(TIMES)]
    for one, other in combinations(concepts, 2):
        yield f"& {one} {other}"
    yield f"first {'+'.join(find_concepts(words[0])) if words else ''}"
    yield f"last {words[-1] if words else ''}"


def _divide(sentences: Sequence[Sentence]) -> Iterator[list[Sentence]]:
    """The sentences in parts that are short enough to be weighed."""
    part: list[Sentence] = []
    length = 0
    for sentence in sentences:
        count = sentence.after - sentence.first
        if part and length + count > LONGEST:
            yield part
            part, length = [], 0
        part.append(sentence)
        length += count
    if part:
        yield part
