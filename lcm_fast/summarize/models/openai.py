"""OpenAI's models, and those of every endpoint that speaks its chat completions.

Through the official SDK, which is imported when a model is made. Tries nothing again by itself:
the chain decides about that.
"""

from __future__ import annotations

from typing import Any

from .endpoint import HEADERS, Endpoint, Options, import_sdk, system_prompt
from .protocol import ModelAnswer, ModelCall

__all__ = ["OpenAIModel"]

_OPENAI_HOST = "api.openai.com"


class OpenAIModel:
    """A model behind chat completions.

    Parameters
    ----------
    model
        As the endpoint names it.
    api_key
        Sent to the endpoint, shown nowhere.
    provider
        First part of `name`.
    base_url
        Address of an OpenAI-compatible endpoint, up to and with its version; default OpenAI's own.

    Raises
    ------
    ConfigError
        The extra ``openai`` is not installed.

    Threading: `complete` may be called from several threads at once.
    """

    def __init__(
        self, model: str, *, api_key: str, provider: str = "openai", base_url: str | None = None
    ) -> None:
        sdk = import_sdk("openai")
        self.name = f"{provider}/{model}"
        self._model = model
        self._client: Any = sdk.OpenAI(
            api_key=api_key, base_url=base_url, max_retries=0, default_headers=HEADERS
        )
        self._is_openai = self._client.base_url.host == _OPENAI_HOST
        if not self._is_openai:
            # The SDK takes these from the environment; they are nobody else's business.
            self._client.organization = self._client.project = None
        self._endpoint = Endpoint(self.name, api_key, self._send)

    def complete(self, call: ModelCall) -> ModelAnswer:
        """Return the answer; blocking, as `LanguageModel.complete`."""
        base = {
            "model": self._model,
            "messages": [
                {"role": "system", "content": system_prompt(call)},
                {"role": "user", "content": call.user},
            ],
            "timeout": call.timeout_s,
        }
        forms = [{**base, **form} for form in self._forms(call)]
        return self._endpoint.ask(forms, kind=(call.think, call.json_schema is not None))

    def _forms(self, call: ModelCall) -> list[Options]:
        # OpenAI's reasoning models know the new name alone, most other endpoints the old one.
        limits = ["max_completion_tokens", "max_tokens"]
        preferred, other = limits if self._is_openai else reversed(limits)
        extras: dict[str, Any] = {}
        if call.think:
            extras["reasoning_effort"] = "low"
        if call.json_schema is not None:
            schema = {"name": "answer", "schema": call.json_schema}
            extras["response_format"] = {"type": "json_schema", "json_schema": schema}
        plain: list[Options] = [{preferred: call.max_tokens}, {other: call.max_tokens}]
        return [{preferred: call.max_tokens, **extras}, *plain] if extras else plain

    def _send(self, options: Options) -> bytes:
        response = self._client.chat.completions.with_raw_response.create(**options)
        body: bytes = response.http_response.content
        return body
