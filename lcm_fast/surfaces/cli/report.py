"""What people read about a job: what went in, what was compacted, what came out, and why.

Pure functions from results to text of `WIDTH` columns.
"""

from __future__ import annotations

from ...assembly import Assembly, Diagnostics
from ...compaction import CompactionPlan, CompactionResult
from ...engine import MaintenanceResult
from ...ingest import BootstrapResult
from ...store import Conversation
from .output import counted, section

__all__ = [
    "compaction_section",
    "ingest_section",
    "maintenance_section",
    "messages_per_second",
    "output_section",
    "plan_section",
]

_SPANS_SHOWN = 3


def messages_per_second(result: BootstrapResult) -> float:
    """Return how many messages, new or known, were read and stored in a second."""
    if not result.bytes_read:
        return 0.0
    seconds = max(result.duration_ms, 0.001) / 1000
    return round((result.ingested + result.duplicates) / seconds, 1)


def ingest_section(result: BootstrapResult) -> str:
    """Return what went in."""
    news = (
        f"{result.ingested:,} new ({counted(result.tokens, 'token')}),"
        f" {result.duplicates:,} known before"
    )
    if result.bytes_read:
        speed = f"{messages_per_second(result):,.0f} messages/s"
        read = f"{counted(result.bytes_read, 'byte')} of format {result.format}"
        paragraphs = [f"{news}; {speed}", read]
    else:
        paragraphs = [news, f"nothing to read: format {result.format}, unchanged since last time"]
    if result.is_frozen:
        paragraphs.append(
            f"HELD BACK: {result.reason}; nothing was stored. `lcm-fast status` names the command"
            " that stores it"
        )
    if result.revised:
        paragraphs.append(
            f"{counted(result.revised, 'message')} in another form than before: kept beside the"
            " first"
        )
    if result.abandoned:
        paragraphs.append(
            f"{counted(result.abandoned, 'message')} on abandoned branches: stored, not shown"
        )
    if result.carried:
        paragraphs.append(
            f"{counted(result.carried, 'entry', 'entries')} without a message: kept for the export"
        )
    if result.unreadable:
        paragraphs.append(_unreadable(result))
    if result.pending_bytes:
        paragraphs.append(
            f"the last line is unfinished ({counted(result.pending_bytes, 'byte')}): it waits for"
            " the next read"
        )
    return section("in", paragraphs)


def _unreadable(result: BootstrapResult) -> str:
    shown = result.unreadable_spans[:_SPANS_SHOWN]
    places = [f"byte {span.offset:,} ({span.reason})" for span in shown]
    more = result.unreadable - len(shown)
    if more > 0:
        places.append(f"{more:,} more")
    return f"NOT READ: {counted(result.unreadable, 'piece')}, at {', '.join(places)}"


def compaction_section(result: CompactionResult, conversation: Conversation) -> str:
    """Return what compaction did and why."""
    made = [f"{count:,} {level}" for level, count in result.levels.items() if count]
    paragraphs = [f"{result.status}: {result.reason}"]
    if result.summaries_created:
        paragraphs.append(
            f"{result.tokens_before:,} -> {result.tokens_after:,} tokens, target"
            f" {result.target_tokens:,}"
        )
        noun = counted(result.summaries_created, "summary", "summaries")
        paragraphs.append(f"{noun} made ({', '.join(made)}) in {result.duration_ms:,.0f} ms")
    else:
        paragraphs.append(f"{result.tokens_after:,} tokens, target {result.target_tokens:,}")
    if conversation.leaf_count:
        paragraphs.append(
            f"in all {conversation.leaf_count:,} leaf and {conversation.condensed_count:,}"
            f" condensed summaries of {counted(conversation.covered_source_tokens, 'token')}"
        )
    return section("compact", paragraphs)


def plan_section(plan: CompactionPlan) -> str:
    """Return what a compaction would do."""
    before, after = plan.tokens_before, plan.tokens_after
    if not plan.passes:
        return section("plan", [f"nothing: {before:,} tokens, target {plan.target_tokens:,}"])
    paragraphs = [
        f"{counted(len(plan.passes), 'summary', 'summaries')} of {plan.input_tokens:,} tokens of"
        f" input, {plan.output_tokens:,} of output",
        f"{before:,} -> about {after:,} tokens, target {plan.target_tokens:,}",
    ]
    for planned in plan.passes:
        what = "message" if planned.depth == 0 else "summary"
        kind = "leaf" if planned.depth == 0 else f"condensed to depth {planned.depth}"
        items = counted(planned.items, what, "summaries" if planned.depth else "")
        paragraphs.append(
            f"{kind}: {items} at {planned.first_ordinal:,} to {planned.last_ordinal:,},"
            f" {planned.input_tokens:,} -> {planned.output_tokens:,} tokens"
        )
    return section("plan", paragraphs)


def maintenance_section(result: MaintenanceResult) -> str:
    """Return what a round of maintenance did."""
    paragraphs = [
        f"{one.session_key or one.conversation_id}: {one.compaction.status}:"
        f" {one.compaction.reason} ({one.compaction.tokens_before:,} ->"
        f" {one.compaction.tokens_after:,} tokens)"
        for one in result.drained
    ]
    if result.redone:
        redone = counted(result.redone, "fallback summary", "fallback summaries")
        paragraphs.append(f"{redone} written anew")
    if result.pending:
        debts = counted(result.pending, "conversation")
        when = f", not before {result.next_attempt_after}" if result.next_attempt_after else ""
        paragraphs.append(f"{debts} still to be compacted{when}")
    if result.stopped:
        paragraphs.append(f"stopped: {result.stopped}")
    return section("maintain", paragraphs or ["nothing is due"])


def output_section(assembly: Assembly) -> str:
    """Return what came out and why."""
    stats = assembly.stats
    paragraphs = [
        f"{counted(len(assembly.messages), 'message')}, {assembly.estimated_tokens:,} of"
        f" {counted(assembly.token_budget, 'token')}; selection {stats.selection}",
        stats.reason,
        f"chosen from {counted(stats.raw_messages, 'message')} and"
        f" {counted(stats.summaries, 'summary', 'summaries')}; {stats.dropped:,} left out;"
        f" fresh tail {counted(assembly.fresh_tail.count, 'message')},"
        f" {counted(assembly.fresh_tail.tokens, 'token')}",
    ]
    if stats.unsent:
        paragraphs.append(f"{counted(stats.unsent, 'item')} with nothing to send to a model")
    if stats.placeholders:
        paragraphs.append(
            f"{counted(stats.placeholders, 'placeholder')} for calls or results the record lacks"
        )
    if stats.cut:
        paragraphs.append(f"{counted(stats.cut, 'message')} shown in part")
    return section("out", paragraphs)


def diagnostics_section(diagnostics: Diagnostics) -> str:
    """Return what fills the context."""
    paragraphs = [
        f"{counted(diagnostics.message_tokens, 'token')} of messages,"
        f" {diagnostics.summary_tokens:,} of summaries in the view;"
        f" {counted(diagnostics.shown_messages, 'message')} and"
        f" {counted(diagnostics.shown_summaries, 'summary', 'summaries')} of them shown"
    ]
    for item in (*diagnostics.largest_messages, *diagnostics.largest_summaries):
        state = "shown" if item.is_shown else "left out"
        paragraphs.append(f"{item.item_id}: {counted(item.tokens, 'token')}, {state}")
    paragraphs += [
        f"{same.count} messages that say the same, {counted(same.tokens, 'token')} together:"
        f" {', '.join(same.item_ids)}"
        for same in diagnostics.duplicates
    ]
    return section("filled by", paragraphs)
