"""Reading a log for scoring: every fact, without the texts that no score needs.

Prompts and outputs of model calls stay in the file. An item's text is read once per log, however many questions it was
retrieved for, and the raw output only on request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from memarena.log.records import RECORD_ADAPTER, AnyRecord, GatewayCall, HeldText, QuestionAsked, RetrievedItem
from memarena.log.serialization import object_of, unpack_text
from memarena.log.store import LogReader, Row
from memarena.log.texts import split_ids


@dataclass(frozen=True, slots=True, eq=False)
class ProjectedItem:
    """An item of a search, as far as scoring needs it. A log's reader makes each once, so that identity is equality."""

    text: str
    session_ids: tuple[str, ...]
    """As the backend names them."""
    size_bytes: int
    """Of the text as UTF-8."""
    held: HeldText | None = None
    """What its text bears out; None where that was not measured."""
    turn_ids: tuple[str, ...] = ()
    """As the backend names them."""

    @classmethod
    def of(cls, item: RetrievedItem) -> ProjectedItem:
        """From the item as the log's record holds it."""
        return cls(item.text, item.session_ids, len(item.text.encode()), item.held, item.turn_ids)


@dataclass(frozen=True, slots=True)
class ProjectedItems:
    """Items of one search in their order. Equal keys (where there is one) mean equal items."""

    items: tuple[ProjectedItem, ...]
    key: str | None = None


NOTHING = ProjectedItems(())


@dataclass(frozen=True, slots=True)
class ProjectedAttempt:
    """An attempt at a question without the texts of its items."""

    record: QuestionAsked
    """With the items of search and answer taken out, and ``raw`` empty unless requested."""
    found: ProjectedItems
    """Of Search."""
    read: ProjectedItems
    """What the answer was read from, where that differs; else empty."""

    @classmethod
    def of(cls, record: QuestionAsked) -> ProjectedAttempt:
        """From the whole record."""
        search, answer = record.search, record.answer
        projected = record.model_copy(
            update={
                "search": search.model_copy(update={"items": ()}) if search else None,
                "answer": answer.model_copy(update={"items": ()}) if answer else None,
            }
        )
        return cls(projected, _seen(search.items if search else ()), _seen(answer.items if answer else ()))


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

    @classmethod
    def of(cls, call: GatewayCall) -> ProjectedCall:
        """From the whole record."""
        return cls(
            call.call_id,
            call.cell_id,
            call.phase,
            call.first_content_ns,
            call.last_content_ns,
            call.server_prompt_ms,
            call.prompt_tokens,
            call.completion_tokens,
            call.done_ns,
            call.refusal,
            call.from_cache,
            call.cached_tokens,
            call.route,
            call.status,
        )


_CALL = TypeAdapter(ProjectedCall)
"""Reads a call's body without building its texts."""
_ITEMS = TypeAdapter(tuple[RetrievedItem, ...])
_IDS = TypeAdapter(tuple[str, ...])

WantsRaw = Callable[[str], bool]
"""Whether the raw output of a question (by instance id) is needed."""


def read_projection(
    run_dir: Path, *kinds: str, wants_raw: WantsRaw
) -> Iterator[AnyRecord | ProjectedAttempt | ProjectedCall]:
    """Records in the order in which they were written, attempts and model calls without their texts.

    Raises :class:`LogError` as :func:`read_records` does.
    """
    with LogReader(run_dir) as log:
        yield from log.parsed(_ProjectionReader(log, wants_raw).read, *kinds)


class _ProjectionReader:
    """Holds each item once."""

    def __init__(self, log: LogReader, wants_raw: WantsRaw) -> None:
        self._log = log
        self._wants_raw = wants_raw
        self._items: dict[int, ProjectedItem] = {}
        self._results: dict[str, ProjectedItems] = {}

    def read(self, row: Row) -> AnyRecord | ProjectedAttempt | ProjectedCall:
        """The record of a row."""
        if row.kind == "asked":
            return self._asked(row.body)
        return _CALL.validate_json(row.body) if row.kind == "gateway_call" else RECORD_ADAPTER.validate_json(row.body)

    def _asked(self, body: str) -> ProjectedAttempt:
        """An attempt from its body."""
        whole = object_of(body)
        search, answer = whole["search"], whole["answer"]
        found = self._taken(search)
        read = self._taken(answer)
        if isinstance(answer, dict):
            wanted = self._wants_raw(str(whole["instance_id"]))
            answer["raw"] = unpack_text(answer["raw"], self._log.texts) if wanted else ""
        return ProjectedAttempt(QuestionAsked.model_validate(whole), found, read)

    def _taken(self, span: object) -> ProjectedItems:
        """Takes the items out of a span; one that is no object is left for the record's own check."""
        items = span.pop("items", None) if isinstance(span, dict) else None
        if not items:
            return NOTHING
        if not isinstance(items, dict):
            return _seen(_ITEMS.validate_python(items))
        key = str(items["t"])
        known = self._results.get(key)
        if known is None:
            known = ProjectedItems(tuple(self._item(number) for number in split_ids(key)), key)
            self._results[key] = known
        return known

    def _item(self, number: int) -> ProjectedItem:
        known = self._items.get(number)
        if known is None:
            stored = object_of(self._log.texts.get(number))
            text = str(stored["text"])
            sessions, turns = (_IDS.validate_python(stored[key]) for key in ("session_ids", "turn_ids"))
            held = None if stored.get("held") is None else HeldText.model_validate(stored["held"])
            known = ProjectedItem(text, sessions, len(text.encode()), held, turns)
            self._items[number] = known
        return known


def _seen(items: tuple[RetrievedItem, ...]) -> ProjectedItems:
    return ProjectedItems(tuple(ProjectedItem.of(item) for item in items))
