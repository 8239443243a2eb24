"""Asks an LLM: the client, and the extractor that lets an LLM add to the rules' answer."""

from gristmill.models.llm.client import (
    Count,
    ImageBytes,
    Level,
    Llm,
    Message,
    RouterLlm,
    StreamingLlm,
    TokenCount,
    fence_text,
    make_schema,
    say_models,
)
from gristmill.models.llm.extraction import LlmExtractor
from gristmill.models.llm.fake import FakeLlm
from gristmill.models.llm.summary import LlmSummariser

__all__ = [
    "Count",
    "FakeLlm",
    "ImageBytes",
    "Level",
    "Llm",
    "LlmExtractor",
    "LlmSummariser",
    "Message",
    "RouterLlm",
    "StreamingLlm",
    "TokenCount",
    "fence_text",
    "make_schema",
    "say_models",
]
