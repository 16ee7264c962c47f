"""A focus brief stands in the place of the summaries it was written from."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import violations
from upkeep import Clock, memory, turns

import lcm_fast
from lcm_fast.engine import Engine
from lcm_fast.errors import ConfigError, NotFoundError, SummarizerOutageError
from lcm_fast.summarize import SummaryRequest

PLENTY = 100_000
TASK = "which port does the staging database use?"


class Writer:
    """A summariser that keeps the requests for briefs, and answers them with what it is told to."""

    def __init__(self) -> None:
        self.briefs: list[SummaryRequest] = []
        self.brief: Callable[[SummaryRequest], str] = lambda request: "the brief <1> & more ¤¤"

    def __call__(self, request: SummaryRequest) -> str:
        if not request.focus:
            return f"notes on {request.items[0].text[:8]} " + "¤" * 60
        self.briefs.append(request)
        return self.brief(request)


@pytest.fixture
def writer() -> Writer:
    return Writer()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def engine(database: Path, writer: Writer, clock: Clock) -> Iterator[Engine]:
    """A conversation of twelve turns."""
    with memory(database, writer, clock) as opened:
        opened.ingest(turns(12), token_budget=PLENTY)
        yield opened


def contents(engine: Engine, budget: int = PLENTY, **options: Any) -> list[str]:
    messages = engine.assemble(token_budget=budget, **options).messages
    return [str(message["content"]) for message in messages]


def kinds(engine: Engine) -> list[str]:
    """What each message of an assembly is."""
    return [text.split()[0].strip("<") for text in contents(engine)]


class TestFocus:
    def test_the_brief_takes_the_place_of_all_summaries(self, engine: Engine) -> None:
        engine.compact(token_budget=PLENTY, force=True)
        assert set(kinds(engine)[:-2]) == {"summary"}
        assert engine.focus(TASK).status == "active"
        assert kinds(engine) == ["focus_brief", "turn", "turn"]

    def test_the_conversation_is_compacted_first(self, engine: Engine) -> None:
        result = engine.focus(TASK)
        assert result.compaction is not None
        assert result.compaction.summaries_created > 0
        assert kinds(engine) == ["focus_brief", "turn", "turn"]

    def test_a_long_backlog_is_compacted_in_as_many_runs_as_it_takes(
        self, database: Path, writer: Writer
    ) -> None:
        with memory(database, writer, max_sweep_iterations=2) as engine:
            engine.ingest(turns(30), token_budget=PLENTY)
            assert engine.focus(TASK).status == "active"
            assert kinds(engine) == ["focus_brief", "turn", "turn"]

    def test_nothing_stored_is_changed(self, engine: Engine) -> None:
        engine.compact(token_budget=PLENTY, force=True)
        before = list(engine.export_entries()), engine.summaries(limit=1000)
        engine.focus(TASK)
        assert (list(engine.export_entries()), engine.summaries(limit=1000)) == before
        assert violations(engine.store) == []

    def test_text_and_prompt_of_the_brief_are_escaped(self, engine: Engine) -> None:
        engine.focus('say "<1>" & go on')
        text = contents(engine)[0]
        assert "the brief &lt;1&gt; &amp; more" in text
        assert 'prompt="say &quot;&lt;1&gt;&quot; &amp; go on"' in text
        assert text.startswith("<focus_brief id=")
        assert text.endswith("</focus_brief>")

    def test_the_summariser_reads_the_summaries_and_the_task(
        self, engine: Engine, writer: Writer
    ) -> None:
        engine.focus(TASK)
        (request,) = writer.briefs
        assert (request.focus, request.target_tokens) == (TASK, 12_000)
        assert {item.role for item in request.items} == {"summary"}
        assert TASK in request.prompt.user

    def test_and_the_messages_that_have_to_do_with_the_task_and_those_beside_them(
        self, database: Path, writer: Writer
    ) -> None:
        with memory(database, writer) as engine:
            telling = {"role": "user", "content": "the staging database has port 5544" + " ¤" * 9}
            engine.ingest([*turns(6), telling, *turns(6, first=6)], token_budget=PLENTY)
            engine.focus("notes on the port of the staging database")
            (request,) = writer.briefs
            said = [item.text[:6] for item in request.items if item.role != "summary"]
        assert said == ["turn 4", "turn 5", "the st", "turn 6", "turn 7"]

    def test_a_brief_is_in_every_assembly_and_within_its_budget(
        self, engine: Engine, writer: Writer
    ) -> None:
        writer.brief = lambda request: "¤" * 250
        engine.focus(TASK)
        for budget in (10_000, 500, 256):
            context = engine.assemble(token_budget=budget)
            assert context.messages[0]["content"].startswith("<focus_brief")
            assert context.estimated_tokens <= budget

    def test_a_brief_that_is_shorter_than_expected_is_shown_with_a_warning(
        self, engine: Engine
    ) -> None:
        result = engine.focus(TASK)
        assert result.warnings == ["the brief has 2 tokens, fewer than the 7,200 that are expected"]

    def test_the_offline_summariser_writes_one_too(self, database: Path) -> None:
        with lcm_fast.open(database, config={"freshTailCount": 2}) as engine:
            notes = [
                {"role": "user", "content": f"Note {n}: the port of host{n} is {5000 + n}. " * 20}
                for n in range(60)
            ]
            engine.ingest(notes)
            result = engine.focus("what is the port of host7?")
            text = contents(engine)[0]
        assert result.status == "active"
        assert "5007" in text

    def test_a_second_one_supersedes_the_first(
        self, engine: Engine, writer: Writer, clock: Clock
    ) -> None:
        first = engine.focus(TASK).brief
        writer.brief = lambda request: "another ¤"
        clock.advance(minutes=1)
        second = engine.focus("something else").brief
        assert first is not None
        assert second is not None
        assert "another" in contents(engine)[0]
        assert engine.store.latest_brief(second.conversation_id) == second
        assert [brief.brief_id for brief in engine.store.briefs()] == [second.brief_id]

    def test_with_nothing_summarised_there_is_nothing_to_do(self, database: Path) -> None:
        with memory(database, Writer(), fresh_tail_count=64) as engine:
            engine.ingest(turns(4), token_budget=PLENTY)
            assert engine.focus(TASK).status == "nothing"
            assert engine.store.briefs() == []

    def test_a_blank_prompt_is_refused(self, engine: Engine) -> None:
        with pytest.raises(ConfigError, match="the prompt is blank"):
            engine.focus("  ")

    def test_an_unknown_conversation_is_an_error(self, engine: Engine) -> None:
        with pytest.raises(NotFoundError):
            engine.focus(TASK, session_key="nowhere")

    def test_another_engine_shows_it_at_once(self, engine: Engine, database: Path) -> None:
        with memory(database, Writer()) as other:
            assert "focus_brief" not in kinds(other)
            engine.focus(TASK)
            assert kinds(other)[0] == "focus_brief"

    def test_it_is_shown_after_a_restart(self, database: Path) -> None:
        with memory(database, Writer()) as engine:
            engine.ingest(turns(12), token_budget=PLENTY)
            engine.focus(TASK)
            before = contents(engine)
        with memory(database, Writer()) as engine:
            assert contents(engine) == before

    def test_prompt_aware_assemblies_show_it_as_well(self, database: Path) -> None:
        with memory(database, Writer(), prompt_aware_eviction=True) as engine:
            engine.ingest(turns(12), token_budget=PLENTY)
            engine.focus(TASK)
            engine.ingest(turns(12, first=12), token_budget=PLENTY)
            context = engine.assemble(token_budget=600, prompt="turn 13")
        assert context.stats.selection == "prompt-aware"
        assert context.messages[0]["content"].startswith("<focus_brief")

    def test_the_figures_tell_messages_and_summaries_from_the_brief(self, engine: Engine) -> None:
        engine.focus(TASK)
        stats = engine.assemble(token_budget=PLENTY).stats
        assert (stats.raw_messages, stats.summaries, stats.context_items) == (2, 0, 3)
        assert "focus brief" in stats.reason

    def test_the_fingerprint_of_the_prefix_changes_with_it(self, engine: Engine) -> None:
        engine.compact(token_budget=PLENTY, force=True)
        prints = [engine.assemble(token_budget=PLENTY).prefix.fingerprint]
        for step in (lambda: engine.focus(TASK), engine.unfocus):
            step()
            prints.append(engine.assemble(token_budget=PLENTY).prefix.fingerprint)
        assert prints[0] != prints[1]
        assert prints[1] != prints[2]

    def test_messages_and_summaries_that_come_later_are_shown_behind_it(
        self, engine: Engine
    ) -> None:
        engine.focus(TASK)
        engine.ingest(turns(8, first=12), token_budget=PLENTY)
        assert kinds(engine) == ["focus_brief", *["turn"] * 10]
        engine.compact(token_budget=PLENTY, force=True)
        shown = kinds(engine)
        assert shown[0] == "focus_brief"
        assert shown[1] == "summary"
        assert shown[-2:] == ["turn", "turn"]

    def test_asyncio_has_the_same(self, database: Path) -> None:
        async def main() -> list[str]:
            async with lcm_fast.aio.open(database, config={"freshTailCount": 2}) as engine:
                said = [{"role": "user", "content": f"{n}: " + "word " * 200} for n in range(20)]
                await engine.ingest(said)
                one = await engine.focus(TASK)
                two = await engine.refocus()
                status = await engine.focus_status()
                three = await engine.unfocus()
                assert status.brief == one.brief
                return [one.status, two.status, three.status]

        assert asyncio.run(main()) == ["active", "current", "inactive"]


class TestFailure:
    def test_what_was_shown_is_shown_still(self, engine: Engine, writer: Writer) -> None:
        engine.focus(TASK)
        before = contents(engine)

        def fails(request: SummaryRequest) -> str:
            raise SummarizerOutageError("no answer")

        writer.brief = fails
        result = engine.focus("something else")
        assert (result.status, contents(engine)) == ("failed", before)
        assert "no answer" in result.reason
        assert result.brief is not None
        assert result.brief.prompt == TASK

    def test_it_is_named_by_the_status(self, engine: Engine, writer: Writer) -> None:
        writer.brief = lambda request: ""
        assert engine.focus(TASK).status == "failed"
        found = lcm_fast.status(engine)
        assert [brief["status"] for brief in found.focus] == ["failed"]
        assert [problem["code"] for problem in found.problems] == ["focus_failed"]
        assert engine.focus_status().latest is not None

    def test_a_deterministic_fallback_is_no_brief(self, engine: Engine, writer: Writer) -> None:
        writer.brief = lambda request: "¤" * 100_000
        assert engine.focus(TASK).status == "failed"
        assert "focus_brief" not in kinds(engine)

    def test_a_compaction_that_fails_before_it_ends_it(
        self, database: Path, writer: Writer
    ) -> None:
        def fails(request: SummaryRequest) -> str:
            raise SummarizerOutageError("no answer")

        with memory(database, fails) as engine:
            engine.ingest(turns(12), token_budget=PLENTY)
            result = engine.focus(TASK)
            assert result.status == "failed"
            assert "could not be compacted first" in result.reason
            assert engine.store.briefs() == []

    def test_a_success_after_it_clears_it(
        self, engine: Engine, writer: Writer, clock: Clock
    ) -> None:
        good, writer.brief = writer.brief, lambda request: ""
        engine.focus(TASK)
        writer.brief = good
        clock.advance(minutes=1)
        engine.focus(TASK)
        assert lcm_fast.status(engine).problems == []

    def test_an_interrupt_passes_and_leaves_no_draft(self, engine: Engine, writer: Writer) -> None:
        def interrupted(*_: object) -> str:
            raise KeyboardInterrupt

        engine.compact(token_budget=PLENTY, force=True)
        engine.upkeep.backend.answer = interrupted  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            engine.focus(TASK)
        assert [brief.status for brief in engine.store.briefs()] == ["failed"]

    def test_calls_that_led_to_nothing_are_counted(self, engine: Engine, writer: Writer) -> None:
        engine.compact(token_budget=PLENTY, force=True)
        before = sum(one.calls for one in engine.store.model_usage())
        writer.brief = lambda request: ""
        engine.focus(TASK)
        assert sum(one.calls for one in engine.store.model_usage()) == before + 2


class TestRefocus:
    def test_without_a_brief_there_is_nothing_to_do(self, engine: Engine) -> None:
        assert engine.refocus().status == "nothing"

    def test_with_nothing_new_it_is_current(self, engine: Engine, writer: Writer) -> None:
        brief = engine.focus(TASK).brief
        result = engine.refocus()
        assert (result.status, result.brief) == ("current", brief)
        assert len(writer.briefs) == 1

    def test_it_reads_the_brief_and_what_was_summarised_since(
        self, engine: Engine, writer: Writer
    ) -> None:
        first = engine.focus(TASK).brief
        assert first is not None
        known = {item.id for item in writer.briefs[0].items}
        engine.ingest(turns(8, first=12), token_budget=PLENTY)
        writer.brief = lambda request: "carried on ¤"
        result = engine.refocus()
        assert result.status == "active"
        ids = [item.id for item in writer.briefs[1].items]
        assert ids[0] == first.brief_id
        assert len(ids) > 1
        assert known.isdisjoint(ids[1:])
        assert writer.briefs[1].focus == TASK
        assert kinds(engine) == ["focus_brief", "turn", "turn"]


class TestUnfocus:
    def test_the_summaries_are_shown_again(self, engine: Engine) -> None:
        engine.compact(token_budget=PLENTY, force=True)
        before = contents(engine)
        engine.focus(TASK)
        assert engine.unfocus().status == "inactive"
        assert contents(engine) == before

    def test_without_a_brief_there_is_nothing_to_do(self, engine: Engine) -> None:
        assert engine.unfocus().status == "nothing"

    def test_a_compaction_that_fails_after_it_is_told_and_changes_nothing(
        self, engine: Engine
    ) -> None:
        engine.focus(TASK)
        engine.ingest(turns(8, first=12), token_budget=PLENTY)

        def fails(*_: object) -> str:
            raise SummarizerOutageError("no answer")

        engine.upkeep.backend.answer = fails  # type: ignore[method-assign]
        result = engine.unfocus()
        assert result.status == "inactive"
        assert "could not be compacted" in result.reason
        assert "focus_brief" not in kinds(engine)


class TestStatus:
    def test_without_a_brief_it_is_empty(self, engine: Engine) -> None:
        found = engine.focus_status()
        assert (found.brief, found.latest, found.is_stale) == (None, None, False)

    def test_it_tells_what_the_brief_was_written_from(self, engine: Engine) -> None:
        engine.focus(TASK)
        found = engine.focus_status()
        assert found.brief is not None
        assert found.brief.covered_message_seq == 10
        summaries = [row.summary_id for row in engine.summaries(limit=1000)]
        assert set(found.sources["active_input"]) <= set(summaries)
        assert (found.delta.messages, found.delta.summaries) == (2, 0)
        assert not found.is_stale

    def test_what_was_summarised_since_makes_it_stale(self, engine: Engine) -> None:
        engine.focus(TASK)
        engine.ingest(turns(8, first=12), token_budget=PLENTY)
        assert not engine.focus_status().is_stale
        engine.compact(token_budget=PLENTY, force=True)
        found = engine.focus_status()
        assert found.is_stale
        assert found.delta.summaries > 0

    def test_the_status_of_the_memory_lists_it(self, engine: Engine) -> None:
        brief = engine.focus("x" * 300).brief
        assert brief is not None
        (found,) = lcm_fast.status(engine).focus
        assert (found["brief_id"], found["status"]) == (brief.brief_id, "active")
        assert found["prompt"] == "x" * 160
