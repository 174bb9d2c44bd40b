"""What importers share: reading JSON, the account of what was imported, clean text, turn times, rows, safe typing."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import ijson

from memarena_dataset.errors import DatasetError
from memarena_dataset.gold import Gold
from memarena_dataset.io.rows import MAX_TEXT_BYTES
from memarena_dataset.io.writing import ground_truth_of
from memarena_dataset.model import Family
from memarena_dataset.values import AmountValue, DateValue, Value
from memarena_dataset.values.calendar import MONTHS
from memarena_dataset.values.generous import small_number

SECONDS_PER_DAY = 86_400
MAX_NESTING = 100
"""Levels of lists and objects within each other; published files have fewer than ten."""
_SECONDS_PER_TURN = 10.0
_SECONDS_PER_WORD = 0.4
"""About 150 words a minute and a breath between turns."""


@dataclass(frozen=True, slots=True)
class Note:
    """Something that did not come over as it stood. ``skipped``: it is not there; ``changed``: it is, but otherwise."""

    kind: Literal["skipped", "changed"]
    what: str
    reason: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}: {self.reason}"


@dataclass
class Account:
    """What an import did, kept while it runs."""

    source: str
    counts: Counter[str] = field(default_factory=Counter)
    notes: list[Note] = field(default_factory=list)

    def skip(self, what: str, reason: str) -> None:
        """Name something that is left out."""
        self.notes.append(Note("skipped", what, reason))

    def change(self, what: str, reason: str) -> None:
        """Name something that was imported in another form."""
        self.notes.append(Note("changed", what, reason))

    def report(self) -> dict[str, Any]:
        """For ``pipeline_report.json``."""
        return {
            "counts": dict(sorted(self.counts.items())),
            "notes": [{"kind": note.kind, "what": note.what, "reason": note.reason} for note in self.notes],
        }


class LeftOut:
    """Questions that a user leaves out by name, so that a single one that cannot be used stops nothing."""

    def __init__(self, names: Collection[str], account: Account) -> None:
        self._names = set(names)
        self._excluded: set[str] = set()
        self._account = account

    def takes(self, name: Any) -> bool:
        """Whether the question of that id is left out; then it is noted."""
        if name not in self._names:
            return False
        self._excluded.add(name)
        self._account.skip(str(name), "left out as asked")
        return True

    def check(self, source: Path) -> None:
        """Raises DatasetError for an id that no question has."""
        if unknown := sorted(self._names - self._excluded):
            raise DatasetError(f"{source}: --leave-out {unknown[0]}: no question has this id")


def json_of(path: Path) -> tuple[Any, bytes]:
    """What a JSON file holds, and its bytes.

    Raises:
        DatasetError: it is missing, unreadable or not JSON.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read: {error.strerror}") from error
    return json_value(data, str(path)), data


def json_value(data: bytes, where: str) -> Any:
    """What bytes hold as JSON.

    Raises:
        DatasetError: they are not JSON, hold a number of thousands of digits, or are nested too deeply.
    """
    try:
        value = json.loads(data)
    except ValueError as error:  # also of UTF-8, and of numbers that Python does not read
        raise DatasetError(f"{where}: not JSON: {error}") from error
    except RecursionError as error:
        raise _too_deep(where) from error
    level = [value]
    for _ in range(MAX_NESTING):
        inner = [each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list)]
        level = [child for children in inner for child in children]
        if not level:
            return value
    raise _too_deep(where)


def json_events(stream: _Readable, where: str) -> Iterator[tuple[str, Any]]:
    """The events of a JSON file that is too large to be held, for ``ijson.parse``, which has no limit to nesting.

    Raises:
        DatasetError: it is not JSON, holds a number of thousands of digits, or is nested too deeply.
    """
    depth = 0
    try:
        for event, value in ijson.basic_parse(stream, use_float=True):
            depth += _STEPS.get(event, 0)
            if depth > MAX_NESTING:
                raise _too_deep(where)
            yield event, value
    except (ijson.JSONError, ValueError) as error:
        raise DatasetError(f"{where}: not JSON: {' '.join(str(error).split())}") from error


_STEPS = {"start_map": 1, "start_array": 1, "end_map": -1, "end_array": -1}


class _Readable(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...


def _too_deep(where: str) -> DatasetError:
    return DatasetError(f"{where}: JSON nested too deeply: at most {MAX_NESTING} levels are expected")


def slug(text: str) -> str:
    """A text as part of an agent id: lower case, words joined by underscores."""
    return "_".join(re.findall(r"[^\W_]+", text.casefold())) or "unnamed"


def clean(text: str) -> str:
    """Text without U+0000 and half surrogates, which no backend may be sent."""
    return text.replace("\0", "").encode("utf-8", "ignore").decode("utf-8")


def fitting(text: str, what: str, account: Account) -> str:
    """Clean text of a turn, cut where the contract lets no longer one be sent; a cut is noted under ``what``."""
    text = clean(text).strip()
    data = text.encode()
    if len(data) <= MAX_TEXT_BYTES:
        return text
    account.change(what, f"{len(data):,} bytes long: cut to the {MAX_TEXT_BYTES:,} that a turn may have")
    return data[:MAX_TEXT_BYTES].decode("utf-8", "ignore")


def turn_times(start: float, texts: Sequence[str]) -> list[float]:
    """When each turn is said, in simulated days, by its length; pressed together where midnight comes first.

    The last entry is the end of the session, so there is one more than there are turns.
    """
    spans = [_SECONDS_PER_TURN + _SECONDS_PER_WORD * len(text.split()) for text in texts]
    seconds_to_midnight = (int(start) + 1 - start) * SECONDS_PER_DAY - 1
    scale = min(1.0, max(seconds_to_midnight, 0.0) / sum(spans)) if spans else 1.0
    times, elapsed = [start], 0.0
    for span in spans:
        elapsed += span * scale
        times.append(round(start + elapsed / SECONDS_PER_DAY, 7))
    return times


def times_of_day(start: float, sessions: Sequence[Sequence[str]]) -> list[list[float]]:
    """Times of several sessions that follow each other on one day: for each what ``turn_times`` gives for one."""
    times = turn_times(start, [text for texts in sessions for text in texts])
    blocks, first = [], 0
    for texts in sessions:
        blocks.append(times[first : first + len(texts) + 1])
        first += len(texts)
    return blocks


def session_row(
    session_id: str, participants: Sequence[str], start: float, turns: Sequence[Mapping[str, Any]], **more: Any
) -> dict[str, Any]:
    """A session; ``turns`` hold ``turn_id``, ``speaker_id``, ``text`` and whatever else, without times."""
    return timed_session_row(session_id, participants, turn_times(start, [turn["text"] for turn in turns]), turns, more)


def timed_session_row(
    session_id: str,
    participants: Sequence[str],
    times: Sequence[float],
    turns: Sequence[Mapping[str, Any]],
    more: Mapping[str, Any],
) -> dict[str, Any]:
    """A session whose times are known, as a row of the corpus.

    Args:
        session_id: its id.
        participants: ids of all agents in it.
        times: of each turn and of the end, in simulated days, as :func:`turn_times` gives them.
        turns: with ``turn_id``, ``speaker_id``, ``text`` and, where there is some, ``metadata``.
        more: further fields of the row, such as ``modality``.
    """
    others = {speaker: [agent for agent in participants if agent != speaker] for speaker in participants}
    rows = [
        {
            "turn_id": turn["turn_id"],
            "session_id": session_id,
            "speaker_id": turn["speaker_id"],
            "listener_id": others[turn["speaker_id"]][0] if len(participants) == 2 else None,
            "text": turn["text"],
            "timestamp": time,
            "metadata": turn.get("metadata", {}),
        }
        for turn, time in zip(turns, times, strict=False)
    ]
    return {
        "session_id": session_id,
        "participants": list(participants),
        "turns": rows,
        "start_time": times[0],
        "end_time": times[-1],
        **more,
    }


def instance_row(
    instance_id: str,
    family: Family,
    query: str,
    gold: Gold,
    *,
    ego: str,
    sessions: Sequence[str],
    turns: Sequence[str],
    metadata: Mapping[str, Any],
    asker: str | None = None,
) -> dict[str, Any]:
    """A question that the ego puts to its own assistant, or ``asker`` to the ego's, as a row of its family's file.

    Args:
        instance_id: its id.
        family: whose file it goes into.
        query: its words.
        gold: the right answer.
        ego: whose life it is about.
        sessions: ids of the evidence sessions.
        turns: ids of the evidence turns.
        metadata: further fields, such as ``query_timestamp`` in simulated days.
        asker: who asks, if not the ego.
    """
    tiers = {0: "full_ego", 1: "single_session"}
    return {
        "instance_id": instance_id,
        "dimension": family.value,
        "query": query,
        "ground_truth": ground_truth_of(family, gold),
        "asker_agent_id": asker or ego,
        "answerer_agent_id": f"assistant_{ego}",
        "ego_agent_id": ego,
        "evidence_session_ids": list(sessions),
        "context_tier": tiers.get(len(sessions), "cross_session"),
        "metadata": {"evidence_turn_ids": list(turns), **metadata},
    }


_MONTH = "(" + "|".join(MONTHS) + ")"
_DATE_FORMS = (
    (re.compile(rf"(\d{{1,2}})(?:st|nd|rd|th)? ?{_MONTH},? ?(\d{{4}})"), ("day", "month", "year")),
    (re.compile(rf"{_MONTH} (\d{{1,2}})(?:st|nd|rd|th)?,? ?(\d{{4}})"), ("month", "day", "year")),
    (re.compile(rf"{_MONTH}[,.]? ?(\d{{4}})"), ("month", "year")),
    (re.compile(r"(?:in )?(\d{4})"), ("year",)),
)


def plain_date(text: str) -> DateValue | None:
    """A text that is nothing but a date, a month or a year, as a value; None for any other."""
    lowered = text.strip().strip(".").lower()
    for pattern, names in _DATE_FORMS:
        match = pattern.fullmatch(lowered)
        if match is None:
            continue
        parts = dict(zip(names, match.groups(), strict=True))
        iso = parts["year"]
        if "month" in parts:
            iso += f"-{MONTHS.index(parts['month']) + 1:02d}"
        if "day" in parts:
            iso += f"-{int(parts['day']):02d}"
        try:
            return DateValue(date=iso)
        except ValueError:  # 30 February
            return None
    return None


def plain_number(text: str) -> AmountValue | None:
    """A text that is nothing but a number in digits or one word, as a value; None for any other."""
    stripped = text.strip().strip(".").lower()
    if re.fullmatch(r"\d{1,6}", stripped):
        return AmountValue(amount=float(stripped))
    if re.fullmatch(r"[a-z]+", stripped):
        number = small_number(stripped)
        return None if number is None else AmountValue(amount=float(number))
    return None


def safe_values(family: Family, answers: Sequence[str]) -> tuple[Value, ...]:
    """Typed gold where an answer is plainly one: dates of temporal questions, numbers elsewhere. Else nothing."""
    if len(answers) != 1:
        return ()
    value: Value | None = plain_date(answers[0]) if family is Family.TEMPORAL else plain_number(answers[0])
    return () if value is None else (value,)
