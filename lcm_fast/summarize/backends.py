"""What the engine asks for summaries: one interface over models, programs, functions and offline
extraction, and the choice between them.

Reads no environment and no file of its own: configuration and variables are handed in (spec Z1,
Z2, A6).
"""

from __future__ import annotations

import inspect
import re
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, cast, runtime_checkable
from urllib.parse import urlsplit

from ..config import Config
from ..errors import ConfigError
from ..kernels import estimate_tokens
from .extractive import ExtractiveSummarizer
from .functions import FunctionBackend
from .metering import CallGate
from .models import AnthropicModel, CommandModel, LanguageModel, OpenAIModel
from .models.chain import ModelChain
from .protocol import SummaryRequest, SummaryResponse, as_summarizer

__all__ = ["Backend", "LocalBackend", "as_backend", "backend_from_config"]

_ANY_KEY = "LCM_SUMMARY_API_KEY"
# None: the address that the provider's own SDK knows.
_ADDRESSES: dict[str, str | None] = {
    "anthropic": None,
    "deepseek": "https://api.deepseek.com/v1",
    "groq": "https://api.groq.com/openai/v1",
    "mistral": "https://api.mistral.ai/v1",
    "ollama": "http://localhost:11434/v1",
    "openai": None,
    "openrouter": "https://openrouter.ai/api/v1",
}
_LOCAL_HOSTS = {"localhost", "127.0.0.1", "::1"}
_NO_KEY_NEEDED = "no-key-needed"


@runtime_checkable
class Backend(Protocol):
    """Something that summarises."""

    @property
    def name(self) -> str:
        """What it is called in status and errors."""
        ...

    @property
    def is_metered(self) -> bool:
        """Whether a call may cost something."""
        ...

    @property
    def max_concurrency(self) -> int | None:
        """Most requests that it answers side by side; None without limit."""
        ...

    def answer(self, request: SummaryRequest, gate: CallGate) -> SummaryResponse:
        """Return a summary; blocking, called outside any lock or transaction.

        Raises
        ------
        SummarizerError
            It could not be had, or the gate is closed.
        """
        ...


class LocalBackend:
    """The offline summariser; it costs nothing, so no gate is asked."""

    is_metered = False
    max_concurrency: int | None = 1

    def __init__(self, summarizer: ExtractiveSummarizer) -> None:
        self.name = summarizer.name
        self._summarizer = summarizer

    def answer(self, request: SummaryRequest, gate: CallGate) -> SummaryResponse:
        """Return the summary, made on the caller's thread."""
        return self._summarizer.summarize(request)


def as_backend(
    candidate: object,
    *,
    timeout_s: float,
    loop: AbstractEventLoop | None = None,
    think: bool = True,
) -> Backend:
    """Return what a user calls a summariser as a backend.

    Parameters
    ----------
    candidate
        A function of one `SummaryRequest`, an object with `name` and `summarize`, either of them
        blocking or asynchronous; a `LanguageModel`; a `ModelChain` or another backend.
    timeout_s
        Seconds after which one call is given up.
    loop
        Where an asynchronous one runs; default an event loop of its own for each call.
    think
        Whether a `LanguageModel` may reason.

    Raises
    ------
    ConfigError
        `candidate` is none of these; names what was given.

    Examples
    --------
    >>> async def ask(request):
    ...     return request.items[0].text[:40]
    >>> as_backend(ask, timeout_s=60).name
    'ask'
    """
    if isinstance(candidate, type):
        return _function_backend(candidate, timeout_s, loop)
    if isinstance(candidate, Backend):
        return candidate
    if isinstance(candidate, ExtractiveSummarizer):
        return LocalBackend(candidate)
    if hasattr(candidate, "summarize") or not hasattr(candidate, "complete"):
        return _function_backend(candidate, timeout_s, loop)
    model = cast("LanguageModel", candidate)
    return ModelChain([model], timeout_s=timeout_s, think=think, count_tokens=estimate_tokens)


def backend_from_config(
    config: Config, environ: Mapping[str, str], count_tokens: Callable[[str], int]
) -> Backend:
    """Return the summariser that the configuration names.

    ``summaryCommand``, else ``summaryModel``, then each of ``fallbackProviders``; the offline one
    when none is set.

    Parameters
    ----------
    config
        Its ``summary...`` keys and ``fallbackProviders``.
    environ
        Holds the keys: ``<PROVIDER>_API_KEY``, else ``LCM_SUMMARY_API_KEY``.
    count_tokens
        Estimates prompts.

    Raises
    ------
    ConfigError
        A model has no provider, a provider no address or no key, the command no program, or a
        package is not installed.
    """
    models = list(_configured_models(config, environ))
    if not models:
        return LocalBackend(ExtractiveSummarizer())
    return ModelChain(
        models,
        timeout_s=config.summary_timeout_ms / 1000,
        think=config.enable_summary_thinking,
        count_tokens=count_tokens,
    )


def _function_backend(
    candidate: object, timeout_s: float, loop: AbstractEventLoop | None
) -> FunctionBackend:
    method: Any = getattr(candidate, "summarize", candidate)
    if not isinstance(candidate, type) and _is_asynchronous(method):
        names = (getattr(candidate, name, None) for name in ("name", "__name__"))
        name = next((name for name in names if isinstance(name, str)), type(candidate).__name__)
        return FunctionBackend(method, name, timeout_s=timeout_s, loop=loop)
    summarizer = as_summarizer(candidate)
    return FunctionBackend(summarizer.summarize, summarizer.name, timeout_s=timeout_s, loop=loop)


def _is_asynchronous(function: object) -> bool:
    call = getattr(function, "__call__", None)  # noqa: B004 - an object's own, to look at
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def _configured_models(config: Config, environ: Mapping[str, str]) -> Iterator[LanguageModel]:
    named = [_preferred_model(config)] if config.summary_model else []
    own_provider = named[0][0] if named else config.summary_provider
    if config.summary_command:
        yield CommandModel(config.summary_command)
        named = []
    for provider, model in dict.fromkeys([*named, *config.fallback_providers]):
        address = _address(provider, config, is_own=provider == own_provider)
        key = _key(provider, address, environ)
        if provider.lower() == "anthropic":
            yield AnthropicModel(model, api_key=key, base_url=address)
        else:
            yield OpenAIModel(model, api_key=key, provider=provider, base_url=address)


def _preferred_model(config: Config) -> tuple[str, str]:
    """Return provider and model of ``summaryModel``; the first slash splits."""
    provider, slash, model = config.summary_model.partition("/")
    if not slash:
        provider, model = config.summary_provider, config.summary_model
    if not provider or not model:
        raise ConfigError(
            f"summaryModel is {config.summary_model!r} ({config.sources['summaryModel']}): it names"
            f" no {'model' if provider else 'provider'}",
            hint="write provider/model, or set summaryProvider",
        )
    return provider, model


def _address(provider: str, config: Config, *, is_own: bool) -> str | None:
    """Return where a provider's models are asked; None leaves it to the provider's SDK.

    ``summaryBaseUrl`` belongs to the provider of the preferred model, and to any without an address
    of its own.
    """
    known = provider.lower() in _ADDRESSES
    address = config.summary_base_url
    if known and not (is_own and address):
        return _ADDRESSES[provider.lower()]
    if not address:
        raise ConfigError(
            f"no address is known for the summariser's provider {provider!r}",
            hint="set summaryBaseUrl to its OpenAI-compatible endpoint; known without it: "
            + ", ".join(_ADDRESSES),
        )
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            f"summaryBaseUrl is {address!r} ({config.sources['summaryBaseUrl']}): it is no address"
            " of an endpoint",
            hint="such as http://localhost:8000/v1",
        )
    return address


def _key(provider: str, address: str | None, environ: Mapping[str, str]) -> str:
    variable = re.sub(r"[^A-Z0-9]", "_", provider.upper()) + "_API_KEY"
    for name in (variable, _ANY_KEY):
        if key := environ.get(name, "").strip():
            return key
    if address and urlsplit(address).hostname in _LOCAL_HOSTS:
        return _NO_KEY_NEEDED
    raise ConfigError(
        f"no key for the summariser's provider {provider!r}: {variable} is not set",
        hint=f"set {variable}, or {_ANY_KEY} for any provider",
    )
