"""Anthropic's models.

Through the official SDK, which is imported when a model is made. Tries nothing again by itself:
the chain decides about that.
"""

from __future__ import annotations

from typing import Any

from .endpoint import HEADERS, Endpoint, Options, import_sdk, system_prompt
from .protocol import ModelAnswer, ModelCall

__all__ = ["AnthropicModel"]

_LEAST_THINKING_TOKENS = 1024


class AnthropicModel:
    """A model behind Anthropic's messages.

    Parameters
    ----------
    model
        As Anthropic names it.
    api_key
        Sent to the endpoint, shown nowhere.
    base_url
        Address of another endpoint that speaks the same; default Anthropic's own.

    Raises
    ------
    ConfigError
        The extra ``anthropic`` is not installed.

    Threading: `complete` may be called from several threads at once.
    """

    def __init__(self, model: str, *, api_key: str, base_url: str | None = None) -> None:
        sdk = import_sdk("anthropic")
        self.name = f"anthropic/{model}"
        self._model = model
        self._client: Any = sdk.Anthropic(
            api_key=api_key, base_url=base_url, max_retries=0, default_headers=HEADERS
        )
        self._endpoint = Endpoint(self.name, api_key, self._send)

    def complete(self, call: ModelCall) -> ModelAnswer:
        """Return the answer; blocking, as `LanguageModel.complete`."""
        base = {
            "model": self._model,
            "system": system_prompt(call),
            "messages": [{"role": "user", "content": call.user}],
            "max_tokens": call.max_tokens,
            "timeout": call.timeout_s,
        }
        # As part of the body they pass through SDKs that are older than they are.
        forms = [{**base, "extra_body": extras} for extras in _extras(call)]
        return self._endpoint.ask(forms, kind=(call.think, len(forms)))

    def _send(self, options: Options) -> bytes:
        response = self._client.messages.with_raw_response.create(**options)
        body: bytes = response.http_response.content
        return body


def _extras(call: ModelCall) -> list[Options]:
    """Return what models may not know yet, or no more, the preferred form first."""
    output: dict[str, Any] = {}
    if call.json_schema is not None:
        output["format"] = {"type": "json_schema", "schema": call.json_schema}
    extras: list[Options] = []
    if call.think:
        effort = {**output, "effort": "low"}
        extras.append({"thinking": {"type": "adaptive"}, "output_config": effort})
        if call.max_tokens > _LEAST_THINKING_TOKENS:
            # Models from before adaptive thinking want a budget.
            budget = {"type": "enabled", "budget_tokens": _LEAST_THINKING_TOKENS}
            extras.append({"thinking": budget, **({"output_config": output} if output else {})})
    elif output:
        extras.append({"output_config": output})
    return [*extras, {}]
