"""Imports LongMemEval (Wu et al., 2025; ``longmemeval_s``, ``_m``, ``_oracle``): one namespace per question.

- Each question has its own user, whose history is the question's haystack; ``user`` turns are the ego's,
  ``assistant`` turns its assistant's. A session that several questions share is written for each of them.
- Day 0 is the earliest haystack date of the whole file. A question is asked on the day of its ``question_date``.
- ``temporal-reasoning`` becomes ``d8_temporal``; ``single-session-user``, ``-assistant``, ``-preference``,
  ``multi-session`` and ``knowledge-update`` become ``d7_qa``. A knowledge update asks for the latest value, which is
  one answer, while ``d1_conflict`` asks for both versions. Ids that end in ``_abs`` become ``d3_confabulation``
  (abstain).
- Evidence that is later on the question's own day moves the question to the end of that day, with a note.
- The file is parsed as a stream, twice (dates first): memory holds one question with its haystack, and the session ids
  of all, so ``_m`` with its gigabytes can be imported.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import IO, Any

import ijson

from memarena_dataset.errors import DatasetError, FieldError
from memarena_dataset.gold import AbstainGold, Gold, TextGold
from memarena_dataset.importers.account import Account, LeftOut
from memarena_dataset.importers.json_reading import json_events
from memarena_dataset.importers.rows import instance_row, session_row
from memarena_dataset.importers.text import clean, slug
from memarena_dataset.importers.times import SECONDS_PER_DAY
from memarena_dataset.importers.typed_answers import safe_values
from memarena_dataset.io.files import CORPUS, EGO_MAP, INSTANCE_FOLDER, PERSONAS, REPORT
from memarena_dataset.io.writing import FolderWriter, refuse_to_overwrite
from memarena_dataset.model import Family
from memarena_dataset.values.alternatives import alternatives

FAMILY_OF_TYPE: Mapping[str, Family] = {
    "single-session-user": Family.QA,
    "single-session-assistant": Family.QA,
    "single-session-preference": Family.QA,
    "multi-session": Family.QA,
    "knowledge-update": Family.QA,
    "temporal-reasoning": Family.TEMPORAL,
}
ABSTENTION_SUFFIX = "_abs"

_DATE = re.compile(r"(\d{4})/(\d{2})/(\d{2})(?:\s*\(\w+\))?(?:\s+(\d{2}):(\d{2}))?")


def import_longmemeval(source: Path, out: Path, leave_out: Collection[str] = ()) -> Account:
    """Write a LongMemEval file as a data set folder.

    Args:
        source: the file.
        out: the folder.
        leave_out: ids of questions that are not imported, such as one that is not of LongMemEval's form.

    Raises:
        DatasetError: the file is missing or not LongMemEval, an id to leave out is not in it, or ``out`` is taken.
    """
    refuse_to_overwrite(out)
    account = Account(source="LongMemEval")
    left_out = LeftOut(leave_out, account)
    try:
        with source.open("rb") as stream:
            first, last = _span(stream, str(source), leave_out)
        with source.open("rb") as stream, FolderWriter(out) as writer:
            hashed = _Hashed(stream)
            ego_map = _write_all(hashed, str(source), first, writer, account, left_out)
            left_out.check(source)
            writer.put(EGO_MAP, ego_map)
            writer.put(
                REPORT,
                {
                    "name": "LongMemEval",
                    "pipeline": "memarena dataset import longmemeval",
                    "source_file": source.name,
                    "source_sha256": hashed.hexdigest(),
                    "calendar_epoch": first.isoformat(),
                    "day_count": (last - first).days + 1,
                    **account.report(),
                },
            )
    except OSError as error:
        raise DatasetError(f"{source}: cannot be read: {error.strerror}") from error
    except FieldError as error:
        raise DatasetError(f"{source}: {error.field}: {error.reason}") from error
    return account


@dataclass(frozen=True, slots=True)
class _Haystack:
    """The history of a question that was written."""

    session_of: Mapping[str, str]
    """Our session id by the session id of the file."""
    ends: Mapping[str, float]
    """End of each session in simulated days, by our session id."""
    marked: Sequence[str]
    """Ids of the turns that are marked as evidence."""


class _Hashed:
    """A stream that hashes what is read from it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._digest = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self._digest.update(data)
        return data

    def hexdigest(self) -> str:
        """Read the stream to its end and return the SHA-256 of the whole file, in hexadecimal."""
        while self.read(1 << 20):
            pass
        return self._digest.hexdigest()


def _span(stream: IO[bytes], where: str, leave_out: Collection[str]) -> tuple[date, date]:
    """Return the first and the last day of all haystacks and questions, without the questions that are left out."""
    days: list[date] = []
    name, date_texts = "", dict[str, set[str]]()
    for prefix, event, value in ijson.parse(json_events(stream, where)):
        if (prefix, event) == ("item", "start_map"):
            name, date_texts = "", {}
        elif prefix == "item.question_id" and event == "string":
            name = value
        elif prefix in ("item.haystack_dates.item", "item.question_date") and event == "string":
            date_texts.setdefault(prefix.removeprefix("item."), set()).add(value)
        elif (prefix, event) == ("item", "end_map") and name not in leave_out:
            question_days = [
                _moment(text, f"{name} {field}").date() for field, texts in date_texts.items() for text in sorted(texts)
            ]
            days = [min([*days, *question_days]), max([*days, *question_days])] if question_days else days
    if not days:
        raise FieldError("file", "a list of questions with haystack_dates is expected")
    return days[0], days[1]


def _moment(text: Any, field: str) -> datetime:
    match = _DATE.fullmatch(str(text).strip())
    try:
        if match is None:
            raise ValueError(text)
        year, month, day, hour, minute = (int(part or 0) for part in match.groups())
        return datetime(year, month, day, hour, minute)
    except ValueError:
        raise FieldError(field, f"{text!r}; a date like '2023/05/20 (Sat) 02:21' is expected") from None


def _day(moment: datetime, epoch: date) -> float:
    return round((moment.date() - epoch).days + (moment.hour * 60 + moment.minute) / 1440, 6)


# ------------------------------------------------------------------ questions


def _write_all(
    stream: _Hashed, where: str, epoch: date, writer: FolderWriter, account: Account, left_out: LeftOut
) -> dict[str, list[str]]:
    """Write all questions with their haystacks, and return the session ids by ego."""
    ego_map: dict[str, list[str]] = {}
    for position, item in enumerate(ijson.items(ijson.parse(json_events(stream, where)), "item")):
        account.counts["questions in the file"] += 1
        if left_out.exclude_if_listed(item.get("question_id") if isinstance(item, dict) else None):
            continue
        question = _checked(item, str(position))
        name = question["question_id"]
        ego = f"user_{slug(name)}"
        if ego in ego_map:
            raise FieldError(f"{position}.question_id", f"{name!r} occurs a second time")
        try:
            family, gold = _gold(question)
        except FieldError as error:
            account.skip(name, f"{error.field}: {error.reason}")
            continue
        haystack = _write_haystack(question, ego, epoch, writer, account)
        ego_map[ego] = list(dict.fromkeys(haystack.session_of.values()))
        _write_question(question, family, gold, ego, epoch, haystack, writer, account)
    return ego_map


def _checked(item: Any, where: str) -> Mapping[str, Any]:
    """Return a question of the file if it has all fields. Raises FieldError."""
    if not isinstance(item, dict):
        raise FieldError(where, "an object is expected")
    for key in ("question_id", "question", "question_type", "question_date"):
        if not isinstance(item.get(key), str) or not item[key].strip():
            raise FieldError(f"{where}.{key}", "missing; a text is expected")
    lengths = []
    for key in ("haystack_session_ids", "haystack_dates", "haystack_sessions"):
        if not isinstance(item.get(key), list):
            raise FieldError(f"{where}.{key}", "missing; a list is expected")
        lengths.append(len(item[key]))
    if len(set(lengths)) != 1:
        raise FieldError(f"{where}.haystack_sessions", f"ids, dates and sessions differ in number ({lengths})")
    return item


def _gold(question: Mapping[str, Any]) -> tuple[Family, Gold]:
    if question["question_type"].removesuffix(ABSTENTION_SUFFIX) not in FAMILY_OF_TYPE:
        types = ", ".join(FAMILY_OF_TYPE)
        raise FieldError("question_type", f"{question['question_type']!r}; one of {types} is expected")
    answer = question.get("answer")
    if question["question_id"].endswith(ABSTENTION_SUFFIX):
        return Family.CONFABULATION, AbstainGold()
    if answer is None or not str(answer).strip():
        raise FieldError("answer", "missing")
    family = FAMILY_OF_TYPE[question["question_type"].removesuffix(ABSTENTION_SUFFIX)]
    answers = alternatives(clean(_as_text(answer)))
    return family, TextGold(answers=answers, values=safe_values(family, answers))


def _as_text(answer: Any) -> str:
    if isinstance(answer, float) and answer.is_integer():
        return str(int(answer))
    return str(answer).strip()


def _write_haystack(
    question: Mapping[str, Any], ego: str, epoch: date, writer: FolderWriter, account: Account
) -> _Haystack:
    """Write the sessions."""
    assistant = f"assistant_{ego}"
    writer.add(PERSONAS, {"agent_id": ego, "persona": {"name": "User"}, "social_neighbors": []})
    account.counts["namespaces"] += 1
    session_of: dict[str, str] = {}
    ends: dict[str, float] = {}
    marked: list[str] = []
    name = question["question_id"]
    parts = (question["haystack_session_ids"], question["haystack_dates"], question["haystack_sessions"])
    for position, (original, date_text, turns) in enumerate(zip(*parts, strict=True)):
        where = f"{name} haystack_sessions.{position}"
        rows, evidence = _turns(turns, f"{ego}_{position:04d}", ego, where, account)
        if not rows:
            account.skip(where, "holds no turns")
            continue
        session_id = f"{ego}_{position:04d}"
        if str(original) in session_of:
            account.change(where, f"session {original!r} is in the haystack twice; both are kept")
        session_of[str(original) if str(original) not in session_of else f"{original}#{position}"] = session_id
        marked += evidence
        start = _day(_moment(date_text, f"{name}.haystack_dates.{position}"), epoch)
        more = {
            "modality": "text_message",
            "session_type": "person_assistant",
            "metadata": {"source_id": str(original)},
        }
        row = session_row(session_id, [ego, assistant], start, rows, **more)
        ends[session_id] = row["end_time"]
        writer.add(CORPUS, row)
        account.counts["sessions"] += 1
        account.counts["turns"] += len(rows)
    return _Haystack(session_of, ends, marked)


def _turns(
    turns: Any, session_id: str, ego: str, where: str, account: Account
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return a session's turns as rows, and the ids of the turns that hold the answer."""
    speakers = {"user": ego, "assistant": f"assistant_{ego}"}
    rows: list[dict[str, Any]] = []
    evidence: list[str] = []
    for position, turn in enumerate(turns if isinstance(turns, list) else ()):
        if not isinstance(turn, dict) or not isinstance(turn.get("content"), str) or turn.get("role") not in speakers:
            account.skip(f"{where}.{position}", "not a turn with role user or assistant and a text as content")
            continue
        turn_id = f"{session_id}_t{position:03d}"
        rows.append({"turn_id": turn_id, "speaker_id": speakers[turn["role"]], "text": clean(turn["content"].strip())})
        if turn.get("has_answer") is True:
            evidence.append(turn_id)
    return rows, evidence


def _write_question(
    question: Mapping[str, Any],
    family: Family,
    gold: Gold,
    ego: str,
    epoch: date,
    haystack: _Haystack,
    writer: FolderWriter,
    account: Account,
) -> None:
    """Write a question with the answer sessions and their marked turns as evidence."""
    name, session_of = question["question_id"], haystack.session_of
    sessions = [session_of[session_id] for session_id in _answer_sessions(question, session_of, account)]
    turns = [turn_id for turn_id in haystack.marked if turn_id.rpartition("_t")[0] in sessions]
    for turn_id in sorted(set(haystack.marked) - set(turns)):
        account.change(name, f"turn {turn_id!r} has_answer, but its session is not an answer session: left out")
    if not sessions:
        account.change(name, "has no evidence; imported without")
    asked_at = _day(_moment(question["question_date"], f"{name}.question_date"), epoch)
    row = instance_row(
        name,
        family,
        clean(question["question"].strip()),
        gold,
        ego=ego,
        sessions=sessions,
        turns=turns,
        metadata={
            "query_timestamp": _after_evidence(asked_at, [haystack.ends[s] for s in sessions], name, account),
            "question_type": question["question_type"],
        },
    )
    writer.add(f"{INSTANCE_FOLDER}/{family.value}.jsonl", row)
    account.counts["questions imported"] += 1
    account.counts[f"questions {family.value}"] += 1


def _after_evidence(asked_at: float, ends: Sequence[float], name: str, account: Account) -> float:
    """Return the time of asking in simulated days: the end of the question's day if evidence is later on that day."""
    later = [end for end in ends if int(end) == int(asked_at) and end > asked_at]
    if not later:
        return asked_at
    account.change(name, "its evidence is said later on the day of the question: asked at the end of that day")
    return max(round(int(asked_at) + 1 - 1 / SECONDS_PER_DAY, 7), *later)


def _answer_sessions(question: Mapping[str, Any], session_of: Mapping[str, str], account: Account) -> Iterator[str]:
    listed = question.get("answer_session_ids")
    for session_id in dict.fromkeys(str(item) for item in listed) if isinstance(listed, list) else ():
        if session_id in session_of:
            yield session_id
        else:
            account.skip(f"{question['question_id']} evidence {session_id!r}", "no such session in the haystack")
