"""The map operator as an engine offers it: which model, which items, whose money."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import ingest
from ..compaction.debt import time_after
from ..compaction.guards import open_gate
from ..compaction.source import item_from_message
from ..config import Config
from ..errors import ConfigError, NotFoundError
from ..mapping import Batch, MapResult, run_batch
from ..store import NewJob, PayloadFolder, Store, owner_name
from ..summarize.backends import Backend
from ..summarize.models import LanguageModel

__all__ = ["Batches"]

_MESSAGE = re.compile(r"msg_(\d{1,18})")
_SUMMARY = re.compile(r"sum_[0-9a-f]{16}")
_FILE = re.compile(r"file_[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class Batches:
    """Runs batches with an engine's store, model and guards."""

    store: Store
    config: Config
    backend: Backend
    folder: PayloadFolder
    count_tokens: Callable[[str], int]
    now: Callable[[], str]
    monotonic: Callable[[], float]

    def run(
        self,
        items: Sequence[str],
        prompt: str,
        *,
        schema: Mapping[str, Any] | None,
        model: Any,
        concurrency: int | None,
        job_id: str | None,
        conversation_id: int | None,
        max_attempts: int,
        max_tokens: int,
        is_cancelled: Callable[[], bool],
    ) -> MapResult:
        """Work through the items; see `Engine.map`."""
        shown_schema = None if schema is None else json.dumps(schema, sort_keys=True)
        timeout_s = self.config.summary_timeout_ms / 1000
        models = self._models(model)
        # No conversation's: a long batch must not use up what its compaction may spend.
        gate = open_gate(self.store, self.config, None, self.now, limits_spending=False)
        return run_batch(
            Batch(
                store=self.store,
                job=NewJob(
                    job_id=job_id or _job_id_of(prompt, shown_schema, items),
                    conversation_id=conversation_id,
                    prompt=prompt,
                    output_schema=shown_schema,
                    refs=items,
                ),
                schema=schema,
                models=models,
                gate=gate,
                store_calls=gate.store_calls,
                text_of=self._text_of,
                concurrency=concurrency or self.config.summary_concurrency,
                max_attempts=max_attempts,
                max_tokens=max_tokens,
                timeout_s=timeout_s,
                owner=owner_name(),
                now=self.now,
                lease_until=lambda: time_after(
                    self.now(), 2 * len(models) * self.config.summary_timeout_ms
                ),
                monotonic=self.monotonic,
                is_cancelled=is_cancelled,
            )
        )

    def _models(self, model: Any) -> Sequence[LanguageModel]:
        if model is not None:
            if not callable(getattr(model, "complete", None)):
                raise ConfigError(
                    f"model is {model!r}: it has no method complete",
                    hint="pass a LanguageModel, or set summaryModel",
                )
            return (model,)
        models: Sequence[LanguageModel] = getattr(self.backend, "models", ())
        if not models:
            raise ConfigError(
                f"summarizer {self.backend.name}: it answers no prompts",
                hint="set summaryModel or summaryCommand, or pass model=",
                code="no_model",
            )
        return models

    def _text_of(self, ref: str) -> str:
        """Return what an item stands for: a stored message, summary or file, or the text itself."""
        if match := _MESSAGE.fullmatch(ref):
            rows = self.store.messages([int(match.group(1))])
            texts = [item_from_message(row, ()).text for row in rows]
        elif _SUMMARY.fullmatch(ref):
            texts = [row.content for row in self.store.summaries([ref])]
        elif _FILE.fullmatch(ref):
            found = ingest.describe_file(
                self.store,
                self.folder,
                ref,
                expand_file=True,
                threshold_tokens=self.config.large_file_threshold_tokens,
                count_tokens=self.count_tokens,
            )
            texts = [(found.content or b"").decode("utf-8", "replace")]
        else:
            return ref
        if not texts:
            raise NotFoundError(f"no item {ref!r}", hint="it may be another memory's")
        return texts[0]


def _job_id_of(prompt: str, schema: str | None, items: Sequence[str]) -> str:
    """Name a job by its work: the same call again goes on with it."""
    work = json.dumps([prompt, schema, list(items)]).encode()
    return "map_" + hashlib.sha256(work).hexdigest()[:16]
