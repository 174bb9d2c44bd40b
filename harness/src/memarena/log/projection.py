"""Reads a log for scoring: all records, without the texts that no score needs.

A report needs every record of a run, and would otherwise read each prompt and each output too.
Prompts and outputs of model calls are not read. An item's text is read once per log, even if it was retrieved for many
questions, and the raw output only on request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from memarena.log.records import (
    RECORD_ADAPTER,
    AnswerSpan,
    AnyRecord,
    GatewayCall,
    HeldText,
    QuestionAsked,
    RetrievedItem,
    SearchSpan,
)
from memarena.log.serialization import object_of, unpack_text
from memarena.log.store import LogReader, Row
from memarena.log.texts import split_ids

_OK = 200
# Routes of calls that generate text.
WRITING_ROUTES = frozenset({"/v1/chat/completions", "/v1/completions"})


@dataclass(frozen=True, slots=True, eq=False)
class ProjectedItem:
    """The fields of a search's item that scoring needs. A reader makes each once, so that identity is equality."""

    text: str
    session_ids: tuple[str, ...]
    """Sources that the backend names."""
    size_bytes: int
    """Size of the text in UTF-8."""
    held: HeldText | None = None
    """The turns and sessions that its text contains; None if that was not measured."""
    turn_ids: tuple[str, ...] = ()
    """Sources that the backend names."""

    @classmethod
    def of(cls, item: RetrievedItem) -> ProjectedItem:
        """Return the projection of an item of the log."""
        return cls(item.text, item.session_ids, len(item.text.encode()), item.held, item.turn_ids)


@dataclass(frozen=True, slots=True)
class ProjectedItems:
    """Items of one search in their order. Equal keys, if not None, mean equal items."""

    items: tuple[ProjectedItem, ...]
    key: str | None = None


NOTHING = ProjectedItems(())


@dataclass(frozen=True, slots=True)
class ProjectedAttempt:
    """An attempt at a question without the texts of its items."""

    record: QuestionAsked
    """The record without the items of search and answer, and with ``raw`` empty unless requested."""
    search_items: ProjectedItems
    """Items that Search returned."""
    answer_items: ProjectedItems
    """Items that the answer was read from, if they differ from ``search_items``; else empty."""

    @classmethod
    def of(cls, record: QuestionAsked) -> ProjectedAttempt:
        """Return the projection of a whole record."""
        search, answer = record.search, record.answer
        projected = record.model_copy(
            update={
                "search": search.model_copy(update={"items": ()}) if search else None,
                "answer": answer.model_copy(update={"items": ()}) if answer else None,
            }
        )
        return cls(
            projected, _project_items(search.items if search else ()), _project_items(answer.items if answer else ())
        )


@dataclass(frozen=True, slots=True)
class ProjectedCall:
    """A model call without its texts."""

    call_id: str
    cell_id: str | None
    phase: str
    first_content_ns: int | None
    last_content_ns: int | None
    server_prompt_ms: float | None
    prompt_tokens: int | None
    completion_tokens: int | None
    done_ns: int | None = None
    refusal: str = ""
    from_cache: bool = False
    cached_tokens: int | None = None
    route: str = ""
    status: int = 0

    @property
    def writes(self) -> bool:
        """Whether it is a call that generates text, not one for embeddings or ranks."""
        return self.route in WRITING_ROUTES

    @property
    def gave_nothing(self) -> bool:
        """Whether it should generate text but had none: refused, failed, or cancelled before the first content."""
        return self.writes and self.status != _OK and self.first_content_ns is None

    @classmethod
    def of(cls, call: GatewayCall) -> ProjectedCall:
        """Return the projection of a whole record."""
        return cls(**{field.name: getattr(call, field.name) for field in fields(cls)})


class _StoredSearch(SearchSpan):
    """A search as stored: its items are still packed."""

    items: Any = ()


class _StoredAnswer(AnswerSpan):
    """An answer as stored: items and raw output are still packed."""

    items: Any = ()
    raw: Any = ""


class _StoredAttempt(QuestionAsked):
    """An attempt as stored: items and raw output are still packed."""

    search: _StoredSearch | None = None
    answer: _StoredAnswer | None = None


_CALL = TypeAdapter(ProjectedCall)
"""Reads a call's body without building its texts."""
_ITEMS = TypeAdapter(tuple[RetrievedItem, ...])
_IDS = TypeAdapter(tuple[str, ...])

WantsRaw = Callable[[str], bool]
"""Tells whether the raw output of a question (by instance id) is needed."""


def read_projection(
    run_dir: Path, *kinds: str, wants_raw: WantsRaw
) -> Iterator[AnyRecord | ProjectedAttempt | ProjectedCall]:
    """Yield records in the order in which they were written, attempts and model calls without their texts.

    Raises :class:`LogError` as :func:`read_records` does.
    """
    with LogReader(run_dir) as log:
        yield from log.parsed(_ProjectionReader(log, wants_raw).read, *kinds)


class _ProjectionReader:
    """Reads rows, and makes each item once."""

    def __init__(self, log: LogReader, wants_raw: WantsRaw) -> None:
        self._log = log
        self._wants_raw = wants_raw
        self._items: dict[int, ProjectedItem] = {}
        self._results: dict[str, ProjectedItems] = {}

    def read(self, row: Row) -> AnyRecord | ProjectedAttempt | ProjectedCall:
        """Return the record of a row."""
        if row.kind == "asked":
            return self._read_attempt(row.body)
        return _CALL.validate_json(row.body) if row.kind == "gateway_call" else RECORD_ADAPTER.validate_json(row.body)

    def _read_attempt(self, body: str) -> ProjectedAttempt:
        """Return an attempt from its body."""
        record = _StoredAttempt.model_validate_json(body)
        search_items, answer_items = self._without_items(record.search), self._without_items(record.answer)
        if record.answer is not None:
            # Nothing else has a reference to the record yet, so it can be changed without a copy.
            answer = vars(record.answer)
            raw_is_wanted = self._wants_raw(record.instance_id)
            answer["raw"] = unpack_text(answer["raw"], self._log.texts) if raw_is_wanted else ""
        return ProjectedAttempt(record, search_items, answer_items)

    def _without_items(self, span: _StoredSearch | _StoredAnswer | None) -> ProjectedItems:
        """Remove the items from a span, and return them."""
        if span is None or not span.items:
            return NOTHING
        items = vars(span)["items"]
        vars(span)["items"] = ()
        if not isinstance(items, dict):
            return _project_items(_ITEMS.validate_python(items))
        key = str(items["t"])
        cached_items = self._results.get(key)
        if cached_items is None:
            cached_items = ProjectedItems(tuple(self._item(number) for number in split_ids(key)), key)
            self._results[key] = cached_items
        return cached_items

    def _item(self, number: int) -> ProjectedItem:
        """Return the item with this text number, read at most once."""
        item = self._items.get(number)
        if item is None:
            stored = object_of(self._log.texts.get(number))
            text = str(stored["text"])
            sessions, turns = (_IDS.validate_python(stored[key]) for key in ("session_ids", "turn_ids"))
            held_text = None if stored.get("held") is None else HeldText.model_validate(stored["held"])
            item = ProjectedItem(text, sessions, len(text.encode()), held_text, turns)
            self._items[number] = item
        return item


def _project_items(items: tuple[RetrievedItem, ...]) -> ProjectedItems:
    return ProjectedItems(tuple(ProjectedItem.of(item) for item in items))
