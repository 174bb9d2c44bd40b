"""Extracting memories from the sessions of a day, and counting what became of each session.

For a reply that it cannot read the library raises whatever exception comes up; its memories do not say whose they are.
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
"""What ``extract`` raises, by no rule, for a reply that is empty, no JSON, or of another shape."""


class _Extractor(GeneralTextMemory):  # type: ignore[misc]
    """The library's extraction with a model of ours; its constructor would make clients and a store."""

    def __init__(self, llm: CallLLM) -> None:
        self.extractor_llm = llm


@dataclass(frozen=True, slots=True)
class Draft:
    """A memory that was extracted and is not stored yet."""

    text: str
    key: str
    tags: tuple[str, ...]
    session_id: str
    said_at: str
    """RFC 3339."""


@dataclass
class Extraction:
    """What came of a day's sessions."""

    sessions: int = 0
    calls: int = 0
    unusable: Counter[str] = field(default_factory=Counter)
    """Replies of which nothing could be used, by reason."""
    refused: dict[str, str] = field(default_factory=dict)
    """Why the model did not take a prompt, by session."""
    drafts: list[Draft] = field(default_factory=list)

    @property
    def empty(self) -> int:
        """Sessions that stored nothing."""
        return self.sessions - len({draft.session_id for draft in self.drafts})

    def notices(self) -> list[Notice]:
        """The counts of the day, as every memory that extracts gives them."""
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
    """Memories of the sessions, each in its parts. Raises CallError where the model fails; nothing is stored."""
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
    heard = llm.replies
    try:
        items = _Extractor(llm).extract([{"role": each.role, "content": each.content} for each in part.messages])
    except _UNREADABLE:
        if llm.last is None or llm.replies == heard:
            raise  # not for what the model said
        unusable[_reason(llm.last)] += 1
        return []
    return [draft for item in items if (draft := _draft(item, part)).text]


def _draft(item: TextualMemoryItem, part: Part) -> Draft:
    tags = tuple(map(_storable, item.metadata.tags or ()))
    return Draft(
        _storable(item.memory).strip(), _storable(item.metadata.key or ""), tags, part.session_id, part.said_at
    )


def _storable(text: str) -> str:
    """Without what JSON can spell and UTF-8 cannot: halves of surrogate pairs."""
    return text.encode(errors="replace").decode()


def _each_once(reasons: Mapping[str, str]) -> str:
    return "; ".join(dict.fromkeys(reasons.values()))


def _reason(reply: Chat) -> str:
    if not reply.text.strip():
        return "empty"
    return "cut off" if reply.finish_reason == "length" else "of another form"
