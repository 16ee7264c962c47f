"""The texts that stand for payloads in a prompt, and the ids inside them.

A reference names its payload, sizes it, sums it up, and ends with the call that reads it back
(spec: storage 2.9.4 and 2.9.9).
"""

from __future__ import annotations

import re

__all__ = [
    "file_reference",
    "image_reference",
    "raw_reference",
    "reference_id",
    "reference_ids",
    "safe_mime_type",
    "safe_name",
    "stub_text",
    "tool_reference",
]

_LONGEST_REFERENCE = 4_000
_LONGEST_NAME = 120

_ID = re.compile(r"(?<![0-9A-Za-z_])file_[0-9a-f]{16}(?![0-9A-Za-z_])", re.IGNORECASE)
_HEADER = re.compile(r"\[LCM (?:File|Tool Output|Raw Payload): (file_[0-9a-f]{16}) \| [^\n]*\]\n\n")
_IMAGE = re.compile(r"\[[A-Z][a-z]+(?: image)?: [^\n]+ bytes\) \| LCM file: (file_[0-9a-f]{16})\]")
_MIME_TYPE = re.compile(r"[a-z0-9.+-]{1,50}/[a-z0-9.+-]{1,80}")


def file_reference(
    file_id: str, name: str | None, mime_type: str | None, byte_size: int, summary: str
) -> str:
    """Return the text that stands for a file a user attached."""
    fields = f"{name or 'unknown'} | {mime_type or 'unknown'} | {byte_size:,} bytes"
    return _reference("File", file_id, fields, summary, "file")


def tool_reference(
    file_id: str,
    tool_name: str | None,
    byte_size: int,
    summary: str,
    *,
    is_truncated_at_source: bool = False,
) -> str:
    """Return the text that stands for a tool's result.

    Parameters
    ----------
    is_truncated_at_source
        The tool itself cut its result: what is kept is not all there was.
    """
    fields = f"tool={tool_name or 'unknown'} | {byte_size:,} bytes"
    if is_truncated_at_source:
        fields += " | truncated at source"
    return _reference("Tool Output", file_id, fields, summary, "output")


def stub_text(item_id: str, tool_name: str, byte_size: int, summary: str) -> str:
    """Return the text that stands for a tool's result that only its message holds."""
    fields = f"tool={tool_name} | {byte_size:,} bytes"
    return _described("Tool Output", item_id, fields, summary, f"{item_id} has the whole output.")


def raw_reference(file_id: str, role: str, reason: str, byte_size: int, summary: str) -> str:
    """Return the text that stands for the whole content of a message."""
    fields = f"role={role} | reason={reason} | {byte_size:,} bytes"
    return _reference("Raw Payload", file_id, fields, summary, "payload")


def image_reference(label: str, file_id: str, name: str, mime_type: str, byte_size: int) -> str:
    """Return the text that stands for a picture.

    >>> image_reference("User image", "file_00112233aabbccdd", "a.png", "image/png", 42150)
    '[User image: a.png (image/png, 42,150 bytes) | LCM file: file_00112233aabbccdd]'
    """
    return f"[{label}: {name} ({mime_type}, {byte_size:,} bytes) | LCM file: {file_id}]"


def reference_ids(text: str) -> list[str]:
    """Return the file ids in a text: in order, each once, in lower case.

    A text that is one whole reference names its own payload alone, whatever ids its summary quotes.

    >>> reference_ids("see file_00112233AABBCCDD, file_0 and file_00112233aabbccdd again")
    ['file_00112233aabbccdd']
    """
    own = reference_id(text)
    if own is not None:
        return [own]
    return list(dict.fromkeys(found[0].lower() for found in _ID.finditer(text)))


def reference_id(text: str) -> str | None:
    """Return the id of the payload that a text is the reference of, None when it is any other.

    A text that quotes a reference among other words is any other.
    """
    if len(text) > _LONGEST_REFERENCE:
        return None
    text = text.strip()
    image = _IMAGE.fullmatch(text)
    if image:
        return image[1]
    header = _HEADER.match(text)
    if header and any(text.endswith(_read_back(header[1], noun)) for noun in _NOUNS):
        return header[1]
    return None


def safe_name(name: str | None) -> str | None:
    r"""Return the last segment of a path on one line, None when nothing of it is a name.

    >>> safe_name("../../etc/pass\nwd"), safe_name("C:\\temp\\a.txt"), safe_name("..")
    ('passwd', 'a.txt', None)
    """
    last = re.split(r"[/\\]", name or "")[-1]
    shown = "".join(filter(str.isprintable, last)).strip()[:_LONGEST_NAME]
    return shown if shown.strip(".") else None


def safe_mime_type(mime_type: str | None) -> str | None:
    """Return a media type without its parameters, None when it is not one.

    >>> safe_mime_type("Text/Markdown; charset=utf-8"), safe_mime_type("a | b")
    ('text/markdown', None)
    """
    bare = (mime_type or "").partition(";")[0].strip().lower()
    return bare if _MIME_TYPE.fullmatch(bare) else None


_NOUNS = ("file", "output", "payload")


def _reference(title: str, file_id: str, fields: str, summary: str, noun: str) -> str:
    return _described(title, file_id, fields, summary, _read_back(file_id, noun))


def _described(title: str, item_id: str, fields: str, summary: str, last_line: str) -> str:
    summary = summary if summary.strip() else "(no summary available)"
    header = f"[LCM {title}: {item_id} | {fields}]"
    return f"{header}\n\nExploration Summary:\n{summary}\n\n{last_line}"


def _read_back(file_id: str, noun: str) -> str:
    """Return the line that names the call which reads a payload back."""
    return (
        f'Call describe(id="{file_id}", expand_file=True) '
        f"to fetch the full {noun} content from disk."
    )
