"""What ingest needs of its surroundings, in one place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..config import Config
from ..store import DebtTerms, FloodThresholds, PayloadFolder, Store
from .large_payloads import LargePayloads
from .normalise import CountTokens, Show

__all__ = ["Services", "services_of"]


@dataclass(frozen=True, slots=True)
class Services:
    """What ingest works with.

    Attributes
    ----------
    now
        Gives the time of receipt, ISO 8601 UTC.
    thresholds
        Of the flood guard on live batches.
    prunes_heartbeats
        Whether heartbeat turns are kept out of the view.
    debt
        When a conversation is in compaction debt after what is stored; None never.
    show
        Gives large payloads files of their own.
    fork_max_tokens
        Tokens of its parent's history that a forked session shows.
    """

    store: Store
    count_tokens: CountTokens
    now: Callable[[], str]
    thresholds: FloodThresholds
    prunes_heartbeats: bool
    fork_max_tokens: int
    show: Show
    debt: DebtTerms | None = None


def services_of(
    store: Store,
    config: Config,
    folder: PayloadFolder,
    count_tokens: CountTokens,
    now: Callable[[], str],
) -> Services:
    """Return what ingest works with under a configuration; large payloads go to `folder`."""
    return Services(
        store=store,
        count_tokens=count_tokens,
        now=now,
        thresholds=FloodThresholds(
            config.replay_flood_threshold_external, config.replay_flood_threshold_internal
        ),
        prunes_heartbeats=config.prune_heartbeat_ok,
        fork_max_tokens=config.bootstrap_tokens,
        show=LargePayloads(store, folder, config.large_file_threshold_tokens, count_tokens),
    )
