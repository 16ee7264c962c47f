"""Asks one model after the other until one has answered.

Carries rules Z4 to Z7 and Z10 to Z12 with decision 6: an exhausted chain is an error that names
every model and its reason, never a text (J12). A text that was cut off is kept until a whole one is
there. Decides nothing about length: `escalation` does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ...errors import (
    SourceTooLongError,
    SummarizerAuthError,
    SummarizerContentError,
    SummarizerError,
    SummarizerOutageError,
    SummarizerPausedError,
    SummarizerRateLimitError,
)
from ..calls import call_within, metered_call
from ..metering import CallGate, CallRecord
from ..prompts import Prompt, build_prompt
from ..protocol import SummaryRequest, SummaryResponse
from .protocol import LanguageModel, ModelAnswer, ModelCall

__all__ = ["ModelChain"]

_THINKING_TOKENS = 2048
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 8.0
# Of several failures, the one the caller can do most about: give less, wait, mend the credentials.
_MOST_USEFUL_FIRST: tuple[type[SummarizerError], ...] = (
    SourceTooLongError,
    SummarizerRateLimitError,
    SummarizerOutageError,
    SummarizerAuthError,
    SummarizerPausedError,
)


class ModelChain:
    """Language models, the preferred one first, as one summariser.

    Parameters
    ----------
    models
        At least one.
    timeout_s
        Seconds after which one call is given up.
    think
        Whether the models may reason, at low effort.
    count_tokens
        Estimates prompts, to say how long one was that no model could take in.
    sleep, monotonic
        Wait, and tell the time, in seconds.
    """

    is_metered = True
    max_concurrency: int | None = None

    def __init__(
        self,
        models: Sequence[LanguageModel],
        *,
        timeout_s: float,
        think: bool,
        count_tokens: Callable[[str], int],
        sleep: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        if not models:
            raise ValueError("models must hold at least one model")
        self.models = tuple(models)
        self.timeout_s = timeout_s
        self.think = think
        self.count_tokens = count_tokens
        self.sleep = sleep
        self.monotonic = monotonic

    @property
    def name(self) -> str:
        """The models' names, the preferred one first."""
        return " or ".join(model.name for model in self.models)

    def answer(self, request: SummaryRequest, gate: CallGate) -> SummaryResponse:
        """Return the first usable answer; blocking, within ``request.timeout_s`` in all.

        An answer that was cut off, or was empty, is asked for once more with twice the room. A
        model that fails is followed by the next after a pause; a cut-off text is returned only when
        no model gave a whole one.

        Raises
        ------
        SummarizerPausedError
            The spend guard is open: no other model is asked. Or every model's circuit breaker is.
        SourceTooLongError, SummarizerRateLimitError, SummarizerOutageError, SummarizerAuthError
            No model answered; the first of these that befell one of them. Its detail names all of
            them.
        SummarizerContentError
            All models answered, and nothing usable.
        SummarizerError
            A model failed in another way.
        """
        return _Round(self, request, gate, build_prompt(request)).run()


@dataclass(slots=True)
class _Round:
    """One request on its way through the chain."""

    chain: ModelChain
    request: SummaryRequest
    gate: CallGate
    prompt: Prompt
    partial: SummaryResponse | None = None
    failures: list[SummarizerError] = field(default_factory=list)
    deadline: float = float("inf")

    def run(self) -> SummaryResponse:
        if self.request.timeout_s is not None:
            self.deadline = self.chain.monotonic() + self.request.timeout_s
        for position, model in enumerate(self.chain.models):
            if self.failures:
                self._pause_after(self.failures[-1], position - 1)
            try:
                return self._ask(model)
            except SummarizerError as error:
                self.failures.append(error)
                if error.code == "spend_limit":
                    if self.partial is None:
                        raise
                    break
        if self.partial is not None:
            return self.partial
        best = min(self.failures, key=_rank)
        raise self._with_all_reasons(best) from best

    def _ask(self, model: LanguageModel) -> SummaryResponse:
        """Ask one model, and once more with twice the room where the first answer ran out of it."""
        think = self.chain.think
        max_tokens = self.request.target_tokens + (_THINKING_TOKENS if think else 0)
        try:
            answer = self._call(model, max_tokens, think=think)
        except SummarizerContentError as error:
            if error.code == "refused":
                raise
            # More room only makes a model that reasons on and on reason longer.
            think = think and error.code != "reasoning_only"
        else:
            if not answer.is_incomplete:
                return _response(answer)
            self.partial = self.partial or _response(answer)
        return _response(self._call(model, 2 * max_tokens, think=think))

    def _call(self, model: LanguageModel, max_tokens: int, *, think: bool) -> ModelAnswer:
        longest_s = self.request.call_timeout_s(self.chain.timeout_s)
        timeout_s = min(longest_s, self._seconds_left())
        if timeout_s <= 0:
            raise SummarizerOutageError(f"{model.name}: no time was left to ask it")
        call = ModelCall(self.prompt.system, self.prompt.user, max_tokens, timeout_s, think)
        return metered_call(
            lambda: call_within(lambda: _complete(model, call), timeout_s, model.name),
            lambda answer, duration_ms: CallRecord(
                model.name,
                "truncated" if answer.is_incomplete else "ok",
                duration_ms,
                answer.input_tokens,
                answer.output_tokens,
            ),
            name=model.name,
            gate=self.gate,
            monotonic=self.chain.monotonic,
        )

    def _seconds_left(self) -> float:
        return self.deadline - self.chain.monotonic()

    def _pause_after(self, error: SummarizerError, position: int) -> None:
        if isinstance(error, SummarizerContentError | SummarizerPausedError):
            return
        pause_s = min(_FIRST_PAUSE_S * 2**position, _LONGEST_PAUSE_S)
        if pause_s < self._seconds_left():
            self.chain.sleep(pause_s)

    def _with_all_reasons(self, best: SummarizerError) -> SummarizerError:
        """Return a failure that tells in its detail of all that there were."""
        detail = "; ".join(error.detail for error in self.failures)
        match best:
            case SourceTooLongError():
                tokens = self.chain.count_tokens(f"{self.prompt.system}\n\n{self.prompt.user}")
                detail += f"; the prompt has about {tokens:,} tokens"
            case SummarizerRateLimitError():
                limits = [one for one in self.failures if isinstance(one, SummarizerRateLimitError)]
                waits = [one.retry_after_s for one in limits if one.retry_after_s is not None]
                return SummarizerRateLimitError(
                    detail, hint=best.hint, retry_after_s=max(waits, default=None)
                )
            case SummarizerPausedError():
                pauses = [one for one in self.failures if isinstance(one, SummarizerPausedError)]
                open_until = min(one.open_until for one in pauses)
                return SummarizerPausedError(
                    detail, code=best.code, open_until=open_until, hint=best.hint
                )
        kinds = (*_MOST_USEFUL_FIRST, SummarizerContentError, SummarizerError)
        kind: type[SummarizerError] = next(kind for kind in kinds if isinstance(best, kind))
        return kind(detail, hint=best.hint, code=best.code)


def _rank(error: SummarizerError) -> int:
    for rank, kind in enumerate(_MOST_USEFUL_FIRST):
        if isinstance(error, kind):
            return rank
    return len(_MOST_USEFUL_FIRST) + isinstance(error, SummarizerContentError)


def _complete(model: LanguageModel, call: ModelCall) -> ModelAnswer:
    answer: object = model.complete(call)
    if not isinstance(answer, ModelAnswer):
        raise SummarizerError(f"{model.name}: returned {type(answer).__name__}, not a ModelAnswer")
    return answer


def _response(answer: ModelAnswer) -> SummaryResponse:
    counts = {"input_tokens": answer.input_tokens, "output_tokens": answer.output_tokens}
    usage = {name: count for name, count in counts.items() if count is not None}
    return SummaryResponse(answer.text, answer.model, usage or None)
