"""Extracts memories from the sessions of a day with MemOS, and counts the outcome of each session.

For a reply that it cannot parse, the library raises various exceptions. Its memories do not name their session, so that
is added here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from memarena_backend import Chat, Notice, PromptRefusedError
from memos.memories.textual.general import GeneralTextMemory  # type: ignore[import-not-found]
from memos.memories.textual.item import TextualMemoryItem  # type: ignore[import-not-found]

from memarena_backend_memos.conversation import Part
from memarena_backend_memos.models import CallLLM

_UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, RecursionError)
"""Exceptions of ``extract`` for a reply that is empty, no JSON, or of another form."""


class _Extractor(GeneralTextMemory):  # type: ignore[misc]
    """The library's extraction with the model of this call; its own constructor would make clients and a store."""

    def __init__(self, llm: CallLLM) -> None:
        self.extractor_llm = llm


@dataclass(frozen=True, slots=True)
class Draft:
    """An extracted memory that is not stored yet."""

    text: str
    key: str
    tags: tuple[str, ...]
    session_id: str
    said_at: str
    """Time of the first message of its part, RFC 3339."""


@dataclass
class Extraction:
    """The memories extracted from a day's sessions, and counts of their outcomes."""

    sessions: int = 0
    calls: int = 0
    unusable: Counter[str] = field(default_factory=Counter)
    """Number of unusable replies by reason."""
    refused: dict[str, str] = field(default_factory=dict)
    """Why the model rejected a prompt, by session id."""
    drafts: list[Draft] = field(default_factory=list)

    @property
    def empty(self) -> int:
        """Return the number of sessions without a memory."""
        return self.sessions - len({draft.session_id for draft in self.drafts})

    def notices(self) -> list[Notice]:
        """Return the counts as notices, with the codes that all extracting memories use."""
        unusable = self.unusable.total()
        reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(self.unusable.items()))
        notices = [
            Notice("sessions_given", "sessions with text", self.sessions),
            Notice("extraction_calls", "calls of the extracting model", self.calls),
            Notice("extraction_unusable", f"replies that could not be used: {reasons}", unusable),
            Notice("extraction_empty", "sessions that stored nothing", self.empty),
            Notice("sessions_failed", f"sessions that were lost: {_each_once(self.refused)}", len(self.refused)),
            Notice("memories_stored", "memories added", len(self.drafts)),
        ]
        always = ("sessions_given", "memories_stored")
        return [notice for notice in notices if notice.count or notice.code in always] if self.sessions else []


def extract(llm: CallLLM, sessions: Iterable[Sequence[Part]]) -> Extraction:
    """Extract the sessions, each a sequence of parts, without storing anything. Raises CallError if the model fails."""
    result = Extraction()
    for parts in sessions:
        result.sessions += 1
        for part in parts:
            try:
                result.drafts += _extract_part(llm, part, result.unusable)
            except PromptRefusedError as error:
                result.refused[part.session_id] = str(error)
    result.calls = llm.calls
    return result


def _extract_part(llm: CallLLM, part: Part, unusable: Counter[str]) -> list[Draft]:
    replies_before = llm.replies
    try:
        items = _Extractor(llm).extract([{"role": line.role, "content": line.content} for line in part.messages])
    except _UNREADABLE:
        if llm.last is None or llm.replies == replies_before:
            raise  # the model did not reply, so its reply is not the cause
        unusable[_reason(llm.last)] += 1
        return []
    return [draft for item in items if (draft := _draft(item, part)).text]


def _draft(item: TextualMemoryItem, part: Part) -> Draft:
    tags = tuple(map(_storable, item.metadata.tags or ()))
    return Draft(
        _storable(item.memory).strip(), _storable(item.metadata.key or ""), tags, part.session_id, part.said_at
    )


def _storable(text: str) -> str:
    """Return the text with lone surrogates replaced, which JSON can write but UTF-8 cannot."""
    return text.encode(errors="replace").decode()


def _each_once(reasons: Mapping[str, str]) -> str:
    return "; ".join(dict.fromkeys(reasons.values()))


def _reason(reply: Chat) -> str:
    if not reply.text.strip():
        return "empty"
    return "cut off" if reply.finish_reason == "length" else "of another form"
