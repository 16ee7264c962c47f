"""The bytes of a message as received, kept next to its text without keeping the text twice.

A message's JSON holds its text once more, escaped. `pack` takes that out (a NUL marks the place;
JSON has none) and compresses the rest with a dictionary of common message skeletons. `unpack` gives
the bytes back exactly. The dictionary is a row of the database, so a database can be read without
this package's version of it. Must not know about tables (design: architecture, section 4).
"""

from __future__ import annotations

import json
import threading

import msgspec
import zstandard

from ..errors import DatabaseError

__all__ = ["DEFAULT_DICTIONARY", "RecordCodec"]

ZSTD = 1  # the blob is a zstd frame
SPLICED = 2  # a NUL stands for the content as UTF-8 JSON
SPLICED_ASCII = 4  # a NUL stands for the content as ASCII JSON

_LEVEL = 3
_MIN_SPLICE = 24  # shorter texts cost less inside the skeleton than a second lookup

_SKELETONS = (
    '{"type":"session","version":3,"id":"","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/home/"}',
    '{"type":"model_change","id":"","parentId":"","timestamp":"","provider":"anthropic",'
    '"modelId":""}',
    '{"type":"custom","customType":"","data":{"timestamp":},"id":"","parentId":"","timestamp":""}',
    '{"role":"user","content":"\0"},{"role":"assistant","content":"\0"}',
    '{"role":"assistant","content":null,"tool_calls":[{"id":"call_","type":"function","function":'
    '{"name":"","arguments":"{\\"path\\":\\""}}]},{"role":"tool","tool_call_id":"call_",'
    '"content":"\0"}',
    '{"role":"assistant","content":[{"type":"text","text":"\0"},{"type":"tool_use",'
    '"id":"toolu_01","name":'
    '"","input":{"command":""}}]},{"role":"user","content":[{"type":"tool_result",'
    '"tool_use_id":"toolu_01",'
    '"content":[{"type":"text","text":"\0"}],"is_error":false}]}',
    '{"type": "message", "id": "", "parentId": "", "timestamp": "",'
    ' "message": {"role": "assistant", '
    '"content": [{"type": "text", "text": \0}, {"type": "toolCall", "id": "call_", "name": "exec", '
    '"arguments": {"command": "",'
    ' "path": ""}}], "usage": {"input": 0, "output": 0}, "timestamp": }}',
    '{"type":"message","timestamp":"","message":{"role":"toolResult","toolCallId":"toolu_01",'
    '"toolName":'
    '"bash","content":[{"type":"text",'
    '"text":\0}],"isError":true,"details":{"diff":""},"timestamp":}}',
    '{"type":"message","id":"","parentId":"","timestamp":"2026-01-01T00:00:00.000Z",'
    '"message":{"role":'
    '"assistant","content":[{"type":"thinking","thinking":"",'
    '"thinkingSignature":""},{"type":"text",'
    '"text":\0},{"type":"toolCall","id":"call_","name":"bash","arguments":{"command":"","path":""},'
    '"partialJson":"{\\"path\\":\\""}],"api":"anthropic-messages","provider":"anthropic","model":'
    '"claude-",'
    '"usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":'
    '0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"stopReason":"toolUse","timestamp":17}}',
    '{"message":{"role":"assistant","content":[{"type":"text","text":\0},{"type":"toolCall",'
    '"id":"call_",'
    '"name":"read","arguments":{"path":"/","query":""}}],"provider":"anthropic","model":"",'
    '"stopReason":'
    '"stop","timestamp":17}}{"message":{"role":"toolResult","toolCallId":"call_","toolName":"grep",'
    '"content":[{"type":"text","text":\0}],"isError":false,"timestamp":17}}',
    '{"type":"message","id":"","parentId":"","timestamp":"2026-01-01T00:00:00.000Z",'
    '"message":{"role":'
    '"user","content":[{"type":"text","text":\0}],"timestamp":17}}',
)
DEFAULT_DICTIONARY = "".join(_SKELETONS).encode()

_Contexts = tuple[zstandard.ZstdCompressor, zstandard.ZstdDecompressor]


class RecordCodec:
    """Packs and unpacks record bytes with one dictionary.

    Threading: safe to share; each thread has its own zstd contexts.
    """

    def __init__(self, dictionary: bytes) -> None:
        self._dictionary = dictionary
        self._contexts = threading.local()

    def pack(self, raw: bytes, content: str) -> tuple[int, bytes]:
        """Return (flags, blob) such that ``unpack(flags, blob, content) == raw``.

        Complexity: linear in ``len(raw)``; about 5 us for a short message.
        """
        flags = 0
        skeleton = raw
        if len(content) >= _MIN_SPLICE and b"\0" not in raw:
            skeleton, flags = _splice(raw, content)
        compressor, _ = self._of_this_thread()
        packed = compressor.compress(skeleton)
        if len(packed) < len(skeleton):
            return flags | ZSTD, packed
        return flags, skeleton

    def unpack(self, flags: int, blob: bytes, content: str) -> bytes:
        """Return the bytes that `pack` was given.

        Raises
        ------
        DatabaseError
            The blob is damaged.
        """
        skeleton = self._decompress(blob) if flags & ZSTD else blob
        if flags & SPLICED:
            return skeleton.replace(b"\0", msgspec.json.encode(content))
        if flags & SPLICED_ASCII:
            return skeleton.replace(b"\0", json.dumps(content).encode())
        return skeleton

    def _decompress(self, blob: bytes) -> bytes:
        _, decompressor = self._of_this_thread()
        try:
            return decompressor.decompress(blob)
        except zstandard.ZstdError as error:
            raise DatabaseError(
                f"a message's bytes cannot be unpacked: {error}",
                code="damaged",
                hint="run `lcm-fast doctor`; restore a backup if it finds damage",
            ) from error

    def _of_this_thread(self) -> _Contexts:
        contexts: _Contexts | None = getattr(self._contexts, "pair", None)
        if contexts is None:
            dictionary = zstandard.ZstdCompressionDict(
                self._dictionary, dict_type=zstandard.DICT_TYPE_RAWCONTENT
            )
            dictionary.precompute_compress(level=_LEVEL)
            contexts = self._contexts.pair = (
                zstandard.ZstdCompressor(
                    dict_data=dictionary, write_checksum=False, write_dict_id=False
                ),
                zstandard.ZstdDecompressor(dict_data=dictionary),
            )
        return contexts


def _splice(raw: bytes, content: str) -> tuple[bytes, int]:
    try:
        skeleton = raw.replace(msgspec.json.encode(content), b"\0")
    except UnicodeEncodeError:
        return raw, 0
    if len(skeleton) < len(raw):
        return skeleton, SPLICED
    skeleton = raw.replace(json.dumps(content).encode(), b"\0")
    return skeleton, SPLICED_ASCII if len(skeleton) < len(raw) else 0
