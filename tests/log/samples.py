"""Sample records for the tests of the log, and a database connection that fails in the middle of a write."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from memarena.log.records import GatewayCall, Problem, QuestionAsked
from memarena_dataset.model import Family

from ..support.logs import make_asked, make_call, make_cell, make_item, make_question, text_gold

TURN = "[text message] Maya Chen: The kiln arrives on Tuesday, and it has to be fetched from Porto by somebody."


def problem(message: str) -> Problem:
    return Problem(at="2026-01-01T00:00:00+00:00", where="a test", cause="infra", message=message)


def asked(number: int, *items: str, raw: str = "") -> QuestionAsked:
    question = make_question(f"q_{number}", Family.QA, text_gold("Porto"), "Where?")
    return make_asked(make_cell("bm25"), question, "Porto", raw=raw, items=[make_item(text, "s1") for text in items])


def call(number: int, prompt: str, output: str = "") -> GatewayCall:
    question = make_question(f"q_{number}", Family.QA, text_gold("Porto"), "Where?")
    record = make_call(f"c{number}", make_cell("bm25"), question, ttft_ms=1, server_ms=1, prompt=prompt)
    return record.model_copy(update={"output": output})


class BreaksOff:
    """A connection on which writing the rows of records raises ``error``, after their texts have been written."""

    def __init__(self, db: sqlite3.Connection, error: Callable[[], BaseException]) -> None:
        self._db = db
        self._error = error

    def __getattr__(self, name: str) -> object:
        return getattr(self._db, name)

    def executemany(self, *_: object) -> None:
        raise self._error()
