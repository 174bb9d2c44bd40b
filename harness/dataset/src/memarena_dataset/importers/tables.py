"""Reads PersonaMem's tables of questions and chat histories: rows, cells that hold lists, sessions from messages."""

from __future__ import annotations

import ast
import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memarena_dataset.errors import DatasetError, FieldError
from memarena_dataset.importers.account import Account
from memarena_dataset.importers.text import clean, truncate_text

Message = tuple[str, str]
"""Role (``user`` or ``assistant``) and text."""

_MESSAGES = 20
"""Messages after which the user's next message begins a session."""
_LONGEST_FIELD = 16 << 20


def columns_of(source: Path) -> Sequence[str]:
    """Return the column titles in the first line of a table. Raises DatasetError if it cannot be read."""
    with _opened(source) as reader:
        return tuple(reader.fieldnames or ())


def rows_of(
    source: Path, needed: Sequence[str], filled: Sequence[str], what: str
) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Yield the number of the line on which each row ends, and the row.

    Args:
        source: the table.
        needed: columns that it must have.
        filled: those of ``needed`` that must not be empty in any row.
        what: name of the data set, for messages.

    Raises:
        DatasetError: the table cannot be read, lacks a column, or a row lacks a field.
    """
    with _opened(source) as reader:
        missing = [column for column in needed if column not in (reader.fieldnames or ())]
        if missing:
            raise DatasetError(f"{source}: no column {missing[0]!r}; a table of {what} is expected")
        for row in reader:
            if None in row or None in row.values():
                raise DatasetError(f"{source}:{reader.line_num}: as many fields as the first line has are expected")
            for column in filled:
                if not row[column].strip():
                    raise DatasetError(f"{source}:{reader.line_num}: {column}: missing")
            yield reader.line_num, row


@contextmanager
def _opened(source: Path) -> Iterator[csv.DictReader[str]]:
    previous_limit = csv.field_size_limit(_LONGEST_FIELD)
    try:
        with source.open(encoding="utf-8-sig", newline="") as stream:
            yield csv.DictReader(stream, strict=True)
    except OSError as error:
        raise DatasetError(f"{source}: cannot be read: {error.strerror}") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise DatasetError(f"{source}: not a table: {error}") from error
    finally:
        csv.field_size_limit(previous_limit)


def literal(text: str, field: str) -> Any:
    """Return the value of a cell that holds JSON or a Python literal. Raises FieldError if it holds neither."""
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    raise FieldError(field, "neither JSON nor a Python literal")


def one_line(text: str) -> str:
    """Return a text as an option of a cloze, which is a single line."""
    return " ".join(clean(text).split())


def sessions_of(messages: Sequence[Any], where: str, account: Account, first: int = 0) -> list[list[Message]]:
    """Return the messages of user and assistant in sessions of 20 or a little more, each from a message of the user on.

    Any other message is skipped and noted in the account under ``where`` and its index, counted from ``first``.
    """
    sessions: list[list[Message]] = []
    for number, message in enumerate(messages, first):
        what = f"{where} message {number}"
        role = message.get("role") if isinstance(message, dict) else None
        if role == "system":
            account.skip(what, "the system's: no person says it")
            continue
        content = message.get("content") if isinstance(message, dict) else None
        if role not in ("user", "assistant") or not isinstance(content, str) or not content.strip():
            account.skip(what, "not a message of user or assistant with a text as content")
            continue
        if not sessions or (role == "user" and len(sessions[-1]) >= _MESSAGES):
            sessions.append([])
        sessions[-1].append((str(role), truncate_text(content, what, account)))
    return sessions
