"""What a provider can do wrong on the wire, and the state that each of it is told as."""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from summarize_server import (
    KEY,
    CountingGate,
    Reply,
    SummarizeServer,
    a_call,
    a_request,
    anthropic_reply,
    json_reply,
    openai_reply,
    refusal,
)

from lcm_fast.errors import (
    ConfigError,
    SourceTooLongError,
    SummarizerAuthError,
    SummarizerContentError,
    SummarizerError,
    SummarizerOutageError,
    SummarizerRateLimitError,
)
from lcm_fast.kernels import estimate_tokens
from lcm_fast.summarize import as_summarizer, summarise_with_escalation
from lcm_fast.summarize.models import AnthropicModel, LanguageModel, ModelAnswer, OpenAIModel
from lcm_fast.summarize.models.chain import ModelChain

GOOD_OPENAI = openai_reply({"role": "assistant", "content": "Chose SQLite."})
GOOD_ANTHROPIC = anthropic_reply([{"type": "text", "text": "Chose SQLite."}])


@pytest.fixture
def server() -> Iterator[SummarizeServer]:
    with SummarizeServer() as running:
        yield running


@pytest.fixture(params=["openai", "anthropic"])
def model(request: pytest.FixtureRequest, server: SummarizeServer) -> LanguageModel:
    if request.param == "openai":
        return server.openai_model()
    return server.anthropic_model()


class TestErrorStatuses:
    @pytest.mark.parametrize(
        ("status", "kind"),
        [
            (401, SummarizerAuthError),
            (402, SummarizerAuthError),
            (403, SummarizerAuthError),
            (408, SummarizerOutageError),
            (413, SourceTooLongError),
            (429, SummarizerRateLimitError),
            (500, SummarizerOutageError),
            (503, SummarizerOutageError),
            (529, SummarizerOutageError),
        ],
    )
    def test_a_status_stands_for_a_state(
        self, server: SummarizeServer, model: LanguageModel, status: int, kind: type[Exception]
    ) -> None:
        server.replies = [refusal(status, "not now")]
        with pytest.raises(kind, match=rf"^{model.name}: HTTP {status}: .*not now"):
            model.complete(a_call())
        assert len(server.requests) == 1

    def test_a_status_that_stands_for_none_is_a_plain_failure(
        self, server: SummarizeServer, model: LanguageModel
    ) -> None:
        server.replies = [refusal(404, "no such model")]
        with pytest.raises(SummarizerError, match="no such model") as caught:
            model.complete(a_call())
        assert type(caught.value) is SummarizerError

    def test_the_seconds_a_provider_asks_to_wait_are_told(
        self, server: SummarizeServer, model: LanguageModel
    ) -> None:
        server.replies = [refusal(429, "slow down", headers={"Retry-After": "7"})]
        assert rate_limit_of(model).retry_after_s == 7.0

    def test_the_date_a_provider_asks_to_wait_for_is_told(
        self, server: SummarizeServer, model: LanguageModel
    ) -> None:
        date = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
        server.replies = [refusal(429, "slow down", headers={"Retry-After": date})]
        wait_s = rate_limit_of(model).retry_after_s
        assert wait_s is not None
        assert 3000 < wait_s <= 3600

    def test_a_provider_that_does_not_say_how_long_to_wait_is_told_as_that(
        self, server: SummarizeServer, model: LanguageModel
    ) -> None:
        server.replies = [refusal(429, "slow down")]
        assert rate_limit_of(model).retry_after_s is None

    @pytest.mark.parametrize(
        ("message", "code"),
        [
            ("This model's maximum context length is 8192 tokens.", "context_length_exceeded"),
            ("prompt is too long: 215000 tokens > 200000 maximum", None),
            ("input length and `max_tokens` exceed context limit: 199000 + 8192", None),
            ("the request exceeds the available context size", None),
            ("Bad request.", "context_length_exceeded"),
        ],
    )
    def test_a_source_that_is_too_long_is_told_apart(
        self, server: SummarizeServer, model: LanguageModel, message: str, code: str | None
    ) -> None:
        if code and model.name.startswith("anthropic"):
            message = f"{code}: {message}"
        server.replies = [refusal(400, message, code=code)]
        with pytest.raises(SourceTooLongError):
            model.complete(a_call(think=True))
        assert len(server.requests) == 1

    def test_a_limit_of_the_answer_is_no_source_that_is_too_long(
        self, server: SummarizeServer, model: LanguageModel
    ) -> None:
        server.replies = [refusal(400, "max_tokens is too large: 9000")]
        with pytest.raises(SummarizerError) as caught:
            model.complete(a_call())
        assert type(caught.value) is SummarizerError

    def test_a_filtered_prompt_is_a_refusal(self, server: SummarizeServer) -> None:
        server.replies = [refusal(400, "filtered", code="content_filter")]
        with pytest.raises(SummarizerContentError) as caught:
            server.openai_model().complete(a_call())
        assert caught.value.code == "refused"

    def test_an_error_page_is_told_in_one_short_line(
        self, server: SummarizeServer, model: LanguageModel
    ) -> None:
        page = b"<html>\n<body>" + b"<p>Bad gateway</p>\n" * 5000
        server.replies = [Reply(page, 502, content_type="text/html")]
        with pytest.raises(SummarizerOutageError) as caught:
            model.complete(a_call())
        assert len(caught.value.detail) < 400
        assert "\n" not in caught.value.detail


class TestConnections:
    def test_an_answer_that_takes_too_long_is_an_outage(
        self, server: SummarizeServer, model: LanguageModel
    ) -> None:
        server.replies = [Reply(delay_s=30)]
        with pytest.raises(SummarizerOutageError):
            model.complete(a_call(timeout_s=0.2))
        assert len(server.requests) == 1

    def test_a_connection_that_is_closed_is_an_outage(
        self, server: SummarizeServer, model: LanguageModel
    ) -> None:
        server.replies = [Reply(hangs_up=True)]
        with pytest.raises(SummarizerOutageError):
            model.complete(a_call())
        assert len(server.requests) == 1

    def test_a_server_that_is_not_there_is_an_outage(self) -> None:
        with SummarizeServer() as gone:
            model = gone.openai_model()
        with pytest.raises(SummarizerOutageError):
            model.complete(a_call())

    def test_an_answer_that_comes_byte_by_byte_is_given_up_in_time(
        self, server: SummarizeServer, model: LanguageModel
    ) -> None:
        server.replies = [Reply(GOOD_OPENAI.body, drip_s=0.05)]
        chain = a_chain(model, timeout_s=0.2)
        with pytest.raises(SummarizerOutageError, match=r"gave no answer in 0\.2 s"):
            chain.answer(a_request(), CountingGate())


class TestBodies:
    @pytest.mark.parametrize(
        "reply",
        [
            Reply(b'{"choices": [{"mess'),
            Reply(b"<html>Sign in</html>", content_type="text/html"),
            Reply(b""),
            Reply(b"[" * 200_000),
        ],
        ids=["cut off", "html", "nothing", "nested"],
    )
    def test_a_body_that_is_no_json_is_an_outage(
        self, server: SummarizeServer, model: LanguageModel, reply: Reply
    ) -> None:
        server.replies = [reply]
        with pytest.raises(SummarizerOutageError, match="something else than JSON"):
            model.complete(a_call())

    @pytest.mark.parametrize(
        ("error", "kind"),
        [
            ({"code": 429, "message": "rate limited upstream"}, SummarizerRateLimitError),
            ({"code": 401, "message": "no credit"}, SummarizerAuthError),
            ({"message": "the model crashed"}, SummarizerOutageError),
        ],
    )
    def test_an_error_in_a_success_is_an_error(
        self,
        server: SummarizeServer,
        model: LanguageModel,
        error: dict[str, object],
        kind: type[Exception],
    ) -> None:
        server.replies = [json_reply({"error": error})]
        with pytest.raises(kind, match=str(error["message"])):
            model.complete(a_call())

    def test_a_summary_that_tells_of_refused_credentials_is_a_summary(
        self, server: SummarizeServer
    ) -> None:
        told = "The deploy failed: 401 unauthorized, invalid api key, rate limit 429."
        server.replies = [openai_reply({"content": told})]
        assert server.openai_model().complete(a_call()).text == told

    def test_a_huge_answer_is_stored_at_its_limit(self, server: SummarizeServer) -> None:
        server.replies = [openai_reply({"content": "word " * 1_000_000})]
        chain = a_chain(server.openai_model())
        summary = summarise_with_escalation(
            as_summarizer(lambda request: chain.answer(request, CountingGate())),
            a_request(),
            count_tokens=estimate_tokens,
            max_overage_factor=3.0,
            fallback_max_tokens=512,
        )
        assert summary.level == "fallback"
        assert summary.token_count < summary.input_tokens

    def test_an_answer_names_its_model_and_its_cost(
        self, server: SummarizeServer, model: LanguageModel
    ) -> None:
        is_openai = model.name == "openai/gpt"
        server.replies = [GOOD_OPENAI if is_openai else GOOD_ANTHROPIC]
        named = "gpt-real" if is_openai else "claude-real"
        assert model.complete(a_call()) == ModelAnswer("Chose SQLite.", named, 120, 7)


class TestForms:
    """Endpoints do not all know the same options."""

    def test_low_effort_is_asked_for_where_models_may_think(self, server: SummarizeServer) -> None:
        server.replies = [GOOD_OPENAI]
        server.openai_model().complete(a_call(think=True))
        assert server.requests[0]["reasoning_effort"] == "low"

    def test_nothing_is_said_of_thinking_where_models_may_not(
        self, server: SummarizeServer, model: LanguageModel
    ) -> None:
        server.replies = [GOOD_OPENAI]
        model.complete(a_call())
        assert not {"reasoning_effort", "thinking", "output_config"} & set(server.requests[0])

    @pytest.mark.parametrize("status", [400, 422])
    def test_an_option_the_endpoint_does_not_know_is_left_out_from_then_on(
        self, server: SummarizeServer, status: int
    ) -> None:
        server.replies = [refusal(status, "Unrecognized argument: reasoning_effort"), GOOD_OPENAI]
        model = server.openai_model()
        for _ in range(2):
            model.complete(a_call(think=True))
        assert ["reasoning_effort" in request for request in server.requests] == [
            True,
            False,
            False,
        ]

    def test_the_other_name_of_the_limit_is_tried(self, server: SummarizeServer) -> None:
        told = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
        server.replies = [refusal(400, told), GOOD_OPENAI]
        model = server.openai_model()
        for _ in range(2):
            model.complete(a_call(max_tokens=500))
        first, *others = server.requests
        assert first["max_tokens"] == 500
        assert [request["max_completion_tokens"] for request in others] == [500, 500]

    def test_older_models_of_anthropic_are_given_a_budget_to_think(
        self, server: SummarizeServer
    ) -> None:
        server.replies = [refusal(400, "adaptive thinking is not supported"), GOOD_ANTHROPIC]
        server.anthropic_model().complete(a_call(think=True, max_tokens=2240))
        adaptive, budget = (request["thinking"] for request in server.requests)
        assert adaptive == {"type": "adaptive"}
        assert budget == {"type": "enabled", "budget_tokens": 1024}

    def test_models_of_anthropic_that_do_not_think_are_asked_without(
        self, server: SummarizeServer
    ) -> None:
        server.replies = [*[refusal(400, "thinking is not supported")] * 2, GOOD_ANTHROPIC]
        model = server.anthropic_model()
        for max_tokens in (2240, 1000, 2240):
            model.complete(a_call(think=True, max_tokens=max_tokens))
        assert "thinking" not in server.requests[2]
        assert ["thinking" in request for request in server.requests[3:]] == [True, False]

    def test_a_schema_is_told_in_the_prompt_and_in_the_options(
        self, server: SummarizeServer, model: LanguageModel
    ) -> None:
        server.replies = [GOOD_OPENAI]
        model.complete(a_call(json_schema={"type": "object"}))
        sent = server.requests[0]
        assert {"response_format", "output_config"} & set(sent)
        assert "JSON schema" in str(sent.get("system") or sent["messages"][0]["content"])


class TestKeys:
    def test_a_key_that_a_provider_repeats_is_shown_nowhere(
        self, server: SummarizeServer, model: LanguageModel, caplog: pytest.LogCaptureFixture
    ) -> None:
        server.replies = [refusal(401, f"Incorrect key provided: {KEY}.")]
        with caplog.at_level(logging.DEBUG), pytest.raises(SummarizerAuthError) as caught:
            model.complete(a_call())
        told = "".join(traceback.format_exception(caught.value))
        assert "Incorrect key provided: ***" in told
        assert KEY not in told + repr(caught.value) + caplog.text + repr(model)

    @pytest.mark.parametrize(
        "reply",
        [json_reply({"error": {"code": 401, "message": KEY}}), Reply(f"<p>{KEY}</p>".encode())],
        ids=["an error in a success", "no JSON"],
    )
    def test_a_key_in_a_success_is_not_shown_either(
        self, server: SummarizeServer, model: LanguageModel, reply: Reply
    ) -> None:
        server.replies = [reply]
        with pytest.raises(SummarizerError) as caught:
            model.complete(a_call())
        assert KEY not in "".join(traceback.format_exception(caught.value))

    def test_the_organisation_of_openai_is_not_told_to_others(
        self, server: SummarizeServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
        monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
        server.replies = [GOOD_OPENAI]
        server.openai_model().complete(a_call())
        assert not {"openai-organization", "openai-project"} & set(server.headers[0])


@pytest.mark.parametrize("package", ["openai", "anthropic"])
def test_a_package_that_is_not_installed_is_named_with_its_command(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    make: dict[str, Callable[..., object]] = {"openai": OpenAIModel, "anthropic": AnthropicModel}
    with pytest.raises(ConfigError) as caught:
        make[package]("m", api_key=KEY)
    assert caught.value.hint == f'pip install "lcm-fast[{package}]"'


def a_chain(*models: LanguageModel, timeout_s: float = 5.0) -> ModelChain:
    return ModelChain(models, timeout_s=timeout_s, think=False, count_tokens=estimate_tokens)


def rate_limit_of(model: LanguageModel) -> SummarizerRateLimitError:
    with pytest.raises(SummarizerRateLimitError) as caught:
        model.complete(a_call())
    return caught.value
