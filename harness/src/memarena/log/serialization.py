"""Packs records into bodies without their large texts for storage, and unpacks them again.

Only two kinds have texts that repeat. In ``asked`` the items of search and answer become numbers (an item's text
with its source ids and time is one text) next to their scores, and the raw output becomes numbers; in ``gateway_call``
prompt, output and reasoning do. A packed value is an object in place of the record's list or string, so that bodies of
schema version 1, which have all texts, are read as they are.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pydantic import JsonValue
from pydantic_core import from_json

from memarena.log.records import AnyRecord, GatewayCall, QuestionAsked
from memarena.log.texts import LEAST_PACKED_CHARACTERS, TextReader, TextWriter, join_ids, pieces, split_ids

_CALL_TEXTS = ("prompt", "output", "reasoning")
_MARK = '{"t":'
"""Beginning of each packed value; a body without it has all texts."""

Body = dict[str, Any]
"""A record's body as parsed JSON; used only within this package."""


def pack(record: AnyRecord, texts: TextWriter) -> str:
    """Return the body of a record as stored; its large texts go to ``texts``."""
    if isinstance(record, QuestionAsked):
        body = record.model_dump(mode="json")
        for span in (body["search"], body["answer"]):
            if span is not None and span["items"]:
                span["items"] = _packed_items(span["items"], texts)
        if body["answer"] is not None:
            body["answer"]["raw"] = _packed_text(body["answer"]["raw"], texts)
        return _dumped(body)
    if isinstance(record, GatewayCall):
        body = record.model_dump(mode="json")
        for name in _CALL_TEXTS:
            body[name] = _packed_text(body[name], texts)
        return _dumped(body)
    return record.model_dump_json()


def unpack(kind: str, body: str, texts: Callable[[], TextReader]) -> str | Body:
    """Return the whole body: unchanged if it has all texts, else as an object with its texts restored.

    Raises KeyError or ValueError if it names a text that the log does not have.
    """
    if kind not in ("asked", "gateway_call") or _MARK not in body:
        return body
    whole = object_of(body)
    reader = texts()
    if kind == "gateway_call":
        for name in _CALL_TEXTS:
            whole[name] = unpack_text(whole[name], reader)
        return whole
    # A span that is neither null nor an object is left for the record's own check.
    for span in (whole["search"], whole["answer"]):
        if isinstance(span, dict):
            span["items"] = _unpacked_items(span["items"], reader)
    if isinstance(whole["answer"], dict):
        whole["answer"]["raw"] = unpack_text(whole["answer"]["raw"], reader)
    return whole


def object_of(text: str) -> Body:
    """Parse a JSON object. Raises ValueError if the text is not an object."""
    value = from_json(text)
    if not isinstance(value, dict):
        raise ValueError(f"expected an object, got {'null' if value is None else type(value).__name__}")
    return value


def unpack_text(value: JsonValue, reader: TextReader) -> str:
    """Return a text of a body, packed or not."""
    return reader.joined(split_ids(str(value["t"]))) if isinstance(value, dict) else str(value)


def _packed_text(text: str, texts: TextWriter) -> JsonValue:
    if len(text) < LEAST_PACKED_CHARACTERS:
        return text
    return {"t": join_ids([texts.put(piece) for piece in pieces(text)])}


def _packed_items(items: list[Body], texts: TextWriter) -> JsonValue:
    scores = [item.pop("score") for item in items]
    return {"t": join_ids([texts.put(_dumped(item)) for item in items]), "scores": scores}


def _unpacked_items(value: Any, reader: TextReader) -> Any:
    """Return the items as a list; any value that is not packed is returned unchanged, for the record's own check."""
    if not isinstance(value, dict):
        return value
    ids, scores = split_ids(str(value["t"])), value["scores"]
    if not isinstance(scores, list):
        raise ValueError("scores: expected a list")
    return [{**object_of(reader.get(n)), "score": score} for n, score in zip(ids, scores, strict=True)]


def _dumped(value: Body) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
