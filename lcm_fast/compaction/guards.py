"""What stands between a compaction and a bill: the circuit breaker and the spend guard.

Refused credentials, and they alone, open a model's circuit breaker; too many calls of one
conversation within the window open its spend guard. Both are kept in the store, so that a restart
changes nothing (spec P; cases 367, 372, 377, 378, 380).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from ..config import Config
from ..errors import SummarizerPausedError
from ..store import Guard, Store, SummarizerCall
from ..summarize.metering import CallRecord
from .debt import time_after

__all__ = ["Gate", "open_gate"]


def open_gate(
    store: Store,
    config: Config,
    conversation_id: int | None,
    now: Callable[[], str],
    *,
    clears_spend_guard: bool = False,
    limits_spending: bool = True,
) -> Gate:
    """Return the gate of one compaction, or of one batch.

    Parameters
    ----------
    conversation_id
        Whose spend guard counts the calls; None for work that belongs to no conversation.
    clears_spend_guard
        Somebody insists on this compaction: a spend guard that is open is closed, and the window
        begins anew.
    limits_spending
        Whether the spend guard holds; a batch is as long as its caller makes it.

    Complexity: reads the guards, and counts the calls of one window.
    """
    guards = store.guards()
    moment = now()
    since = time_after(moment, -config.summary_call_window_ms)
    gate = Gate(store, config, conversation_id, now, guards, limits_spending)
    if not clears_spend_guard:
        gate.calls_in_window = store.count_calls(conversation_id, since)
    elif gate.spend_scope in guards:
        gate.put(Guard(gate.spend_scope))
    return gate


@dataclass(slots=True)
class Gate:
    """Allows the calls of one compaction, or of one batch, and counts them.

    Attributes
    ----------
    calls_in_window
        Calls made, or under way, within the window.

    Threading: `check` and `record` may be called from several threads.
    """

    store: Store
    config: Config
    conversation_id: int | None
    now: Callable[[], str]
    guards: dict[str, Guard]
    limits_spending: bool
    calls_in_window: int = 0
    _made: list[SummarizerCall] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def spend_scope(self) -> str:
        """Scope of the spend guard that counts the calls."""
        return f"spend:{self.conversation_id or 'batches'}"

    def check(self, model: str) -> None:
        """Allow one call to a model, and count it.

        Raises
        ------
        SummarizerPausedError
            With code ``circuit_open`` or ``spend_limit``.
        """
        with self._lock:
            moment = self.now()
            self._refuse_while_open(f"model:{model}", moment, "circuit_open", model)
            if not self.limits_spending:
                return
            self._refuse_while_open(self.spend_scope, moment, "spend_limit", model)
            most = self.config.summary_max_calls_per_window
            if self.calls_in_window >= most:
                self._open_spend_guard(moment, most)
                self._refuse_while_open(self.spend_scope, moment, "spend_limit", model)
            self.calls_in_window += 1

    def record(self, call: CallRecord) -> None:
        """Remember a call that was made, until `take` stores it; follow the circuit breaker."""
        with self._lock:
            moment = self.now()
            self._made.append(
                SummarizerCall(
                    model=call.model,
                    outcome=call.outcome,
                    duration_ms=call.duration_ms,
                    called_at=moment,
                    input_tokens=call.input_tokens,
                    output_tokens=call.output_tokens,
                )
            )
            if call.outcome == "auth":
                self.calls_in_window -= 1
                self._count_refusal(call.model, moment)
            elif call.outcome == "ok" and f"model:{call.model}" in self.guards:
                self.put(Guard(f"model:{call.model}"))

    def take(self) -> list[SummarizerCall]:
        """Return the calls that are not stored yet; the caller stores them."""
        with self._lock:
            made, self._made = self._made, []
        return made

    def store_calls(self) -> None:
        """Store the calls that are not stored yet."""
        if calls := self.take():
            self.store.record_calls(self.conversation_id, calls)

    def put(self, guard: Guard) -> None:
        """Keep a guard, here and in the store."""
        self.guards.pop(guard.scope, None)
        if guard.failures or guard.open_until:
            self.guards[guard.scope] = guard
        self.store.set_guard(guard, self.now())

    def _refuse_while_open(self, scope: str, moment: str, code: str, model: str) -> None:
        guard = self.guards.get(scope)
        if guard is None or guard.open_until is None:
            return
        if guard.open_until <= moment:
            self.put(Guard(scope))
            return
        what = f"the circuit breaker of {model}" if code == "circuit_open" else "the spend guard"
        raise SummarizerPausedError(
            f"{what} is open until {guard.open_until}: {guard.reason}",
            code=code,
            open_until=guard.open_until,
            hint="`lcm-fast compact --force` clears a spend guard; new credentials need a new start"
            if code == "spend_limit"
            else "check the key and the right to use the model",
        )

    def _open_spend_guard(self, moment: str, most: int) -> None:
        window_s = self.config.summary_call_window_ms // 1000
        until = time_after(moment, self.config.summary_spend_backoff_ms)
        reason = f"{most} summariser calls in {window_s} s (summaryMaxCallsPerWindow)"
        self.put(Guard(self.spend_scope, open_until=until, reason=reason))

    def _count_refusal(self, model: str, moment: str) -> None:
        scope = f"model:{model}"
        known = self.guards.get(scope) or Guard(scope)
        failures = known.failures + 1
        until = known.open_until
        if failures >= self.config.circuit_breaker_threshold:
            until = time_after(moment, self.config.circuit_breaker_cooldown_ms)
        reason = f"{failures} times in a row the provider refused the credentials"
        self.put(msgspec.structs.replace(known, failures=failures, open_until=until, reason=reason))
