"""Imports HaluMem (Chen et al., 2025; Medium and Long): one ego per user, every question imported or reported.

- The source is a file of JSON lines, each a user. It is read twice, line by line: dates first.
- ``user`` turns are the ego's, ``assistant`` turns its assistant's. Sessions start when the file says; the turns follow
  by their length, since the file gives a whole exchange one time. Day 0 is that of the earliest session of the file.
- A question belongs to a session and is asked at the end of that session's day; HaluMem asks it after the session.
- ``Memory Boundary`` becomes ``d3_confabulation`` (abstain), since no turn states an answer. All other types become
  ``d7_qa``.
- A question's evidence is memory points, which are texts: every session that lists a memory point of the same text is
  evidence.
- ``memory_points`` are otherwise left out: HaluMem compares them with a memory's contents, which no run here reads.
  ``persona_info`` is left out too, except for the name, since it is in no turn.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

from memarena_dataset.errors import DatasetError, FieldError
from memarena_dataset.gold import AbstainGold, Gold, TextGold
from memarena_dataset.importers.account import Account
from memarena_dataset.importers.json_reading import parse_json
from memarena_dataset.importers.rows import instance_row, session_row
from memarena_dataset.importers.text import clean, truncate_text
from memarena_dataset.importers.typed_answers import safe_values
from memarena_dataset.io.files import CORPUS, EGO_MAP, INSTANCE_FOLDER, PERSONAS, REPORT
from memarena_dataset.io.writing import FolderWriter, refuse_to_overwrite
from memarena_dataset.model import Family
from memarena_dataset.values.alternatives import alternatives

FAMILY_OF_TYPE: Mapping[str, Family] = {
    "Basic Fact Recall": Family.QA,
    "Multi-hop Inference": Family.QA,
    "Dynamic Update": Family.QA,
    "Generalization & Application": Family.QA,
    "Memory Conflict": Family.QA,
    "Memory Boundary": Family.CONFABULATION,
}
_MOMENT = "%b %d, %Y, %H:%M:%S"
_NAME = re.compile(r"\bName:\s*([^;\n]+)")


@dataclass(frozen=True, slots=True)
class _Session:
    """A session that was written, with its questions and the memory points by which evidence is matched."""

    session_id: str
    start: float
    end: float
    memories: frozenset[str]
    questions: Sequence[Any]


def import_halumem(source: Path, out: Path) -> Account:
    """Write a HaluMem file as a data set folder.

    Raises:
        DatasetError: the file is missing or not HaluMem, or ``out`` is taken.
    """
    refuse_to_overwrite(out)
    account = Account(source="HaluMem")
    days = [moment.date() for _, user in _users(source) for moment in _starts(user)]
    if not days:
        raise DatasetError(f"{source}: no session with a time; JSON lines with a user each are expected")
    epoch, last = min(days), max(days)
    with source.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256")
    with FolderWriter(out) as writer:
        ego_map: dict[str, list[str]] = {}
        for number, (line, user) in enumerate(_users(source), start=1):
            ego = f"user_halumem_{number:02d}"
            try:
                sessions = _write_user(user, ego, epoch, writer, account)
            except FieldError as error:
                raise DatasetError(f"{source}:{line}: {error.field}: {error.reason}") from error
            ego_map[ego] = [session.session_id for session in sessions]
            _write_questions(sessions, ego, writer, account)
        writer.put(EGO_MAP, ego_map)
        writer.put(
            REPORT,
            {
                "name": "HaluMem",
                "pipeline": "memarena dataset import halumem",
                "source_file": source.name,
                "source_sha256": digest.hexdigest(),
                "calendar_epoch": epoch.isoformat(),
                "day_count": (last - epoch).days + 1,
                **account.report(),
            },
        )
    return account


# ------------------------------------------------------------------ reading


def _users(source: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the line number and the object of each user. Raises DatasetError if the file cannot be read."""
    try:
        with source.open("rb") as stream:
            for line, data in enumerate(stream, start=1):
                if not data.strip():
                    continue
                user = parse_json(data, f"{source}:{line}")
                if not isinstance(user, dict) or not isinstance(user.get("sessions"), list):
                    raise DatasetError(
                        f"{source}:{line}: sessions: missing; a user with a list of sessions is expected"
                    )
                yield line, user
    except OSError as error:
        raise DatasetError(f"{source}: cannot be read: {error.strerror}") from error


def _starts(user: Mapping[str, Any]) -> Iterator[datetime]:
    """Yield the start of each session whose time can be read; ``_write_user`` reports the others."""
    for session in user["sessions"]:
        try:
            yield _start(session, "sessions")
        except FieldError:
            continue


def _start(session: Any, field: str) -> datetime:
    if not isinstance(session, dict):
        raise FieldError(field, "an object is expected")
    turns = session.get("dialogue")
    first = turns[0].get("timestamp") if isinstance(turns, list) and turns and isinstance(turns[0], dict) else None
    start = session.get("start_time") or first
    try:
        return datetime.strptime(str(start).strip(), _MOMENT)
    except ValueError:
        raise FieldError(
            f"{field}.start_time", f"{start!r}; a time like 'Dec 15, 2025, 08:41:23' is expected"
        ) from None


# ------------------------------------------------------------------ writing


def _write_user(
    user: Mapping[str, Any], ego: str, epoch: date, writer: FolderWriter, account: Account
) -> list[_Session]:
    """Write a user's persona and sessions, and return the sessions. Raises FieldError."""
    name = _NAME.search(user["persona_info"]) if isinstance(user.get("persona_info"), str) else None
    persona = {"name": clean(name.group(1)).strip() if name else "User", "source_id": str(user.get("uuid", ""))}
    writer.add(PERSONAS, {"agent_id": ego, "persona": persona, "social_neighbors": []})
    account.counts["users"] += 1
    sessions = []
    for number, raw in enumerate(user["sessions"], start=1):
        moment = _start(raw, f"sessions.{number - 1}")
        start = (moment.date() - epoch).days + (moment.hour * 3600 + moment.minute * 60 + moment.second) / 86_400
        imported = _write_session(raw, f"{ego}_s{number:03d}", ego, round(start, 6), writer, account)
        if imported is not None:
            sessions.append(imported)
    if not sessions:
        raise FieldError("sessions", "none holds a turn")
    points = sum(len(session.memories) for session in sessions)
    account.skip(f"{ego} memory points", f"{points:,}: what a memory stores is not compared with them")
    return sessions


def _write_session(
    raw: Mapping[str, Any], session_id: str, ego: str, start: float, writer: FolderWriter, account: Account
) -> _Session | None:
    """Write a session and return it; None, noted in the account, if it has no turns."""
    speakers = {"user": ego, "assistant": f"assistant_{ego}"}
    turns = raw.get("dialogue")
    rows: list[dict[str, Any]] = []
    for position, turn in enumerate(turns if isinstance(turns, list) else ()):
        turn_id = f"{session_id}_t{position:03d}"
        content = turn.get("content") if isinstance(turn, dict) else None
        if not isinstance(content, str) or not content.strip() or turn.get("role") not in speakers:
            account.skip(turn_id, "not a turn with role user or assistant and a text as content")
            continue
        rows.append(
            {"turn_id": turn_id, "speaker_id": speakers[turn["role"]], "text": truncate_text(content, turn_id, account)}
        )
    questions = raw.get("questions") or ()
    if not rows:
        lost = f"; its {len(questions)} questions are left out too" if questions else ""
        account.skip(session_id, f"holds no turns{lost}")
        return None
    metadata = {"source": "HaluMem", **({"generated": True} if raw.get("is_generated_qa_session") is True else {})}
    more = {"modality": "text_message", "session_type": "person_assistant", "metadata": metadata}
    row = session_row(session_id, list(speakers.values()), start, rows, **more)
    writer.add(CORPUS, row)
    account.counts["sessions"] += 1
    account.counts["turns"] += len(rows)
    memories = frozenset(_contents(raw.get("memory_points")))
    return _Session(session_id, start, row["end_time"], memories, questions if isinstance(questions, list) else ())


def _contents(points: Any) -> Iterator[str]:
    """Yield the texts of memory points, as ``_plain`` compares them."""
    for point in points if isinstance(points, list) else ():
        content = point.get("memory_content") if isinstance(point, dict) else None
        if isinstance(content, str) and content.strip():
            yield _plain(content)


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


# ------------------------------------------------------------------ questions


def _write_questions(sessions: Sequence[_Session], ego: str, writer: FolderWriter, account: Account) -> None:
    """Write the questions of all sessions of an ego."""
    early = 0
    for session in sessions:
        early += len(session.questions) if _has_later_sessions(session, sessions) else 0
        for position, question in enumerate(session.questions, start=1):
            name = f"{session.session_id}_q{position:02d}"
            account.counts["questions in the file"] += 1
            try:
                family, gold = _gold(question)
            except FieldError as error:
                account.skip(name, f"{error.field}: {error.reason}")
                continue
            evidence = list(_evidence(question, name, session, sessions, account))
            if not evidence and family is not Family.CONFABULATION:
                account.change(name, "has no evidence; imported without")
            metadata = {"query_timestamp": session.end, "question_type": question["question_type"]}
            if family is Family.CONFABULATION and isinstance(question.get("answer"), str):
                metadata["stated_answer"] = clean(question["answer"])
            row = instance_row(
                name,
                family,
                clean(question["question"].strip()),
                gold,
                ego=ego,
                sessions=evidence,
                turns=(),
                metadata=metadata,
            )
            row["difficulty"] = question.get("difficulty") if isinstance(question.get("difficulty"), str) else None
            writer.add(f"{INSTANCE_FOLDER}/{family.value}.jsonl", row)
            account.counts["questions imported"] += 1
            account.counts[f"questions {family.value}"] += 1
    if early:
        account.change(f"{ego} questions", f"{early:,} have later sessions on their day: asked after those too")


def _has_later_sessions(session: _Session, sessions: Sequence[_Session]) -> bool:
    return any(int(other.start) == int(session.end) and other.start > session.start for other in sessions)


def _gold(question: Any) -> tuple[Family, Gold]:
    """Return family and gold of a question. Raises FieldError if it cannot be imported."""
    if not isinstance(question, dict):
        raise FieldError("question", "an object is expected")
    if not isinstance(question.get("question"), str) or not question["question"].strip():
        raise FieldError("question", "missing; a text is expected")
    family = FAMILY_OF_TYPE.get(str(question.get("question_type")))
    if family is None:
        types = ", ".join(FAMILY_OF_TYPE)
        raise FieldError("question_type", f"{question.get('question_type')!r}; one of {types} is expected")
    if family is Family.CONFABULATION:
        return family, AbstainGold()
    answer = question.get("answer")
    if isinstance(answer, bool) or not isinstance(answer, str | int | float) or not str(answer).strip():
        raise FieldError("answer", "missing; a text is expected")
    answers = alternatives(clean(str(answer)))
    return family, TextGold(answers=answers, values=safe_values(family, answers))


def _evidence(
    question: Mapping[str, Any], name: str, session: _Session, sessions: Sequence[_Session], account: Account
) -> Iterator[str]:
    """Yield the sessions up to the question's that list a memory point of its evidence, each once, in file order."""
    evidence_points = set(_contents(question.get("evidence")))
    holds = [other for other in sessions if evidence_points & other.memories]
    yield from (other.session_id for other in holds if other.end <= session.end)
    if missing := len(evidence_points.difference(*(other.memories for other in holds))):
        account.skip(f"{name} evidence", f"{missing} of {len(evidence_points)} memory points are listed by no session")
    if late := [other.session_id for other in holds if other.end > session.end]:
        account.skip(f"{name} evidence", f"{', '.join(late)}: later than the question")
