"""Indexes the sessions of a corpus file by byte offset, without holding their text.

Memory holds a few dozen bytes per session and participant, however long the conversations are. A session is read and
checked again on demand; reads are safe from several threads.
"""

from __future__ import annotations

import math
import os
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import IO

from memarena_dataset.errors import DatasetError, FieldError, RowProblem
from memarena_dataset.io.files import CORPUS, Folder, Line
from memarena_dataset.io.rows import load_object, session_of
from memarena_dataset.model import Session


class Corpus:
    """Offset index over the corpus file of a folder."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._ordinal_of: dict[str, int] = {}
        self._ids: list[str] = []
        self._lines = array("L")
        self._offsets = array("Q")
        self._lengths = array("L")
        self._starts = array("d")
        self._by_agent: dict[str, array[int]] = {}
        self._day_count = 0

    @classmethod
    def scan(
        cls,
        folder: Folder,
        *,
        on_problem: Callable[[RowProblem], None],
        on_session: Callable[[Session, int], None] = lambda session, line: None,
    ) -> Corpus:
        """Index every session of a folder, with one in memory at a time.

        Args:
            folder: the data set.
            on_problem: is called with each row that cannot be used.
            on_session: is called with each usable session and its line number.

        Raises:
            DatasetError: there is no corpus, or it cannot be read.
        """
        stream = folder.spool(CORPUS)
        corpus = cls(stream)
        try:
            for line in folder.lines_of(CORPUS, stream):
                try:
                    session = session_of(load_object(line.data))
                    corpus._add(session, line)
                except FieldError as error:
                    on_problem(RowProblem(CORPUS, error.reason, line.number, error.field))
                else:
                    on_session(session, line.number)
            corpus._sort()
        except BaseException:
            corpus.close()
            raise
        return corpus

    def _add(self, session: Session, line: Line) -> None:
        """Add a session to the index. Raises FieldError if its id occurs a second time."""
        earlier = self._ordinal_of.get(session.session_id)
        if earlier is not None:
            raise FieldError("session_id", f"{session.session_id!r} is also the session of line {self._lines[earlier]}")
        ordinal = len(self._ids)
        self._ordinal_of[session.session_id] = ordinal
        self._ids.append(session.session_id)
        self._lines.append(line.number)
        self._offsets.append(line.offset)
        self._lengths.append(line.length)
        self._starts.append(session.start_time)
        self._day_count = max(self._day_count, session.day + 1)
        for agent_id in dict.fromkeys(session.participants):
            self._by_agent.setdefault(agent_id, array("L")).append(ordinal)

    def _sort(self) -> None:
        for agent_id, ordinals in self._by_agent.items():
            ordered = sorted(ordinals, key=lambda ordinal: (self._starts[ordinal], self._ids[ordinal]))
            self._by_agent[agent_id] = array("L", ordered)

    @cached_property
    def _in_order(self) -> array[int]:
        """Positions of all sessions in the file, ordered by start and id."""
        return array(
            "L", sorted(range(len(self._ids)), key=lambda ordinal: (self._starts[ordinal], self._ids[ordinal]))
        )

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, session_id: object) -> bool:
        return session_id in self._ordinal_of

    @property
    def participants(self) -> tuple[str, ...]:
        """Agent ids of all participants of sessions, in order of first appearance."""
        return tuple(self._by_agent)

    @property
    def day_count(self) -> int:
        """Number of days up to the last day on which a session starts."""
        return self._day_count

    def line_of(self, session_id: str) -> int:
        """Return the line number of a session in the corpus file."""
        return self._lines[self._ordinal(session_id)]

    def start_of(self, session_id: str) -> float:
        """Return the start of a session in simulated days."""
        return self._starts[self._ordinal(session_id)]

    def session_ids_of(self, agent_id: str) -> tuple[str, ...]:
        """Return the ids of the sessions in which an agent takes part, ordered by start and id."""
        return tuple(self._ids[ordinal] for ordinal in self._by_agent.get(agent_id, ()))

    def session_ids(self) -> tuple[str, ...]:
        """Return the ids of all sessions in the order of the file."""
        return tuple(self._ids)

    def day_session_ids(self, agent_id: str | None, day: int) -> tuple[str, ...]:
        """Return the ids of an agent's sessions (None: of all) that start on a day, ordered by start and id."""
        ordinals = self._in_order if agent_id is None else self._by_agent.get(agent_id, array("L"))
        low = bisect_left(ordinals, day, key=lambda ordinal: math.floor(self._starts[ordinal]))
        high = bisect_right(ordinals, day, key=lambda ordinal: math.floor(self._starts[ordinal]))
        return tuple(self._ids[ordinal] for ordinal in ordinals[low:high])

    def session(self, session_id: str) -> Session:
        """Read a session from the file.

        Raises:
            DatasetError: there is no such session, or the file was changed since it was opened.
        """
        ordinal = self._ordinal(session_id)
        length = self._lengths[ordinal]
        try:
            data = os.pread(self._stream.fileno(), length, self._offsets[ordinal])
            session = session_of(load_object(data))
        except (FieldError, OSError, ValueError) as error:
            raise DatasetError(
                f"{CORPUS}:{self._lines[ordinal]}: changed or closed since it was opened: {error}"
            ) from error
        if session.session_id != session_id:
            raise DatasetError(f"{CORPUS}:{self._lines[ordinal]}: changed since it was opened")
        return session

    def sessions(self) -> Iterator[Session]:
        """Yield all sessions in the order of the file, with one in memory at a time."""
        for session_id in self._ids:
            yield self.session(session_id)

    def _ordinal(self, session_id: str) -> int:
        try:
            return self._ordinal_of[session_id]
        except KeyError:
            raise DatasetError(f"{CORPUS}: no session {session_id!r}") from None

    def close(self) -> None:
        """Close the file (and with it a spooled copy)."""
        self._stream.close()
