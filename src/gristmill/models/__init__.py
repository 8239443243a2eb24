"""The models of the house, each behind a Protocol with a real and a fake implementation."""

from gristmill.models.fakes import FakeLlm
from gristmill.models.llm import Llm, Message, Picture, RouterLlm, TokenCount, schema_of

__all__ = ["FakeLlm", "Llm", "Message", "Picture", "RouterLlm", "TokenCount", "schema_of"]
