"""What the models of HTTP endpoints have in common, whichever SDK speaks to them.

Endpoints differ in the options they know, and refuse others with status 400 or 422. So a call goes
out in its richest form first, then in plainer ones, and the form that was taken is remembered.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from ...errors import ConfigError, SummarizerError
from .answers import decode_body, read_answer
from .failures import as_summarizer_error
from .protocol import ModelAnswer, ModelCall

__all__ = ["HEADERS", "Endpoint", "import_sdk", "system_prompt"]

# A connection that is not kept needs nobody to close it; a call takes seconds either way.
HEADERS = {"Connection": "close"}
_FORM_STATUSES = {400, 422}

Options = Mapping[str, Any]


def import_sdk(package: str) -> Any:
    """Return a provider's SDK.

    Raises
    ------
    ConfigError
        It is not installed.
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ConfigError(
            f"the package {package} cannot be imported: {error}",
            hint=f'pip install "lcm-fast[{package}]"',
            code="missing_package",
        ) from error


def system_prompt(call: ModelCall) -> str:
    """Return the system prompt of a call; it asks for JSON where the call wants that."""
    if call.json_schema is None:
        return call.system
    schema = json.dumps(call.json_schema, ensure_ascii=False)
    return f"{call.system}\n\nAnswer with one JSON value of this JSON schema alone: {schema}"


class Endpoint:
    """Sends calls of one model in a form that its endpoint takes.

    Parameters
    ----------
    name
        ``provider/model``, for errors.
    api_key
        Is kept out of errors and answers.
    send
        Makes one call with these options; returns the body of the response, raises what the SDK
        raises.

    Threading: may be used from several threads at once.
    """

    def __init__(self, name: str, api_key: str, send: Callable[[Options], bytes]) -> None:
        self._name = name
        self._api_key = api_key
        self._send = send
        self._taken: dict[Hashable, int] = {}

    def ask(self, forms: Sequence[Options], kind: Hashable) -> ModelAnswer:
        """Return the answer to a call.

        Parameters
        ----------
        forms
            The options of the call, the preferred form first.
        kind
            What decides about the forms; the first one taken is remembered for it.

        Raises
        ------
        SummarizerError
            Of the state that the provider's answer stands for. The SDK's own exception is no cause
            of it, as it holds the request with its key.
        """
        for position in range(self._taken.get(kind, 0), len(forms)):
            try:
                body = self._without_key(self._send(forms[position]))
            except Exception as exception:
                error = as_summarizer_error(exception, self._name, secrets=[self._api_key])
                if _is_about_the_form(exception, error) and position + 1 < len(forms):
                    continue
                raise error from None
            self._taken[kind] = position
            break
        return read_answer(decode_body(body, self._name), self._name)

    def _without_key(self, body: bytes) -> bytes:
        return body.replace(self._api_key.encode(), b"***") if self._api_key else body


def _is_about_the_form(exception: Exception, error: SummarizerError) -> bool:
    """Tell whether a call may have been refused for an option in it.

    Any such refusal counts that stands for nothing else: endpoints word them in too many ways.
    """
    status = getattr(exception, "status_code", None)
    return type(error) is SummarizerError and status in _FORM_STATUSES
