"""Imports PersonaMem v1 (Jiang et al., 2025): which of four replies suits a person, asked within a long history.

- The source is a table of questions (``questions_32k.csv``); the histories are in the file next to it
  (``shared_contexts_32k.jsonl``): JSON lines, each an object of one history by its id.
- One ego per history. A question is asked after the first ``end_index_in_shared_context`` messages. Histories have no
  times: the messages between two such points are a day, cut into sessions of some 20 messages. So a question is asked
  before any later message is ingested, and no message is written twice.
- Every question becomes ``d5_cloze`` with the options in the table's order. The table names no evidence.
- The system's messages describe the person. No one says them, so they are left out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memarena_dataset.errors import DatasetError, FieldError
from memarena_dataset.gold import ClozeGold
from memarena_dataset.importers.account import Account
from memarena_dataset.importers.json_reading import parse_json
from memarena_dataset.importers.personamem import WHICH
from memarena_dataset.importers.rows import instance_row, timed_session_row
from memarena_dataset.importers.tables import columns_of, literal, one_line, rows_of, sessions_of
from memarena_dataset.importers.text import clean, slug
from memarena_dataset.importers.times import times_of_day
from memarena_dataset.io.files import CORPUS, EGO_MAP, INSTANCE_FOLDER, PERSONAS, REPORT
from memarena_dataset.io.writing import FolderWriter, refuse_to_overwrite
from memarena_dataset.model import Family

NEEDED = (
    "question_id",
    "question_type",
    "user_question_or_message",
    "correct_answer",
    "all_options",
    "shared_context_id",
    "end_index_in_shared_context",
)
METADATA_KEYS = (
    "question_type",
    "topic",
    "context_length_in_tokens",
    "distance_to_ref_in_blocks",
    "distance_to_ref_in_tokens",
    "distance_to_ref_proportion_in_context",
    "num_irrelevant_tokens",
    "stereotypical",
)
"""Columns that the questions' metadata keeps, for breakdowns."""

_OPTION = re.compile(r"\s*\(([a-z])\)\s*(.+)", re.DOTALL | re.IGNORECASE)
_MORNING = 8 / 24
_EPOCH = "2025-01-01"


@dataclass(frozen=True, slots=True)
class _Question:
    line: int
    row: Mapping[str, str]
    end: int
    """Number of messages of the history before the question."""


def is_version_1(source: Path) -> bool:
    """Whether a table is of PersonaMem v1. Raises DatasetError if it cannot be read."""
    return "shared_context_id" in columns_of(source)


def import_personamem_v1(source: Path, out: Path) -> Account:
    """Write a PersonaMem v1 table with its histories as a data set folder.

    Raises:
        DatasetError: a file is missing or not PersonaMem's, or ``out`` is taken.
    """
    refuse_to_overwrite(out)
    account = Account(source="PersonaMem v1")
    questions_of = _questions(source, account)
    path = _contexts_file(source)
    digest = hashlib.sha256(source.read_bytes())
    with FolderWriter(out) as writer:
        ego_map: dict[str, list[str]] = {}
        days = 0
        for line, name, messages in _contexts(path, digest):
            questions = questions_of.pop(name, ())
            if not questions:
                account.skip(f"history {name}", "no question is about it")
                continue
            ego = f"user_persona_{slug(questions[0].row.get('persona_id', ''))}_{len(ego_map):04d}"
            try:
                ends = _write_history(messages, questions, ego, name, writer, account, ego_map)
            except FieldError as error:
                raise DatasetError(f"{path}:{line}: {error.field}: {error.reason}") from error
            days = max(days, len(ends))
            _write_questions(questions, ends, ego, writer, account)
        for name, lost in questions_of.items():
            line = lost[0].line
            raise DatasetError(f"{source}:{line}: shared_context_id: {name!r} is not in {path.name}")
        account.change("evidence", "the table names none: imported without")
        writer.put(EGO_MAP, ego_map)
        writer.put(
            REPORT,
            {
                "name": f"PersonaMem v1 {source.stem.removeprefix('questions_')}",
                "pipeline": "memarena dataset import personamem",
                "source_file": source.name,
                "source_sha256": digest.hexdigest(),
                "calendar_epoch": _EPOCH,
                "day_count": days,
                **account.report(),
            },
        )
    return account


# ------------------------------------------------------------------ reading


def _questions(source: Path, account: Account) -> dict[str, list[_Question]]:
    """Return the questions by the id of their history. Raises DatasetError for a bad row or an empty table."""
    questions: dict[str, list[_Question]] = {}
    for line, row in rows_of(source, NEEDED, ("question_id", "shared_context_id"), "PersonaMem v1"):
        account.counts["questions in the file"] += 1
        end = row["end_index_in_shared_context"].strip()
        if not end.isdecimal() or not int(end):
            reason = f"{end!r}; a number of messages, 1 or more, is expected"
            raise DatasetError(f"{source}:{line}: end_index_in_shared_context: {reason}")
        questions.setdefault(row["shared_context_id"].strip(), []).append(_Question(line, row, int(end)))
    if not questions:
        raise DatasetError(f"{source}: holds no questions")
    return questions


def _contexts_file(source: Path) -> Path:
    """Return the file of histories: ``shared_contexts_X.jsonl`` for ``questions_X.csv``, else the only one there."""
    own_file = source.with_name(f"shared_contexts_{source.stem.removeprefix('questions_')}.jsonl")
    candidates = sorted(source.resolve().parent.glob("shared_contexts*.jsonl"))
    if own_file.is_file():
        return own_file
    if len(candidates) != 1:
        raise DatasetError(f"{source}: no {own_file.name} next to it; the histories are expected there")
    return candidates[0]


def _contexts(path: Path, digest: Any) -> Iterator[tuple[int, str, Sequence[Any]]]:
    """Yield line number, id and messages of each history. Raises DatasetError if the file cannot be read."""
    try:
        with path.open("rb") as stream:
            for line, data in enumerate(stream, start=1):
                digest.update(data)
                if not data.strip():
                    continue
                value = parse_json(data, f"{path}:{line}")
                for name, messages in value.items() if isinstance(value, dict) else [("", None)]:
                    if not isinstance(messages, list):
                        raise DatasetError(f"{path}:{line}: an object of one history, a list of messages, is expected")
                    yield line, name, messages
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read: {error.strerror}") from error


# ------------------------------------------------------------------ writing


def _write_history(
    messages: Sequence[Any],
    questions: Sequence[_Question],
    ego: str,
    name: str,
    writer: FolderWriter,
    account: Account,
    ego_map: dict[str, list[str]],
) -> Mapping[int, float]:
    """Write the days of a history; return when the last turn of each point's day ends, by its number of messages."""
    cuts = sorted({question.end for question in questions})
    if cuts[-1] > len(messages):
        raise FieldError(name, f"{len(messages)} messages, but a question comes after {cuts[-1]}")
    if len(messages) > cuts[-1]:
        account.skip(f"history {name}", f"{len(messages) - cuts[-1]} messages after its last question")
    writer.add(PERSONAS, {"agent_id": ego, "persona": {"name": "User", "history": name}, "social_neighbors": []})
    speakers = {"user": ego, "assistant": f"assistant_{ego}"}
    ends: dict[int, float] = {}
    ego_map[ego] = []
    for day, (start, end) in enumerate(zip([0, *cuts], cuts, strict=False)):
        sessions = sessions_of(messages[start:end], f"history {name[:12]}", account, start)
        times = times_of_day(day + _MORNING, [[text for _, text in session] for session in sessions])
        for session, when in zip(sessions, times, strict=True):
            session_id = f"{ego}_{len(ego_map[ego]):04d}"
            rows = [
                {"turn_id": f"{session_id}_t{turn:03d}", "speaker_id": speakers[role], "text": text}
                for turn, (role, text) in enumerate(session)
            ]
            more = {
                "modality": "text_message",
                "session_type": "person_assistant",
                "metadata": {"source": "PersonaMem"},
            }
            writer.add(CORPUS, timed_session_row(session_id, list(speakers.values()), when, rows, more))
            ego_map[ego].append(session_id)
            account.counts["turns"] += len(rows)
        ends[end] = times[-1][-1] if times else day + _MORNING
    if not ego_map[ego]:
        raise FieldError(name, "no message of user or assistant")
    account.counts["histories"] += 1
    account.counts["sessions"] += len(ego_map[ego])
    return ends


def _write_questions(
    questions: Sequence[_Question], ends: Mapping[int, float], ego: str, writer: FolderWriter, account: Account
) -> None:
    """Write the questions on a history; ``ends``: time of asking by number of messages."""
    for question in questions:
        name = f"{ego}_q{question.line:05d}"
        try:
            query, gold = _gold(question.row)
        except FieldError as error:
            account.skip(name, f"{error.field}: {error.reason}")
            continue
        metadata = {key: question.row[key] for key in METADATA_KEYS if question.row.get(key)}
        row = instance_row(
            name,
            Family.CLOZE,
            query,
            gold,
            ego=ego,
            sessions=(),
            turns=(),
            metadata={"query_timestamp": ends[question.end], "source_id": question.row["question_id"], **metadata},
        )
        writer.add(f"{INSTANCE_FOLDER}/{Family.CLOZE.value}.jsonl", row)
        account.counts["questions imported"] += 1


def _gold(row: Mapping[str, str]) -> tuple[str, ClozeGold]:
    """Return query and gold of a row. Raises FieldError if it cannot be imported."""
    query = clean(row["user_question_or_message"]).strip()
    if not query:
        raise FieldError("user_question_or_message", "missing; a text is expected")
    listed = literal(row["all_options"], "all_options")
    matches = [_OPTION.fullmatch(text) for text in listed if isinstance(text, str)] if isinstance(listed, list) else []
    letters = [match.group(1).lower() for match in matches if match]
    if len(letters) < 2 or len(letters) != len(listed) or letters != [chr(ord("a") + n) for n in range(len(letters))]:
        raise FieldError("all_options", "a list of texts '(a) …', '(b) …' in their order is expected")
    options = tuple(one_line(match.group(2)) for match in matches if match)
    if len({option.casefold() for option in options}) != len(options):
        raise FieldError("all_options", "two of the replies are the same")
    right = row["correct_answer"].strip().strip("()").lower()
    if right not in letters:
        raise FieldError("correct_answer", f"{row['correct_answer']!r}; the letter of an option, '(b)', is expected")
    text = options[letters.index(right)]
    return f"{query}\n{WHICH}", ClozeGold(answer_letter=right.upper(), answer_text=text, options=options)
