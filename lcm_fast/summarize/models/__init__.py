"""Summarisers that ask a language model: one small protocol, and the backends behind it."""

from __future__ import annotations

from .protocol import LanguageModel, ModelAnswer, ModelCall

__all__ = ["LanguageModel", "ModelAnswer", "ModelCall"]
