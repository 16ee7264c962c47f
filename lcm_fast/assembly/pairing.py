"""Make the tool exchanges of an output complete: each call answered right after it, each result called for.

A list of pieces in, a list of pieces out, one pass with an index by opener (spec S; decision 5). Nothing the
record holds is replaced: a placeholder stands only where the record lacks the partner. Calls of a turn that
was cut off and never answered are left out, as providers refuse them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from ..transcripts import shapes
from ..types import Shape, ToolCall
from .pieces import Piece, placeholder

__all__ = ["MISSING_RESULT", "pair_tool_exchanges"]

CountTokens = Callable[[str], int]

MISSING_RESULT = "[lcm_fast] no result of this tool call is in the record"
MISSING_CALL = "[lcm_fast] the call that this result answers is not in the record"


def pair_tool_exchanges(pieces: list[Piece], count_tokens: CountTokens) -> list[Piece]:
    """Return the pieces with results moved behind their calls and placeholders where a partner is missing.

    Parameters
    ----------
    pieces
        In order. Messages are changed by replacing them, never in place.

    Returns
    -------
    list of Piece
        Every call has exactly one result and every result exactly one call, ids unique.

    Complexity: linear in the pieces.
    """
    return _Pairing(pieces, count_tokens).run()


class _Pairing:
    def __init__(self, pieces: list[Piece], count_tokens: CountTokens) -> None:
        self._pieces = pieces
        self._count_tokens = count_tokens
        self._results: dict[int, list[Piece]] = defaultdict(list)
        for piece in pieces:
            if piece.answers and piece.opener != piece.ordinal:
                self._results[piece.opener].append(piece)
        self._callers = {piece.ordinal for piece in pieces if piece.calls}
        self._emitted: set[int] = set()
        self._used_ids: set[str] = set()
        self._output: list[Piece] = []

    def run(self) -> list[Piece]:
        for piece in self._pieces:
            if id(piece) in self._emitted:
                continue
            if piece.calls:
                self._emit_exchange(piece)
            elif not piece.answers:
                self._output.append(piece)
            elif piece.opener not in self._callers or piece.opener == piece.ordinal:
                self._emit_orphan(piece)
        return self._output

    def _emit_exchange(self, caller: Piece) -> None:
        """Emit a call, its results in the order of the calls, and placeholders for those that are missing."""
        answered: dict[str, Piece] = {}
        for result in self._results.get(caller.ordinal, ()):
            for call_id in result.answers:
                answered.setdefault(call_id, result)
        if shapes.is_terminal(caller.message):
            caller = self._without_unanswered(caller, answered)
            if not caller.calls:
                if not shapes.is_empty(caller.message):
                    self._output.append(caller)
                return
        renamed = self._rename_used_ids(caller)
        self._output.append(caller)
        missing: list[ToolCall] = []
        for call, original_id in zip(caller.calls, renamed, strict=True):
            result = answered.get(original_id)
            if result is None:
                missing.append(call)
            elif id(result) not in self._emitted:
                self._emitted.add(id(result))
                self._output.append(self._with_ids(result, dict(zip(renamed, caller.calls, strict=True))))
        self._emit_missing(caller, missing)

    def _without_unanswered(self, caller: Piece, answered: dict[str, Piece]) -> Piece:
        if all(call.call_id in answered for call in caller.calls):
            return caller
        message = _keep_calls(caller.message, set(answered))
        kept = tuple(call for call in caller.calls if call.call_id in answered)
        return self._changed(caller, message, calls=kept)

    def _rename_used_ids(self, caller: Piece) -> list[str]:
        """Give calls ids that no earlier exchange of the output has; return the ids of the record."""
        originals = [call.call_id for call in caller.calls]
        names: dict[str, str] = {}
        for call_id in originals:
            fresh = call_id
            while fresh in self._used_ids:
                fresh = f"{fresh}_{caller.ordinal}"
            self._used_ids.add(fresh)
            if fresh != call_id:
                names[call_id] = fresh
        if names:
            caller.replace(_rename_calls(caller.message, names), self._count_tokens)
            caller.calls = tuple(
                ToolCall(names.get(call.call_id, call.call_id), call.name) for call in caller.calls
            )
        return originals

    def _with_ids(self, result: Piece, calls: dict[str, ToolCall]) -> Piece:
        names = {
            call_id: calls[call_id].call_id
            for call_id in result.answers
            if call_id in calls and calls[call_id].call_id != call_id
        }
        if names:
            result.replace(_rename_answers(result.message, names), self._count_tokens)
            result.answers = tuple(names.get(call_id, call_id) for call_id in result.answers)
        return result

    def _emit_missing(self, caller: Piece, missing: list[ToolCall]) -> None:
        if not missing:
            return
        shape = shapes.shape_of(caller.message)
        last = self._output[-1]
        if shape == "anthropic" and last.answers and last is not caller:
            blocks = [_result_block(call) for call in missing]
            message = {**last.message, "content": [*last.message["content"], *blocks]}
            last.answers = (*last.answers, *(call.call_id for call in missing))
            last.replace(message, self._count_tokens)
            return
        for message in _missing_results(missing, shape):
            self._output.append(placeholder(caller, message, self._count_tokens))

    def _emit_orphan(self, result: Piece) -> None:
        """Emit a result whose call the record lacks, behind a call that stands in for it."""
        calls = tuple(
            ToolCall(call_id, shapes.tool_name_of(result.message) or "unknown")
            for call_id in result.answers
        )
        message = _missing_calls(calls, shapes.shape_of(result.message))
        caller = placeholder(result, message, self._count_tokens)
        caller.calls = calls
        renamed = self._rename_used_ids(caller)
        self._output.append(caller)
        self._output.append(self._with_ids(result, dict(zip(renamed, caller.calls, strict=True))))

    def _changed(self, piece: Piece, message: dict[str, Any], *, calls: tuple[ToolCall, ...]) -> Piece:
        piece.replace(message, self._count_tokens)
        piece.calls = calls
        return piece


def _keep_calls(message: dict[str, Any], kept: set[str]) -> dict[str, Any]:
    changed = dict(message)
    content = message.get("content")
    if isinstance(content, list):
        changed["content"] = [
            block
            for block in content
            if not _is_call(block) or (block.get("id") or block.get("call_id")) in kept
        ]
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        changed["tool_calls"] = [call for call in calls if call.get("id") in kept]
        if not changed["tool_calls"]:
            del changed["tool_calls"]
    return changed


def _rename_calls(message: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    changed = dict(message)
    for key in ("id", "call_id"):
        if message.get("type") in shapes.CALL_TYPES and message.get(key) in names:
            changed[key] = names[message[key]]
    content = message.get("content")
    if isinstance(content, list):
        changed["content"] = [
            _renamed(block, names, ("id", "call_id")) if _is_call(block) else block for block in content
        ]
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        changed["tool_calls"] = [_renamed(call, names, ("id",)) for call in calls]
    return changed


def _rename_answers(message: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    changed: dict[str, Any] = _renamed(message, names, shapes.CALL_ID_KEYS)
    content = message.get("content")
    if isinstance(content, list):
        changed["content"] = [
            _renamed(block, names, shapes.CALL_ID_KEYS) if _is_result(block) else block for block in content
        ]
    return changed


def _renamed(carrier: dict[str, Any], names: dict[str, str], keys: tuple[str, ...]) -> dict[str, Any]:
    return {
        key: names.get(value, value) if key in keys and isinstance(value, str) else value
        for key, value in carrier.items()
    }


def _is_call(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") in shapes.CALL_TYPES


def _is_result(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") in shapes.RESULT_TYPES


def _missing_results(calls: list[ToolCall], shape: Shape) -> list[dict[str, Any]]:
    if shape == "openai":
        return [
            {"role": "tool", "tool_call_id": call.call_id, "content": MISSING_RESULT} for call in calls
        ]
    if shape == "anthropic":
        return [{"role": "user", "content": [_result_block(call) for call in calls]}]
    if shape == "responses":
        return [
            {"type": "function_call_output", "call_id": call.call_id, "output": MISSING_RESULT}
            for call in calls
        ]
    return [
        {
            "role": "toolResult",
            "toolCallId": call.call_id,
            "toolName": call.name,
            "content": [{"type": "text", "text": MISSING_RESULT}],
            "isError": True,
        }
        for call in calls
    ]


def _result_block(call: ToolCall) -> dict[str, Any]:
    return {
        "type": "tool_result",
        "tool_use_id": call.call_id,
        "content": MISSING_RESULT,
        "is_error": True,
    }


def _missing_calls(calls: tuple[ToolCall, ...], shape: Shape) -> dict[str, Any]:
    if shape == "openai":
        return {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": call.call_id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": "{}"},
                }
                for call in calls
            ],
        }
    if shape == "responses":
        (call,) = calls
        return {"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": "{}"}
    kind, arguments = ("tool_use", "input") if shape == "anthropic" else ("toolCall", "arguments")
    blocks: list[dict[str, Any]] = [{"type": "text", "text": MISSING_CALL}]
    blocks += [
        {"type": kind, "id": call.call_id, "name": call.name, arguments: {}} for call in calls
    ]
    return {"role": "assistant", "content": blocks}
