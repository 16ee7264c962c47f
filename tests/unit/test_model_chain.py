"""Rules Z4 to Z7 and Z10 to Z12: one model after the other, and what is raised when none answered
(AB60, AB61; cases 125, 368, 372, 380)."""

from __future__ import annotations

from typing import Any

import pytest
from summarize_server import CountingGate, a_request

from lcm_fast.errors import (
    SourceTooLongError,
    SummarizerAuthError,
    SummarizerContentError,
    SummarizerError,
    SummarizerOutageError,
    SummarizerPausedError,
    SummarizerRateLimitError,
)
from lcm_fast.kernels import estimate_tokens
from lcm_fast.summarize import SummaryRequest, SummaryResponse, build_prompt
from lcm_fast.summarize.models import ModelAnswer, ModelCall
from lcm_fast.summarize.models.answers import UnusableAnswerError
from lcm_fast.summarize.models.chain import ModelChain

WHOLE = ModelAnswer("Chose SQLite.", "real-b", 100, 5)
CUT = ModelAnswer("Chose SQL", "real-a", 100, 192, is_incomplete=True)
EMPTY = UnusableAnswerError("a: the answer was empty", code="empty", output_tokens=3)
REASONING = UnusableAnswerError("a: the answer was reasoning alone", code="reasoning_only")
CUT_BEFORE_TEXT = UnusableAnswerError("a: cut off before any text", code="truncated")
REFUSED = UnusableAnswerError("a: refused", code="refused")
OUTAGE = SummarizerOutageError("a: HTTP 529: overloaded")
AUTH = SummarizerAuthError("a: HTTP 401: no such key")
TOO_LONG = SourceTooLongError("a: HTTP 400: context length")
CIRCUIT = SummarizerPausedError(
    "the circuit breaker of a is open", code="circuit_open", open_until="2026-01-01T00:30:00.000Z"
)
SPENT = SummarizerPausedError(
    "the spend guard is open", code="spend_limit", open_until="2026-01-01T01:00:00.000Z"
)


class Clock:
    """A clock that moves when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.pauses: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def read(self) -> float:
        return self.now


class Scripted:
    """A language model that does what it is told, call by call."""

    def __init__(self, name: str, *script: object, clock: Clock | None = None, takes_s: float = 0):
        self.name = name
        self.calls: list[ModelCall] = []
        self._script = script
        self._clock = clock
        self._takes_s = takes_s

    def complete(self, call: ModelCall) -> ModelAnswer:
        step: Any = self._script[len(self.calls)]
        self.calls.append(call)
        if self._clock is not None:
            self._clock.now += self._takes_s
        if isinstance(step, Exception):
            raise step
        return step  # type: ignore[no-any-return]


def ask(
    *models: Scripted,
    gate: CountingGate | None = None,
    clock: Clock | None = None,
    think: bool = False,
    request: SummaryRequest | None = None,
) -> SummaryResponse:
    clock = clock or Clock()
    chain = ModelChain(
        models,
        timeout_s=60,
        think=think,
        count_tokens=estimate_tokens,
        sleep=clock.sleep,
        monotonic=clock.read,
    )
    return chain.answer(request or a_request(), gate or CountingGate())


class TestOneModel:
    def test_its_answer_comes_with_the_model_that_answered_and_the_cost(self) -> None:
        usage = {"input_tokens": 100, "output_tokens": 5}
        assert ask(Scripted("a", WHOLE)) == SummaryResponse("Chose SQLite.", "real-b", usage)

    def test_it_is_asked_with_the_prompt_of_the_request(self) -> None:
        model = Scripted("a", WHOLE)
        ask(model)
        prompt = build_prompt(a_request())
        assert (model.calls[0].system, model.calls[0].user) == (prompt.system, prompt.user)

    @pytest.mark.parametrize(
        ("think", "target", "asked"),
        [(True, 192, [2240, 4480]), (True, 600, [2648, 5296]), (False, 192, [192, 384])],
    )
    def test_an_answer_that_was_cut_off_is_asked_for_with_twice_the_room(
        self, think: bool, target: int, asked: list[int]
    ) -> None:
        model = Scripted("a", CUT, WHOLE)
        response = ask(model, think=think, request=a_request(target_tokens=target))
        assert response.text == "Chose SQLite."
        assert [(call.max_tokens, call.think) for call in model.calls] == [
            (tokens, think) for tokens in asked
        ]

    @pytest.mark.parametrize(
        ("first", "thinks_again"), [(EMPTY, True), (CUT_BEFORE_TEXT, True), (REASONING, False)]
    )
    def test_an_answer_without_text_is_asked_for_once_more(
        self, first: Exception, thinks_again: bool
    ) -> None:
        model = Scripted("a", first, WHOLE)
        assert ask(model, think=True).text == "Chose SQLite."
        assert model.calls[1].think == thinks_again

    def test_a_second_answer_that_is_cut_off_is_taken(self) -> None:
        longer = ModelAnswer("Chose SQLite, beca", "real-a", is_incomplete=True)
        assert ask(Scripted("a", CUT, longer)).text == "Chose SQLite, beca"

    @pytest.mark.parametrize("second", [EMPTY, OUTAGE, AUTH, RuntimeError("crashed")])
    def test_a_cut_off_text_is_kept_when_the_second_attempt_fails(self, second: Exception) -> None:
        assert ask(Scripted("a", CUT, second)).text == "Chose SQL"

    def test_a_refusal_is_not_asked_for_again(self) -> None:
        model = Scripted("a", REFUSED)
        with pytest.raises(SummarizerContentError, match="a: refused"):
            ask(model)
        assert len(model.calls) == 1

    def test_two_answers_without_text_are_an_error_and_no_text(self) -> None:
        with pytest.raises(SummarizerContentError, match="the answer was empty"):
            ask(Scripted("a", EMPTY, EMPTY))

    @pytest.mark.parametrize("error", [OUTAGE, AUTH, TOO_LONG])
    def test_a_failure_is_not_tried_again(self, error: Exception) -> None:
        model = Scripted("a", error)
        with pytest.raises(type(error)):
            ask(model)
        assert len(model.calls) == 1

    def test_an_error_of_the_users_own_model_is_told_as_a_state(self) -> None:
        with pytest.raises(SummarizerOutageError, match="a: TimeoutError: 30 s"):
            ask(Scripted("a", TimeoutError("30 s")))

    def test_an_answer_of_another_type_is_an_error(self) -> None:
        with pytest.raises(SummarizerError, match="a: returned str, not a ModelAnswer"):
            ask(Scripted("a", "Chose SQLite."))

    def test_a_source_that_is_too_long_tells_the_size_of_the_prompt(self) -> None:
        prompt = build_prompt(a_request())
        tokens = estimate_tokens(f"{prompt.system}\n\n{prompt.user}")
        with pytest.raises(SourceTooLongError, match=f"the prompt has about {tokens:,} tokens"):
            ask(Scripted("a", TOO_LONG))


class TestSeveralModels:
    @pytest.mark.parametrize("error", [OUTAGE, AUTH, TOO_LONG, SummarizerError("a: HTTP 404")])
    def test_the_next_one_answers_after_a_pause(self, error: Exception) -> None:
        clock = Clock()
        response = ask(Scripted("a", error), Scripted("b", WHOLE), clock=clock)
        assert (response.model, clock.pauses) == ("real-b", [0.5])

    def test_the_pauses_grow_to_a_limit(self) -> None:
        clock = Clock()
        models = [Scripted(str(n), OUTAGE) for n in range(7)]
        with pytest.raises(SummarizerOutageError):
            ask(*models, clock=clock)
        assert clock.pauses == [0.5, 1.0, 2.0, 4.0, 8.0, 8.0]

    def test_after_unusable_answers_the_next_one_is_asked_at_once(self) -> None:
        clock = Clock()
        ask(Scripted("a", EMPTY, EMPTY), Scripted("b", WHOLE), clock=clock)
        assert clock.pauses == []

    def test_a_whole_text_of_the_next_one_is_better_than_a_cut_off_one(self) -> None:
        response = ask(Scripted("a", CUT, EMPTY), Scripted("b", WHOLE))
        assert response.text == "Chose SQLite."

    def test_a_cut_off_text_is_better_than_none(self) -> None:
        response = ask(Scripted("a", CUT, EMPTY), Scripted("b", OUTAGE))
        assert (response.text, response.model) == ("Chose SQL", "real-a")

    def test_the_chain_is_named_after_all(self) -> None:
        models = [Scripted("x/a"), Scripted("y/b")]
        chain = ModelChain(models, timeout_s=1, think=False, count_tokens=len)
        assert chain.name == "x/a or y/b"

    def test_a_chain_of_no_model_is_an_error(self) -> None:
        with pytest.raises(ValueError, match="at least one"):
            ask()


class TestExhaustion:
    @pytest.mark.parametrize(
        ("errors", "kind"),
        [
            ([REFUSED, AUTH, OUTAGE, SummarizerRateLimitError("429")], SummarizerRateLimitError),
            ([REFUSED, AUTH, OUTAGE], SummarizerOutageError),
            ([AUTH, REFUSED, SummarizerError("404")], SummarizerAuthError),
            ([SummarizerError("404"), REFUSED], SummarizerError),
            ([OUTAGE, TOO_LONG, AUTH], SourceTooLongError),
            ([REFUSED, REFUSED], SummarizerContentError),
        ],
    )
    def test_the_most_useful_failure_is_raised(
        self, errors: list[Exception], kind: type[Exception]
    ) -> None:
        with pytest.raises(kind) as caught:
            ask(*(Scripted(f"m{n}", error) for n, error in enumerate(errors)))
        assert type(caught.value) is kind

    def test_every_failure_is_named(self) -> None:
        with pytest.raises(SummarizerOutageError) as caught:
            ask(
                Scripted("x/a", ConnectionError("no route")), Scripted("y/b", EMPTY, TimeoutError())
            )
        assert caught.value.detail == "x/a: ConnectionError: no route; y/b: TimeoutError"

    def test_the_longest_wait_is_told(self) -> None:
        errors = [
            SummarizerRateLimitError("a: 429", retry_after_s=7.0),
            SummarizerRateLimitError("b: 429", retry_after_s=90.0),
            SummarizerRateLimitError("c: 429"),
        ]
        with pytest.raises(SummarizerRateLimitError) as caught:
            ask(*(Scripted(str(n), error) for n, error in enumerate(errors)))
        assert caught.value.retry_after_s == 90.0


class TestGate:
    def test_every_call_is_allowed_and_reported(self) -> None:
        gate = CountingGate()
        models = Scripted("a", CUT, EMPTY), Scripted("b", OUTAGE), Scripted("c", WHOLE)
        ask(*models, gate=gate)
        assert gate.checked == ["a", "a", "b", "c"]
        assert gate.outcomes == [("a", "truncated"), ("a", "empty"), ("b", "outage"), ("c", "ok")]

    @pytest.mark.parametrize(
        ("error", "outcome"),
        [
            (AUTH, "auth"),
            (SummarizerRateLimitError("429"), "rate_limited"),
            (TOO_LONG, "too_long"),
            (REFUSED, "refused"),
            (RuntimeError("crashed"), "error"),
        ],
    )
    def test_a_failure_is_reported_as_what_it_is(self, error: Exception, outcome: str) -> None:
        gate = CountingGate()
        ask(Scripted("a", error), Scripted("b", WHOLE), gate=gate)
        assert gate.outcomes[0] == ("a", outcome)

    def test_the_cost_is_reported_of_unusable_answers_too(self) -> None:
        gate = CountingGate()
        ask(Scripted("a", EMPTY, WHOLE), gate=gate)
        assert [call.output_tokens for call in gate.calls] == [3, 5]

    def test_the_time_of_a_call_is_reported(self) -> None:
        gate, clock = CountingGate(), Clock()
        ask(Scripted("a", WHOLE, clock=clock, takes_s=1.25), gate=gate, clock=clock)
        assert gate.calls[0].duration_ms == 1250

    def test_a_model_behind_an_open_breaker_is_passed_over_without_call_or_pause(self) -> None:
        gate, clock, closed = CountingGate({"a": CIRCUIT}), Clock(), Scripted("a")
        assert ask(closed, Scripted("b", WHOLE), gate=gate, clock=clock).model == "real-b"
        assert (closed.calls, gate.outcomes, clock.pauses) == ([], [("b", "ok")], [])

    def test_breakers_that_are_all_open_are_told_with_the_time_the_first_closes(self) -> None:
        later = SummarizerPausedError(
            "b is open", code="circuit_open", open_until="2026-01-01T00:45:00.000Z"
        )
        gate = CountingGate({"a": CIRCUIT, "b": later})
        with pytest.raises(SummarizerPausedError) as caught:
            ask(Scripted("a"), Scripted("b"), gate=gate)
        assert caught.value.code == "circuit_open"
        assert caught.value.open_until == "2026-01-01T00:30:00.000Z"

    def test_an_open_spend_guard_ends_the_chain(self) -> None:
        next_model = Scripted("b", WHOLE)
        with pytest.raises(SummarizerPausedError) as caught:
            ask(Scripted("a"), next_model, gate=CountingGate({"a": SPENT}))
        assert caught.value is SPENT
        assert next_model.calls == []

    def test_a_cut_off_text_is_kept_when_there_is_no_money_for_a_whole_one(self) -> None:
        gate = CountingGate({"b": SPENT})
        assert ask(Scripted("a", CUT, EMPTY), Scripted("b"), gate=gate).text == "Chose SQL"


class TestDeadline:
    def test_a_call_is_given_what_is_left_of_the_request(self) -> None:
        clock = Clock()
        slow = Scripted("a", OUTAGE, clock=clock, takes_s=50)
        second = Scripted("b", WHOLE)
        ask(slow, second, clock=clock, request=a_request(timeout_s=70.0))
        assert [call.timeout_s for call in (*slow.calls, *second.calls)] == [60.0, 19.5]

    def test_no_call_is_made_when_no_time_is_left(self) -> None:
        clock = Clock()
        slow = Scripted("a", OUTAGE, clock=clock, takes_s=70)
        second = Scripted("b", WHOLE)
        with pytest.raises(SummarizerOutageError, match="b: no time was left"):
            ask(slow, second, clock=clock, request=a_request(timeout_s=70.0))
        assert (second.calls, clock.pauses) == ([], [])

    def test_without_a_deadline_each_call_has_its_own_time(self) -> None:
        model = Scripted("a", CUT, WHOLE)
        ask(model)
        assert [call.timeout_s for call in model.calls] == [60.0, 60.0]
