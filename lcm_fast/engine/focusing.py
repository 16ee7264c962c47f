"""Focus a conversation on a task: a brief is written, and shown in the place of summaries.

The draft is stored before the summariser is asked, so that what a killed process left is seen in
`status`; only a brief that was written supersedes the one that is shown (spec W).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace

from ..compaction import CompactionResult
from ..errors import ConfigError, LcmError, SummarizerError
from ..focus import LEAST_TOKENS, BriefPlan, FocusResult, FocusStatus, plan_brief, write_brief
from ..ingest.normalise import storable
from ..store import Conversation, FocusBrief
from ..store.focus import covered_by, source_hash
from .assembling import Assembling
from .intake import DEFAULT_TOKEN_BUDGET
from .upkeep import Order

__all__ = ["Focusing"]

_FAILED = ("failed", "deferred")


class Focusing(Assembling):
    """The half of an engine that keeps a conversation's focus."""

    def focus(
        self,
        prompt: str,
        *,
        session_key: str | None = None,
        session_id: str | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> FocusResult:
        """Write a brief on a task from what a conversation has summarised, and show it from now on
        in the place of those summaries.

        The conversation is compacted first, so that the brief reaches up to the fresh tail. The
        brief aims at 12,000 tokens and is in every assembly, within its budget. Nothing stored is
        changed: `unfocus` shows the summaries again.

        Parameters
        ----------
        prompt
            The task, in words of your own.
        progress
            Called with a line for people at each step.

        Returns
        -------
        FocusResult
            A summariser's failure is a status of it; the brief that was shown before is shown
            still.

        Raises
        ------
        ConfigError
            The prompt is blank.
        NotFoundError
            No such conversation.

        Threading: the summariser is called without any lock or transaction; turns go on meanwhile.
        """
        self._check_enabled()
        if not prompt.strip():
            raise ConfigError("the prompt is blank", hint="say what the brief is to serve")
        conversation = self.conversation(session_key=session_key, session_id=session_id)
        return self._focus(conversation, storable(prompt.strip()), None, progress)

    def refocus(
        self,
        *,
        session_key: str | None = None,
        session_id: str | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> FocusResult:
        """Carry a conversation's brief on with what was summarised after it.

        Parameters
        ----------
        progress
            As for `focus`.

        Returns
        -------
        FocusResult
            ``current`` when nothing was summarised since, ``nothing`` without a brief.

        Raises
        ------
        NotFoundError
            No such conversation.
        """
        self._check_enabled()
        conversation = self.conversation(session_key=session_key, session_id=session_id)
        shown = self.store.active_brief(conversation.conversation_id)
        if shown is None:
            return FocusResult("nothing", "no brief is shown: `focus` writes one")
        return self._focus(conversation, shown.prompt, shown, progress)

    def unfocus(
        self, *, session_key: str | None = None, session_id: str | None = None
    ) -> FocusResult:
        """Show a conversation's summaries again, and compact them.

        Returns
        -------
        FocusResult
            ``inactive``, also where the compaction failed; ``nothing`` without a brief.

        Raises
        ------
        NotFoundError
            No such conversation.
        """
        self._check_enabled()
        started = self.upkeep.monotonic()
        conversation = self.conversation(session_key=session_key, session_id=session_id)
        count = self.store.deactivate_brief(conversation.conversation_id, self._now())
        if not count:
            return FocusResult("nothing", "no brief is shown")
        reason, compaction = "the summaries are shown again", None
        try:
            compaction = self._compacted(conversation)
            if compaction.status in _FAILED:
                reason += f"; they could not be compacted: {compaction.reason}"
        except LcmError as error:
            reason += f"; they could not be compacted: {error.detail}"
        return FocusResult(
            "inactive",
            reason,
            compaction=compaction,
            duration_ms=(self.upkeep.monotonic() - started) * 1000,
        )

    def focus_status(
        self, *, session_key: str | None = None, session_id: str | None = None
    ) -> FocusStatus:
        """Return the brief that is shown, what came after it, and the brief that was begun last.

        Raises
        ------
        NotFoundError
            No such conversation.
        """
        conversation = self.conversation(session_key=session_key, session_id=session_id)
        number = conversation.conversation_id
        brief, latest = self.store.active_brief(number), self.store.latest_brief(number)
        if brief is None:
            sources = self.store.brief_sources(latest.brief_id) if latest else {}
            return FocusStatus(None, latest, sources)
        view = self.store.reach_of_view(number)
        return FocusStatus(
            brief=brief,
            latest=latest if latest and latest.brief_id != brief.brief_id else None,
            sources=self.store.brief_sources(brief.brief_id),
            delta=self.store.brief_delta(brief, covered_by(brief, view)),
            is_current=source_hash(view) == brief.source_context_hash,
        )

    def _focus(
        self,
        conversation: Conversation,
        prompt: str,
        previous: FocusBrief | None,
        progress: Callable[[str], None] | None,
    ) -> FocusResult:
        """Compact, then write a brief and show it."""
        started = self.upkeep.monotonic()
        tell = progress or (lambda line: None)
        tell("compacting")
        compaction = self._compacted(conversation)
        if compaction.status in _FAILED:
            reason = f"the conversation could not be compacted first: {compaction.reason}"
            result = FocusResult("failed", reason, previous)
        else:
            tell("writing the brief")
            result = self._written(conversation, prompt, previous)
        return replace(
            result,
            compaction=compaction,
            duration_ms=(self.upkeep.monotonic() - started) * 1000,
        )

    def _written(
        self, conversation: Conversation, prompt: str, previous: FocusBrief | None
    ) -> FocusResult:
        number, now = conversation.conversation_id, self._now()
        services = self.upkeep.services(self.config, number, Order(token_budget=0))
        view = self.store.reach_of_view(number)
        if not view:
            return FocusResult("nothing", "nothing is summarised yet: all of it is shown as it is")
        draft = FocusBrief(
            brief_id=f"focus_{secrets.token_hex(8)}",
            conversation_id=number,
            session_key=conversation.session_key,
            prompt=prompt,
            created_at=now,
            updated_at=now,
        )
        plan = plan_brief(services, draft, view, previous)
        if plan is None:
            return FocusResult("current", "nothing was summarised since the brief", previous)
        self.store.begin_brief(plan.draft, plan.sources())
        try:
            brief = write_brief(services, plan)
        except SummarizerError as error:
            reason = f"{error.code}: {error.detail}"
            self.store.fail_brief(draft.brief_id, reason, self._now())
            shown = self.store.active_brief(number)
            return FocusResult("failed", reason, shown)
        except BaseException as error:
            self.store.fail_brief(draft.brief_id, f"{type(error).__name__}: {error}", self._now())
            raise
        finally:
            services.summarizer.gate.store_calls()
        return self._published(plan, brief)

    def _published(self, plan: BriefPlan, brief: FocusBrief) -> FocusResult:
        self.store.publish_brief(brief, self._now())
        warnings = []
        if brief.token_count < LEAST_TOKENS:
            warnings.append(
                f"the brief has {brief.token_count:,} tokens, fewer than the {LEAST_TOKENS:,} that"
                " are expected"
            )
        if brief.truncated:
            warnings.append("the brief was cut at its size limit")
        shown = self.store.active_brief(brief.conversation_id)
        messages = sum(map(len, plan.evidence.message_ids.values()))
        reason = (
            f"written by {brief.model}; it read {messages:,} of the messages behind the"
            f" {len(plan.summaries):,} summaries it stands for"
        )
        return FocusResult("active", reason, shown, warnings)

    def _compacted(self, conversation: Conversation) -> CompactionResult:
        """Compact all that is outside the fresh tail, in as many runs as it takes."""
        order = Order(self._capped(DEFAULT_TOKEN_BUDGET), force=True)
        result = self.upkeep.compact(conversation, order)
        while result.can_go_on:
            conversation = self.store.conversation(conversation.conversation_id) or conversation
            result = self.upkeep.compact(conversation, order)
        return result
