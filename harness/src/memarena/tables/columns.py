"""Declares the tables of a run and their columns, from which rows, Arrow schemas and the guide are generated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

ColumnType = Literal["text", "integer", "number", "boolean"]
Value = str | int | float | bool | None
Row = dict[str, Value]
"""By column of its table, in their order: the value, or None."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name (with the unit, if any), type and meaning."""

    name: str
    type: ColumnType
    meaning: str
    gold: bool = False
    """Whether it reveals right answers; such columns are left out unless requested."""


CELLS = (
    Column("cell_id", "text", "backend@reader/seed; names the cell in every table"),
    Column("backend", "text", "name of the memory"),
    Column("backend_version", "text", "as its Describe says"),
    Column("reader", "text", "name of the reader"),
    Column("seed", "text", "s1 is greedy, s2 to s4 sample"),
    Column("temperature", "number", "of the reader"),
    Column("diagnostic", "boolean", "a baseline, not a competitor"),
    Column("planned", "integer", "questions"),
    Column("correct", "integer", "questions"),
    Column("wrong", "integer", "questions"),
    Column("backend_failed", "integer", "questions; count as wrong"),
    Column("infra_failed", "integer", "questions that a model server or the harness failed; not counted"),
    Column("reader_not_applicable", "integer", "questions whose prompt the reader could not read; not counted"),
)
SCORES = (
    Column("cell_id", "text", ""),
    Column("figure", "text", "as in `memarena report --format json`"),
    Column("value", "number", "None: not measured, or only a range"),
    Column("low", "number", "end of the range, all unmeasured questions wrong"),
    Column("high", "number", "end of the range, all unmeasured questions right"),
    Column("interval_low", "number", "95% interval, egos drawn with replacement"),
    Column("interval_high", "number", "95% interval"),
)
QUESTIONS = (
    Column("instance_id", "text", "names the question in every table"),
    Column("ego", "text", "the person whose memory is asked"),
    Column("family", "text", "of the data set"),
    Column("dimension", "text", "of scoring"),
    Column("day", "integer", "after which it is asked, counted from 0"),
    Column("asked_at", "text", "ISO 8601, in the world's time"),
    Column("asker", "text", "owner, known_person or anonymous"),
    Column("relationship", "text", "of a known person to the ego"),
    Column("lag_days", "integer", "from the newest evidence to the question"),
    Column("question", "text", "as the memory gets it"),
    Column("gold_json", "text", "the right answer as the data set holds it", gold=True),
    Column("evidence_session_ids", "text", "sessions that state it, separated by blanks", gold=True),
)
ANSWERS = (
    Column("cell_id", "text", ""),
    Column("instance_id", "text", ""),
    Column("outcome", "text", "correct, wrong, backend_failed, infra_failed, reader_not_applicable; None: not asked"),
    Column("attempts", "integer", "the last one counts"),
    Column("answer", "text", "after parsing; None where none arrived"),
    Column("cause", "text", "of a failure, in one line"),
    Column("token_f1", "number", "of answer and gold, 0 to 1", gold=True),
    Column("decided_by", "text", "what decided it"),
    Column("why", "text", "why it is right or wrong, in one line", gold=True),
    Column("stage", "text", "where a wrong answer went wrong: not_ingested, not_retrieved, cut_from_prompt, misread"),
    Column("behaviour", "text", "D6: label of what the answer did"),
    Column("disclosed", "boolean", "D6: whether it tells the protected fact"),
    Column("allowed", "boolean", "D6: whether the asker may know it", gold=True),
    Column("items", "integer", "that Search returned"),
    Column("evidence_sessions", "integer", "that answer the question", gold=True),
    Column("found_at_k", "integer", "of these, among the first k items"),
    Column("found", "integer", "of these, among all items"),
    Column("first_rank", "integer", "of the first item with evidence, counted from 1"),
    Column("context_tokens", "number", "of the items, by the harness's count"),
)
TIMINGS = (
    Column("cell_id", "text", ""),
    Column("instance_id", "text", ""),
    Column("segment", "integer", "0, and one more for each time that the run was resumed"),
    Column("search_ms", "number", "Search, as the harness measures it; the floor is not taken off"),
    Column("ttft_ms", "number", "time to first token of the model call that made the answer, without Search"),
    Column("rest_ms", "number", "of Answer up to its first text, what is not that call"),
    Column("first_delta_ms", "number", "from the call of Answer to its first text"),
    Column("server_prompt_ms", "number", "prompt time as the model server reports it"),
    Column("gateway_ttft_ms", "number", "time to first token at the gateway of the call with server_prompt_ms"),
    Column("reader_calls", "integer", "that gave text"),
    Column("reader_tokens", "integer", "read and written; None where any are unknown"),
)
VERDICTS = (
    Column("cell_id", "text", ""),
    Column("instance_id", "text", ""),
    Column("attempt", "integer", "counted from 0"),
    Column("judge", "text", "its name; verdicts of several stand side by side"),
    Column("judge_version", "text", "SHA-256 of what decides"),
    Column("repeat", "integer", "0 is the verdict that counts"),
    Column("decided_by", "text", "value, text or llm; token_f1 in older logs"),
    Column("correct", "boolean", ""),
    Column("score", "number", "0 to 1"),
    Column("label", "text", "D6: the behaviour"),
    Column("reason", "text", "may quote the right answer", gold=True),
)
REVIEWS = (
    Column("cell_id", "text", ""),
    Column("instance_id", "text", ""),
    Column("attempt", "integer", "that was reviewed, counted from 0"),
    Column("author", "text", "who reviewed the answer in the viewer"),
    Column("at", "text", "ISO 8601, UTC"),
    Column("starred", "boolean", ""),
    Column("judge", "text", "whose verdict the author saw"),
    Column("verdict", "text", "of that judge: correct, wrong, in D6 the behaviour; None: a failed answer"),
    Column("label", "text", "what the author thinks right, in the same words; None: not stated"),
    Column("note", "text", "may quote the right answer", gold=True),
)
TABLES: Mapping[str, tuple[Column, ...]] = {
    "cells": CELLS,
    "scores": SCORES,
    "questions": QUESTIONS,
    "answers": ANSWERS,
    "timings": TIMINGS,
    "verdicts": VERDICTS,
    "reviews": REVIEWS,
}
"""Columns by table."""


def columns_of(table: str, *, gold: bool) -> tuple[Column, ...]:
    """Return the columns of a table, with ``gold`` also those that reveal right answers. Raises KeyError if unknown."""
    return tuple(column for column in TABLES[table] if gold or not column.gold)
