"""Parses a row of a file from bytes to a typed record; raises FieldError with the field's path if it cannot be used."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from memarena_dataset.errors import FieldError
from memarena_dataset.io.gold_reading import parse_gold, query_with_options
from memarena_dataset.io.variants import with_members, with_name
from memarena_dataset.model import Agent, Event, Family, Group, Instance, Location, Row, Session

R = TypeVar("R", bound=Row)

Raw = Mapping[str, Any]

MAX_DIGITS = 18
"""Digits of a whole number that every program that reads the data set can hold."""
MAX_DAYS = 36_525
"""Limit of a world's simulated days, a hundred years: every day is sent to every backend, for every ego."""
_HUGE = re.compile(rb"[0-9]{19}|[eE]\+?[0-9]{3}")
"""Occurs in every number that is too large, and possibly in a text."""


def load_json(data: bytes) -> Any:
    """Parse a JSON value from UTF-8 bytes.

    Raises:
        FieldError: not UTF-8, not JSON, too large a number, or NaN or Infinity, which JSON does not have.
    """
    try:
        text = data.decode("utf-8-sig")
        if _HUGE.search(data):  # rare; other rows are parsed without a call for every number
            value = json.loads(text, parse_constant=_refuse_constant, parse_int=_whole, parse_float=_real)
        else:
            value = json.loads(text, parse_constant=_refuse_constant)
        if b"\\ud" in data or b"\\uD" in data:  # only escapes can hold half a surrogate pair, which UTF-8 cannot
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except UnicodeEncodeError as error:
        raise FieldError("", "holds half of a surrogate pair, which is no character") from error
    except UnicodeDecodeError as error:
        raise FieldError("", f"not UTF-8 (byte {error.start})") from error
    except json.JSONDecodeError as error:
        raise FieldError("", f"broken JSON: {error.msg} (column {error.colno})") from error
    except RecursionError as error:
        raise FieldError("", "JSON nested too deeply") from error


def _whole(digits: str) -> int:
    if len(digits.lstrip("-")) > MAX_DIGITS:
        raise FieldError("", f"a whole number of {len(digits):,} digits; at most {MAX_DIGITS} are expected")
    return int(digits)


def _real(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise FieldError("", f"{text[:40]} is too large; a finite number is expected")
    return value


def _refuse_constant(name: str) -> Any:
    raise FieldError("", f"{name} is not JSON; a finite number is expected")


def load_object(data: bytes) -> dict[str, Any]:
    """Parse a JSON object from UTF-8 bytes. Raises FieldError as :func:`load_json`, or if it is not an object."""
    value = load_json(data)
    if not isinstance(value, dict):
        raise FieldError("", f"a JSON object is expected, not {_kind(value)}")
    return value


def _kind(value: Any) -> str:
    kinds = {list: "a list", str: "a text", int: "a number", float: "a number", bool: "a truth value"}
    return kinds.get(type(value), "null")


def to_record(kind: type[R], raw: Raw) -> R:
    """Return a typed row. Null counts as missing for fields that have a default.

    Raises:
        FieldError: the first field that is missing or of a wrong type.
    """
    try:
        return kind.model_validate(_without_nulls(kind, raw))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = ".".join(str(part) for part in first["loc"])
        raise FieldError(path, _say(first["type"], first["msg"])) from error


def _say(kind: str, message: str) -> str:
    words = {"missing": "missing", "tuple_type": "a list is expected"}
    return words.get(kind, message[:1].lower() + message[1:])


def _without_nulls(kind: type[Row], raw: Raw) -> Raw:
    fields = kind.model_fields
    if any(value is None for value in raw.values()):
        raw = {key: value for key, value in raw.items() if value is not None or key not in fields}
    return raw


def _check_id(field: str, value: str) -> None:
    if not value.strip():
        raise FieldError(field, "empty; an id is expected")


def _check_time(field: str, value: float) -> None:
    if not math.isfinite(value) or not 0 <= value < MAX_DAYS:
        raise FieldError(field, f"{value}; a time in simulated days, 0 or later and below {MAX_DAYS:,}, is expected")


MAX_TEXT_BYTES = 256 << 10
"""UTF-8 bytes of a turn's or an event's text that every backend takes (SPEC.md, LIM-1)."""
MAX_QUERY_BYTES = 64 << 10
"""UTF-8 bytes of a question that every backend takes (SPEC.md, LIM-1)."""


def _check_text(field: str, value: str, limit_bytes: int = MAX_TEXT_BYTES) -> None:
    """Refuse a text that backends need not accept, since a backend would be blamed for failing on it."""
    if "\0" in value:
        raise FieldError(field, "holds U+0000, which no backend accepts")
    size = len(value.encode())
    if size > limit_bytes:
        raise FieldError(field, f"is {size:,} bytes long; at most {limit_bytes:,} are expected")


def session_of(raw: Raw) -> Session:
    """Return a session with its turns; a turn without ``session_id`` gets that of the session."""
    turns = raw.get("turns")
    if isinstance(turns, list) and isinstance(raw.get("session_id"), str):
        raw = {**raw, "turns": [_turn_row(turn, raw["session_id"]) for turn in turns]}
    session = to_record(Session, raw)
    _check_id("session_id", session.session_id)
    _check_time("start_time", session.start_time)
    _check_time("end_time", session.end_time)
    for index, turn in enumerate(session.turns):
        _check_id(f"turns.{index}.turn_id", turn.turn_id)
        _check_time(f"turns.{index}.timestamp", turn.timestamp)
        _check_text(f"turns.{index}.text", turn.text)
        if turn.session_id != session.session_id:
            raise FieldError(
                f"turns.{index}.session_id", f"{turn.session_id!r}, but the session is {session.session_id!r}"
            )
    turn_ids = [turn.turn_id for turn in session.turns]
    if len(set(turn_ids)) != len(turn_ids):
        twice = next(turn_id for turn_id in turn_ids if turn_ids.count(turn_id) > 1)
        raise FieldError("turns", f"turn_id {twice!r} occurs twice in the session")
    return session


def _turn_row(turn: Any, session_id: str) -> Any:
    if not isinstance(turn, Mapping):
        return turn
    fields = {key: value for key, value in turn.items() if value is not None}
    nulls = {key: None for key, value in turn.items() if value is None and key not in _TURN_FIELDS}
    return {"session_id": session_id, **fields, **nulls}


_TURN_FIELDS = frozenset(
    {"turn_id", "session_id", "speaker_id", "text", "timestamp", "entities_mentioned", "extracted_facts", "metadata"}
)


def event_of(raw: Raw) -> Event:
    """Return an event, checked."""
    event = to_record(Event, raw)
    _check_id("event_id", event.event_id)
    _check_time("timestamp", event.timestamp)
    _check_text("content", event.content)
    return event


def agent_of(raw: Raw) -> Agent:
    """Return an agent of ``agents_personas``, checked."""
    agent = to_record(Agent, raw)
    _check_id("agent_id", agent.agent_id)
    _check_text("persona.name", agent.name)
    return agent


def group_of(raw: Raw) -> Group:
    """Return a group from any of the forms of its name and members."""
    group = to_record(Group, with_members(with_name(raw, "group")))
    _check_text("name", group.name)
    return group


def location_of(raw: Raw) -> Location:
    """Return a location from any of the forms of its name."""
    location = to_record(Location, with_name(raw, "location"))
    _check_text("name", location.name)
    return location


def instance_of(raw: Raw, family: Family, names: Mapping[str, str]) -> Instance:
    """Return a question with its typed gold.

    ``query_timestamp`` and the evidence are taken from the row or from its ``metadata`` (``meta`` in older files).
    The asker is ``asker_agent_id`` alone: gold never decides what is sent.
    """
    metadata = raw.get("metadata") if raw.get("metadata") is not None else raw.get("meta")
    if metadata is not None and not isinstance(metadata, Mapping):
        raise FieldError("metadata", "an object is expected")
    metadata = metadata or {}
    declared = raw.get("dimension")
    if isinstance(declared, str) and declared != family.value and declared in {other.value for other in Family}:
        raise FieldError("dimension", f"{declared!r} in the file of {family.value}")
    truth = raw.get("ground_truth")
    if not isinstance(truth, Mapping):
        raise FieldError("ground_truth", "missing" if truth is None else "an object is expected")
    for key in ("instance_id", "query", "ego_agent_id"):
        if not isinstance(raw.get(key), str) or not raw[key].strip():
            raise FieldError(key, "missing or empty; a text is expected")
    asker = raw.get("asker_agent_id")
    if asker is not None and not isinstance(asker, str):
        raise FieldError("asker_agent_id", "a text or null is expected")
    gold = parse_gold(family, truth, query=raw["query"], ego=raw["ego_agent_id"], asker=asker or None, names=names)
    query = query_with_options(raw["query"], gold.options) if gold.kind == "cloze" else raw["query"]
    fields = {key: value for key, value in raw.items() if key not in ("ground_truth", "dimension", "meta")}
    instance = to_record(
        Instance,
        {
            **fields,
            "family": family,
            "gold": gold,
            "query": query,
            "asker_agent_id": asker or None,
            "metadata": metadata,
            "query_timestamp": _either(raw, metadata, "query_timestamp", None),
            "evidence_session_ids": _either(raw, metadata, "evidence_session_ids", ()),
            "evidence_turn_ids": _either(raw, metadata, "evidence_turn_ids", ()),
            "sufficient_turn_ids": _either(raw, metadata, "sufficient_turn_ids", ()),
        },
    )
    _check_sufficient(instance)
    _check_text("query", instance.query, MAX_QUERY_BYTES)
    if instance.query_timestamp is not None:
        _check_time("query_timestamp", instance.query_timestamp)
    return instance


def _check_sufficient(instance: Instance) -> None:
    evidence = set(instance.evidence_turn_ids)
    for position, group in enumerate(instance.sufficient_turn_ids):
        field = f"sufficient_turn_ids.{position}"
        if not group:
            raise FieldError(field, "empty; at least one turn id is expected")
        for turn_id in group:
            if turn_id not in evidence:
                raise FieldError(field, f"turn {turn_id!r} is not in evidence_turn_ids")


def _either(raw: Raw, metadata: Raw, key: str, default: Any) -> Any:
    for source in (raw, metadata):
        if source.get(key) not in (None, [], ()):
            return source[key]
    return default


def dump_row(row: Row) -> dict[str, Any]:
    """Return a row as it is written to a file: with every field that was read, also unknown ones, and no others."""
    return row.model_dump(mode="json", exclude_unset=True)
