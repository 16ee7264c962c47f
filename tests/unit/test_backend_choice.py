"""Which summariser a configuration, or what a user passes, stands for (spec Z1, Z2, A6)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from summarize_server import (
    KEY,
    CountingGate,
    SummarizeServer,
    a_request,
    anthropic_reply,
    openai_reply,
    refusal,
)

from lcm_fast.config import Config
from lcm_fast.errors import ConfigError
from lcm_fast.kernels import estimate_tokens
from lcm_fast.summarize import ExtractiveSummarizer, SummaryRequest
from lcm_fast.summarize.backends import Backend, LocalBackend, as_backend, backend_from_config
from lcm_fast.summarize.models import ModelAnswer, ModelCall
from lcm_fast.summarize.models.chain import ModelChain

KEYS = {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY}
GOOD = openai_reply({"content": "Chose SQLite."})


@pytest.fixture
def server() -> Iterator[SummarizeServer]:
    with SummarizeServer() as running:
        running.replies = [GOOD]
        yield running


def configured(environ: dict[str, str] = KEYS, **config: Any) -> Backend:
    return backend_from_config(Config(**config), environ, estimate_tokens)


def provided(*names: str) -> list[dict[str, str]]:
    """Return `fallbackProviders` as it stands in a configuration file."""
    pairs = (name.split("/") for name in names)
    return [{"provider": provider, "model": model} for provider, model in pairs]


class TestConfiguration:
    def test_nothing_set_summarises_offline(self) -> None:
        backend = configured({})
        assert isinstance(backend, LocalBackend)
        assert (backend.is_metered, backend.max_concurrency) == (False, 1)

    @pytest.mark.parametrize(
        ("config", "name"),
        [
            ({"summary_model": "openai/gpt-mini"}, "openai/gpt-mini"),
            ({"summary_model": "gpt-mini", "summary_provider": "openai"}, "openai/gpt-mini"),
            (
                {"summary_model": "anthropic/claude", "summary_provider": "openai"},
                "anthropic/claude",
            ),
            ({"summary_model": "ollama/library/llama3"}, "ollama/library/llama3"),
            ({"summary_command": "cat -"}, "command/cat"),
            ({"summary_command": "cat", "summary_model": "openai/gpt"}, "command/cat"),
            ({"fallback_providers": provided("openai/a")}, "openai/a"),
            (
                {
                    "summary_model": "openai/a",
                    "fallback_providers": provided("anthropic/b", "openai/a", "ollama/c"),
                },
                "openai/a or anthropic/b or ollama/c",
            ),
            (
                {"summary_command": "cat", "fallback_providers": provided("openai/a")},
                "command/cat or openai/a",
            ),
        ],
    )
    def test_the_models_are_named_in_their_order(self, config: dict[str, Any], name: str) -> None:
        backend = configured(**config)
        assert (backend.name, backend.is_metered) == (name, True)

    def test_the_fallback_answers_when_the_model_is_overloaded(
        self, server: SummarizeServer
    ) -> None:
        server.replies = [refusal(529, "overloaded"), GOOD]
        backend = configured(
            summary_model="first/a",
            summary_base_url=f"{server.url}/v1",
            fallback_providers=provided("second/b"),
        )
        gate = CountingGate()
        assert backend.answer(a_request(), gate).text == "Chose SQLite."
        assert gate.outcomes == [("first/a", "outage"), ("second/b", "ok")]

    @pytest.mark.parametrize("thinks", [True, False])
    def test_thinking_is_as_configured(self, server: SummarizeServer, thinks: bool) -> None:
        backend = configured(
            summary_model="openai/gpt",
            summary_base_url=f"{server.url}/v1",
            enable_summary_thinking=thinks,
        )
        backend.answer(a_request(), CountingGate())
        assert ("reasoning_effort" in server.requests[0]) == thinks

    def test_the_address_is_that_of_the_preferred_provider_even_where_another_is_known(
        self, server: SummarizeServer
    ) -> None:
        server.replies = [anthropic_reply([{"type": "text", "text": "S"}])]
        backend = configured(summary_model="anthropic/claude", summary_base_url=server.url)
        assert backend.answer(a_request(), CountingGate()).text == "S"

    def test_a_model_on_this_machine_needs_no_key(self, server: SummarizeServer) -> None:
        backend = configured({}, summary_model="vllm/qwen", summary_base_url=f"{server.url}/v1")
        assert backend.answer(a_request(), CountingGate()).text == "Chose SQLite."

    @pytest.mark.parametrize(
        "environ",
        [{"MY_HOST_API_KEY": KEY}, {"LCM_SUMMARY_API_KEY": KEY, "MY_HOST_API_KEY": " "}],
    )
    def test_a_key_is_in_the_variable_of_its_provider_or_of_any(
        self, environ: dict[str, str]
    ) -> None:
        config = {"summary_model": "my-host/m", "summary_base_url": "https://models.example/v1"}
        assert configured(environ, **config).name == "my-host/m"

    @pytest.mark.parametrize(
        ("config", "told"),
        [
            ({"summary_model": "gpt"}, r"summaryModel is 'gpt' \(argument\): it names no provider"),
            ({"summary_model": "openai/"}, "names no model"),
            ({"summary_model": "somewhere/m"}, "no address is known .* 'somewhere' .*summaryBase"),
            ({"summary_model": "groq/m"}, "GROQ_API_KEY is not set .*LCM_SUMMARY_API_KEY"),
            (
                {"summary_model": "x/m", "summary_base_url": "models.example"},
                r"summaryBaseUrl is 'models.example' \(argument\): it is no address",
            ),
            ({"summary_command": "no-such-program"}, "no-such-program"),
            (
                {"summary_model": "openai/m", "fallback_providers": provided("mistral/m")},
                "MISTRAL_API_KEY is not set",
            ),
        ],
    )
    def test_what_cannot_be_asked_is_refused_at_once(
        self, config: dict[str, Any], told: str
    ) -> None:
        with pytest.raises(ConfigError, match=told) as caught:
            configured(**config)
        assert KEY not in str(caught.value)


class OneModel:
    name = "mine/model"

    def complete(self, call: ModelCall) -> ModelAnswer:
        return ModelAnswer(f"thinks: {call.think}", self.name)


class Nameless:
    def summarize(self, request: SummaryRequest) -> str:
        return "S"


class TestWhatUsersPass:
    def test_the_offline_summariser_costs_nothing(self) -> None:
        assert isinstance(as_backend(ExtractiveSummarizer(), timeout_s=1), LocalBackend)

    def test_a_language_model_is_a_chain_of_one(self) -> None:
        backend = as_backend(OneModel(), timeout_s=1, think=False)
        assert backend.name == "mine/model"
        assert backend.answer(a_request(), CountingGate()).text == "thinks: False"

    def test_a_backend_is_itself(self) -> None:
        chain = ModelChain([OneModel()], timeout_s=1, think=False, count_tokens=len)
        assert as_backend(chain, timeout_s=1) is chain

    @pytest.mark.parametrize(
        ("candidate", "named"),
        [
            ("gpt", "'gpt' of type str"),
            (None, "None of type NoneType"),
            (ModelChain, "ModelChain of type type"),
            (Nameless(), "of type Nameless"),
        ],
    )
    def test_anything_else_is_refused_by_name(self, candidate: object, named: str) -> None:
        with pytest.raises(ConfigError, match=named):
            as_backend(candidate, timeout_s=1)
