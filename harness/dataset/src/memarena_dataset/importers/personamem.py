"""Imports PersonaMem-v2 (Jiang et al., 2025): questions which of several replies suits a person, by earlier chats.

- The source is a table of questions (``benchmark/text/benchmark.csv``, also ``val`` and ``train``). The path of a
  history is in the row, relative to one of the folders above the table. ``history`` is ``32k`` or ``128k``.
- One ego per history. A history has no times and no bounds between its chats: all of it is on one day, cut into
  sessions of some 20 messages, each of which begins with a message of the user.
- The first message is the system's and describes the person. No person says it, so it is left out; the questions are
  about facts that the chats imply.
- Every question becomes ``d5_cloze``: the suitable reply and the others are the options, in an order that depends on
  their text alone. Options are single lines. Questions are asked at the end of the day.
- Evidence is the related snippet, if its messages are in the history.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from memarena_dataset.errors import DatasetError, FieldError
from memarena_dataset.gold import ClozeGold
from memarena_dataset.importers.account import Account
from memarena_dataset.importers.json_reading import read_json
from memarena_dataset.importers.rows import instance_row, timed_session_row
from memarena_dataset.importers.tables import literal, one_line, rows_of, sessions_of
from memarena_dataset.importers.text import clean, slug
from memarena_dataset.importers.times import times_of_day
from memarena_dataset.io.files import CORPUS, EGO_MAP, INSTANCE_FOLDER, PERSONAS, REPORT
from memarena_dataset.io.writing import FolderWriter, refuse_to_overwrite
from memarena_dataset.model import Family

History = Literal["32k", "128k"]

METADATA_KEYS = (
    "pref_type",
    "conversation_scenario",
    "topic_query",
    "topic_preference",
    "who",
    "updated",
    "sensitive_info",
)
"""Columns that the questions' metadata keeps, for breakdowns. ``preference`` would be gold in another form."""
WHICH = "Which of these replies suits me best?"

_MORNING = 8 / 24
_EPOCH = "2025-01-01"
_FOLDERS_UP = 4


@dataclass(frozen=True, slots=True)
class _History:
    """A history that was written."""

    ego: str
    texts: Sequence[str]
    places: Sequence[tuple[str, str]]
    """Session and turn of each text."""
    end: float


def import_personamem(source: Path, out: Path, history: History = "32k") -> Account:
    """Write a PersonaMem-v2 table with its histories as a data set folder.

    Raises:
        DatasetError: a file is missing or not PersonaMem's, or ``out`` is taken.
    """
    refuse_to_overwrite(out)
    account = Account(source="PersonaMem-v2")
    digest = hashlib.sha256()
    histories: dict[str, _History] = {}
    with FolderWriter(out) as writer:
        link_column = f"chat_history_{history}_link"
        needed = ("persona_id", link_column, "user_query", "correct_answer", "incorrect_answers")
        for line, row in rows_of(source, needed, needed[:2], "PersonaMem-v2"):
            account.counts["questions in the file"] += 1
            digest.update(json.dumps(row, sort_keys=True).encode())
            link = row[link_column].strip()
            try:
                if link not in histories:
                    path = _find(source, link)
                    histories[link] = _write_history(row["persona_id"], path, len(histories), writer, account)
                name = f"{histories[link].ego}_q{line:05d}"
                try:
                    query, gold = _gold(row)
                except FieldError as error:
                    account.skip(name, f"{error.field}: {error.reason}")
                    continue
                _write_question(name, query, gold, row, histories[link], writer, account)
            except FieldError as error:
                raise DatasetError(f"{source}:{line}: {error.field}: {error.reason}") from error
        if not histories:
            raise DatasetError(f"{source}: holds no questions")
        sessions = {history.ego: [session_id for session_id, _ in history.places] for history in histories.values()}
        writer.put(EGO_MAP, {ego: list(dict.fromkeys(session_ids)) for ego, session_ids in sessions.items()})
        writer.put(
            REPORT,
            {
                "name": f"PersonaMem-v2 {history}",
                "pipeline": f"memarena dataset import personamem --history {history}",
                "source_file": source.name,
                "source_sha256": digest.hexdigest(),
                "calendar_epoch": _EPOCH,
                "day_count": 1,
                **account.report(),
            },
        )
    return account


# ------------------------------------------------------------------ reading


def _find(source: Path, link: str) -> Path:
    """Return the file of a history: ``link`` below the nearest folder above the table that holds it.

    Raises:
        FieldError: ``link`` is not a relative path, or none of these folders holds it.
    """
    path = PurePosixPath(link)
    if path.is_absolute() or ".." in path.parts:
        raise FieldError("chat_history_link", f"{link!r}; an address below the data set's folder is expected")
    above = source.resolve().parents[:_FOLDERS_UP]
    for folder in above:
        if (folder / path).is_file():
            return folder / path
    raise FieldError("chat_history_link", f"{link!r} is in none of the {len(above)} folders above the table")


# ------------------------------------------------------------------ histories


def _write_history(persona: str, path: Path, position: int, writer: FolderWriter, account: Account) -> _History:
    """Write a history as sessions of a single day. Raises DatasetError if the file holds none."""
    value, _ = read_json(path)
    messages = value.get("chat_history") if isinstance(value, dict) else value
    if not isinstance(messages, list) or not messages:
        raise DatasetError(f"{path}: chat_history: missing; a list of messages is expected")
    ego = f"user_persona_{slug(persona)}_{position:04d}"
    assistant = f"assistant_{ego}"
    speakers = {"user": ego, "assistant": assistant}
    sessions = sessions_of(messages, path.name, account)
    if not sessions:
        raise DatasetError(f"{path}: chat_history: no message of user or assistant")
    writer.add(PERSONAS, {"agent_id": ego, "persona": {"name": "User"}, "social_neighbors": []})
    times = times_of_day(_MORNING, [[text for _, text in session] for session in sessions])
    places: list[tuple[str, str]] = []
    for number, (session, when) in enumerate(zip(sessions, times, strict=True)):
        session_id = f"{ego}_{number:04d}"
        rows = [
            {"turn_id": f"{session_id}_t{turn:03d}", "speaker_id": speakers[role], "text": text}
            for turn, (role, text) in enumerate(session)
        ]
        more = {"modality": "text_message", "session_type": "person_assistant", "metadata": {"source": path.name}}
        writer.add(CORPUS, timed_session_row(session_id, [ego, assistant], when, rows, more))
        places += [(session_id, str(row["turn_id"])) for row in rows]
    account.counts["histories"] += 1
    account.counts["sessions"] += len(sessions)
    account.counts["turns"] += len(places)
    return _History(ego, [text for session in sessions for _, text in session], places, times[-1][-1])


# ------------------------------------------------------------------ questions


def _gold(row: Mapping[str, str]) -> tuple[str, ClozeGold]:
    """Return query and gold of a row. Raises FieldError if it cannot be imported."""
    query = row["user_query"].strip()
    if query.startswith("{"):
        query = _content(literal(query, "user_query"), "user_query")
    if not query:
        raise FieldError("user_query", "missing; a text is expected")
    wrong = literal(row["incorrect_answers"], "incorrect_answers") if row["incorrect_answers"].strip() else []
    if not isinstance(wrong, list) or not wrong or not all(isinstance(text, str) and text.strip() for text in wrong):
        raise FieldError("incorrect_answers", "a list of texts is expected")
    right = one_line(row["correct_answer"])
    if not right:
        raise FieldError("correct_answer", "missing; a text is expected")
    options = sorted(
        (right, *map(one_line, wrong)), key=lambda text: hashlib.sha256(f"{query}\0{text}".encode()).digest()
    )
    if len({option.casefold() for option in options}) != len(options):
        raise FieldError("incorrect_answers", "two of the replies are the same")
    letter = chr(ord("A") + options.index(right))
    gold = ClozeGold(answer_letter=letter, answer_text=right, options=tuple(options))
    return f"{clean(query)}\n{WHICH}", gold


def _content(value: Any, field: str) -> str:
    content = value.get("content") if isinstance(value, dict) else None
    if not isinstance(content, str):
        raise FieldError(f"{field}.content", "a text is expected")
    return content.strip()


def _write_question(
    name: str,
    query: str,
    gold: ClozeGold,
    row: Mapping[str, str],
    history: _History,
    writer: FolderWriter,
    account: Account,
) -> None:
    """Write a question, which is asked at the end of its history's day."""
    evidence = _evidence(row.get("related_conversation_snippet", ""), name, history, account)
    instance = instance_row(
        name,
        Family.CLOZE,
        query,
        gold,
        ego=history.ego,
        sessions=list(dict.fromkeys(session for session, _ in evidence)),
        turns=[turn for _, turn in evidence],
        metadata={"query_timestamp": history.end, **{key: row[key] for key in METADATA_KEYS if row.get(key)}},
    )
    writer.add(f"{INSTANCE_FOLDER}/{Family.CLOZE.value}.jsonl", instance)
    account.counts["questions imported"] += 1


def _evidence(snippet: str, name: str, history: _History, account: Account) -> Sequence[tuple[str, str]]:
    """Return session and turn of each message of the snippet: its first occurrence in the history, else none."""
    try:
        messages = literal(snippet, "related_conversation_snippet") if snippet.strip() else []
        listed = messages if isinstance(messages, list) else []
        texts = [_content(message, "related_conversation_snippet") for message in listed if _role(message) != "system"]
    except FieldError as error:
        account.change(name, f"{error.field}: {error.reason}; imported without evidence")
        return ()
    excerpt = [clean(text) for text in texts]
    for start in range(len(history.texts) - len(excerpt) + 1) if excerpt else ():
        if list(history.texts[start : start + len(excerpt)]) == excerpt:
            return history.places[start : start + len(excerpt)]
    account.change(name, "its snippet is not in the history as it stands; imported without evidence")
    return ()


def _role(message: Any) -> Any:
    return message.get("role") if isinstance(message, dict) else None
