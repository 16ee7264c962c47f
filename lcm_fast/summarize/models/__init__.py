"""Summarisers that ask a language model: one small protocol, and the backends behind it.

`chain` puts models one after the other; it is imported from its own module.
"""

from __future__ import annotations

from .anthropic import AnthropicModel
from .command import CommandModel
from .openai import OpenAIModel
from .protocol import LanguageModel, ModelAnswer, ModelCall

__all__ = [
    "AnthropicModel",
    "CommandModel",
    "LanguageModel",
    "ModelAnswer",
    "ModelCall",
    "OpenAIModel",
]
