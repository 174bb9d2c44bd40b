"""Imports BEAM (Tavakoli et al., 2025; sizes 100K, 500K, 1M): one ego per chat, every question imported or reported.

- The source is a folder of chats (``chats/100K``), one chat (``chats/100K/1``), or a folder of sizes (``chats``). Of a
  chat ``chat_trunecated.json`` is read if it exists, else ``chat.json``, as BEAM's own evaluation does.
- A batch is a day: the date of its time anchor. Its groups of turns, a main question with what follows it, are the
  day's sessions one after the other; a batch as one session of some 25,000 words would make any evidence vague.
- Gold is the rubric, since BEAM scores by it: if ``answer`` contradicts it, the rubric counts. Of an item
  ``… should state: X`` the X is gold. ``answer`` and rubric are kept in the question's metadata.
- ``contradiction_resolution`` becomes ``d1_conflict``: both statements have to be named. BEAM also expects the answer
  to point out the contradiction and to ask back, which our gold cannot express.
- ``event_ordering``, ``instruction_following``, ``preference_following`` and ``summarization`` need a judge that reads
  a rubric. They are left out and reported, unless ``rubrics`` is ``needed``: then their gold is the rubric sentence by
  sentence. ``all`` makes the rubric the gold of every question, as BEAM scores them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any, Literal

from memarena_dataset.errors import DatasetError, FieldError
from memarena_dataset.gold import AbstainGold, ConflictGold, Gold, RubricGold, TextGold
from memarena_dataset.importers.account import Account
from memarena_dataset.importers.json_reading import read_json
from memarena_dataset.importers.rows import instance_row, timed_session_row
from memarena_dataset.importers.text import clean, slug, truncate_text
from memarena_dataset.importers.times import times_of_day
from memarena_dataset.importers.typed_answers import safe_values
from memarena_dataset.io.files import CORPUS, EGO_MAP, INSTANCE_FOLDER, PERSONAS, REPORT
from memarena_dataset.io.writing import FolderWriter, refuse_to_overwrite
from memarena_dataset.model import Family
from memarena_dataset.values import DurationValue
from memarena_dataset.values.alternatives import alternatives

CHATS = ("chat_trunecated.json", "chat.json")
QUESTIONS = Path("probing_questions") / "probing_questions.json"

FAMILY_OF_ABILITY: Mapping[str, Family] = {
    "information_extraction": Family.QA,
    "knowledge_update": Family.QA,
    "multi_session_reasoning": Family.QA,
    "temporal_reasoning": Family.TEMPORAL,
    "contradiction_resolution": Family.CONFLICT,
    "abstention": Family.CONFABULATION,
}
Rubrics = Literal["none", "needed", "all"]
BY_RUBRIC_ALONE = frozenset({"event_ordering", "instruction_following", "preference_following", "summarization"})

_MORNING = 9 / 24
# BEAM's mark at the end of a message, which is no part of it: "->-> 1,3".
_MARKER = re.compile(r"\s*->->\s*(?:\d+|N/A)(?:\s*[,.]\s*(?:\d+|N/A))*\s*[).]*\s*$")
_ITEM = re.compile(
    r"(?:the )?llm response should (?:state|mention|contain|include):?\s*(.+)", re.IGNORECASE | re.DOTALL
)
# A gold that is only a length of time: "21 days".
_SPAN = re.compile(r"(\d{1,4}) (day|week)s?")


@dataclass(frozen=True, slots=True)
class _Day:
    """The sessions of one day: groups of messages, each ``{id, role, content}``."""

    day: date
    groups: list[list[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class _Chat:
    """One chat, after its checks. ``questions``: by ability."""

    name: str
    days: list[_Day]
    questions: Mapping[str, Sequence[Any]]

    @property
    def ego(self) -> str:
        return f"user_beam_{slug(self.name)}"


def import_beam(source: Path, out: Path, *, rubrics: Rubrics = "none") -> Account:
    """Write a folder of BEAM chats as a data set folder.

    Args:
        source: the folder.
        out: the folder that is written.
        rubrics: for which questions the rubric is the gold, which needs a judge with a model: none (questions that
            need a rubric are left out), those that need it, or all.

    Raises:
        DatasetError: the folder is missing or holds no chats, a file is not BEAM's, or ``out`` is taken.
    """
    refuse_to_overwrite(out)
    account = Account(source="BEAM")
    digest = hashlib.sha256()
    chats = [_read(folder, name, account, digest) for name, folder in _folders(source)]
    days = [day.day for chat in chats for day in chat.days]
    epoch, last = min(days), max(days)
    with FolderWriter(out) as writer:
        ego_map = {}
        for chat in chats:
            turns, end = _write_chat(chat, epoch, writer, account)
            ego_map[chat.ego] = list(dict.fromkeys(session for session, _ in turns.values()))
            _write_questions(chat, turns, end, writer, account, rubrics=rubrics)
        writer.put(EGO_MAP, ego_map)
        writer.put(
            REPORT,
            {
                "name": "BEAM",
                "pipeline": "memarena dataset import beam",
                "source_file": source.name,
                "source_sha256": digest.hexdigest(),
                "calendar_epoch": epoch.isoformat(),
                "day_count": (last - epoch).days + 1,
                **account.report(),
            },
        )
    return account


# ------------------------------------------------------------------ reading


def _folders(source: Path) -> list[tuple[str, Path]]:
    """Return name and folder of each chat: the source itself, the folders in it, or the folders in those.

    Raises:
        DatasetError: the source is not a folder, or holds no chat.
    """
    if not source.is_dir():
        raise DatasetError(f"{source}: no such folder; a folder of BEAM chats is expected")
    for folders in (source, *sorted(source.glob("*/"), key=_by_number)), sorted(source.glob("*/*/"), key=_by_number):
        chats = [folder for folder in folders if any((folder / name).is_file() for name in CHATS)]
        if chats:
            return [(f"{folder.resolve().parent.name} {folder.resolve().name}", folder) for folder in chats]
    raise DatasetError(f"{source}: no chat.json in it or in its folders; a folder of BEAM chats is expected")


def _by_number(folder: Path) -> tuple[Any, ...]:
    return tuple((len(part), part) if part.isdigit() else (0, part) for part in folder.parts[-2:])


def _read(folder: Path, name: str, account: Account, digest: Any) -> _Chat:
    path = next(folder / name for name in CHATS if (folder / name).is_file())
    batches, data = read_json(path)
    digest.update(data)
    try:
        days = _days(batches, name, account)
    except FieldError as error:
        raise DatasetError(f"{path}: {error.field}: {error.reason}") from error
    questions, data = read_json(folder / QUESTIONS)
    digest.update(data)
    if not isinstance(questions, dict) or not all(isinstance(listed, list) for listed in questions.values()):
        raise DatasetError(f"{folder / QUESTIONS}: an object of abilities with lists of questions is expected")
    return _Chat(name, days, questions)


def _days(batches: Any, name: str, account: Account) -> list[_Day]:
    """Return the days of a chat; batches of the same date, or without one, are joined. Raises FieldError."""
    if not isinstance(batches, list) or not batches:
        raise FieldError("file", "a list of batches is expected")
    days: list[_Day] = []
    message_ids: set[int] = set()
    for position, batch in enumerate(batches):
        turns = batch.get("turns") if isinstance(batch, dict) else None
        if not isinstance(turns, list):
            raise FieldError(f"{position}.turns", "missing; a list of groups of messages is expected")
        groups = [
            _group(group, f"{position}.turns.{number}", message_ids) for number, group in enumerate(turns) if group
        ]
        day = _anchor(batch, groups, f"{position}.time_anchor")
        if day is None:
            if not days:
                raise FieldError(f"{position}.time_anchor", "missing; a date like 'March-15-2024' is expected")
            account.change(f"{name} batch {position}", "has no time anchor: put on the day of the one before")
        if day is None or (days and days[-1].day == day):
            days[-1].groups.extend(groups)
        else:
            if days and day < days[-1].day:
                account.change(f"{name} batch {position}", f"lies before the one before it: read as of {day}")
            days.append(_Day(day, groups))
    if not any(day.groups for day in days):
        raise FieldError("file", "no messages")
    return days


def _group(group: Any, field: str, message_ids: set[int]) -> list[Mapping[str, Any]]:
    """Return a group of messages after its checks; their ids are added to ``message_ids``. Raises FieldError."""
    if not isinstance(group, list):
        raise FieldError(field, "a list of messages is expected")
    for position, message in enumerate(group):
        message_field = f"{field}.{position}"
        if not isinstance(message, dict):
            raise FieldError(message_field, "a message is expected")
        if message.get("role") not in ("user", "assistant"):
            raise FieldError(f"{message_field}.role", f"{message.get('role')!r}; user or assistant is expected")
        if not isinstance(message.get("content"), str):
            raise FieldError(f"{message_field}.content", "missing; a text is expected")
        number = message.get("id")
        if not isinstance(number, int) or number in message_ids:
            raise FieldError(f"{message_field}.id", f"{number!r}; a number that no other message has is expected")
        message_ids.add(number)
    return group


def _anchor(batch: Mapping[str, Any], groups: Sequence[Sequence[Mapping[str, Any]]], field: str) -> date | None:
    anchors = (batch.get("time_anchor"), *(message.get("time_anchor") for group in groups for message in group))
    anchor_text = next((anchor for anchor in anchors if anchor), None)
    if anchor_text is None:
        return None
    try:
        return datetime.strptime(str(anchor_text).strip(), "%B-%d-%Y").date()
    except ValueError:
        raise FieldError(field, f"{anchor_text!r}; a date like 'March-15-2024' is expected") from None


# ------------------------------------------------------------------ writing


def _write_chat(
    chat: _Chat, epoch: date, writer: FolderWriter, account: Account
) -> tuple[dict[int, tuple[str, str]], float]:
    """Write the sessions; return session and turn of each message id, and when the last one ends."""
    ego, assistant = chat.ego, f"assistant_{chat.ego}"
    writer.add(PERSONAS, {"agent_id": ego, "persona": {"name": "User"}, "social_neighbors": []})
    speakers = {"user": ego, "assistant": assistant}
    turns: dict[int, tuple[str, str]] = {}
    end, number = 0.0, 0
    for day in chat.days:
        texts = [[_message_text(message, chat.name, account) for message in group] for group in day.groups]
        times = times_of_day((day.day - epoch).days + _MORNING, texts)
        for group, group_texts, when in zip(day.groups, texts, times, strict=True):
            session_id = f"{ego}_{number:04d}"
            number += 1
            rows = []
            for message, text in zip(group, group_texts, strict=True):
                turn_id = f"{ego}_m{message['id']:05d}"
                turns[message["id"]] = session_id, turn_id
                metadata = {"question_type": message["question_type"]} if message.get("question_type") else {}
                rows.append(
                    {"turn_id": turn_id, "speaker_id": speakers[message["role"]], "text": text, "metadata": metadata}
                )
            more = {"modality": "text_message", "session_type": "person_assistant", "metadata": {"source": "BEAM"}}
            writer.add(CORPUS, timed_session_row(session_id, [ego, assistant], when, rows, more))
            account.counts["turns"] += len(rows)
            end = max(end, when[-1])
    account.counts["chats"] += 1
    account.counts["sessions"] += number
    return turns, end


def _message_text(message: Mapping[str, Any], chat: str, account: Account) -> str:
    return truncate_text(_MARKER.sub("", message["content"]), f"{chat} message {message['id']}", account)


def _write_questions(
    chat: _Chat,
    turns: Mapping[int, tuple[str, str]],
    end: float,
    writer: FolderWriter,
    account: Account,
    *,
    rubrics: Rubrics,
) -> None:
    """Write the questions of a chat; ``end`` is their time of asking, in simulated days."""
    for ability, questions in chat.questions.items():
        for position, question in enumerate(questions, start=1):
            name = f"{chat.ego}_{slug(ability)}_{position}"
            account.counts["questions in the files"] += 1
            try:
                family, gold, query, rubric = _gold(ability, question, rubrics=rubrics)
            except FieldError as error:
                account.skip(name, f"{error.field}: {error.reason}")
                continue
            evidence = list(_evidence(question, name, turns, account))
            if not evidence and family is not Family.CONFABULATION:
                account.change(name, "has no evidence; imported without")
            row = instance_row(
                name,
                family,
                query,
                gold,
                ego=chat.ego,
                sessions=list(dict.fromkeys(session for session, _ in evidence)),
                turns=[turn for _, turn in evidence],
                metadata={"query_timestamp": end, "ability": ability, "rubric": rubric, **_stated_answer(question)},
            )
            row["difficulty"] = question.get("difficulty") if isinstance(question.get("difficulty"), str) else None
            writer.add(f"{INSTANCE_FOLDER}/{family.value}.jsonl", row)
            account.counts["questions imported"] += 1
            account.counts[f"questions {family.value}"] += 1


def _stated_answer(question: Mapping[str, Any]) -> dict[str, str]:
    answer = next((question[key] for key in ("answer", "ideal_response", "ideal_answer") if key in question), None)
    return {"stated_answer": clean(answer)} if isinstance(answer, str) else {}


def _gold(ability: str, question: Any, *, rubrics: Rubrics) -> tuple[Family, Gold, str, list[str]]:
    """Return family, gold, query and rubric of a question. Raises FieldError if it cannot be imported."""
    if ability in BY_RUBRIC_ALONE and rubrics == "none":
        raise FieldError(ability, "right or wrong by a rubric alone, which needs a judge that reads one")
    if ability not in FAMILY_OF_ABILITY and ability not in BY_RUBRIC_ALONE:
        raise FieldError(ability, f"no ability of BEAM; one of {', '.join(FAMILY_OF_ABILITY)} is expected")
    if not isinstance(question, dict):
        raise FieldError(ability, "an object is expected")
    query, rubric = question.get("question"), question.get("rubric")
    if not isinstance(query, str) or not query.strip():
        raise FieldError("question", "missing; a text is expected")
    if not isinstance(rubric, list) or not rubric or not all(isinstance(i, str) and i.strip() for i in rubric):
        raise FieldError("rubric", "missing; a list of texts is expected")
    rubric_texts = [clean(item) for item in rubric]
    if ability in BY_RUBRIC_ALONE or rubrics == "all":
        return Family.QA, _by_rubric(ability, rubric_texts), clean(query.strip()), rubric_texts
    items = [clean(_ITEM.sub(r"\1", item.strip())) for item in rubric]
    family = FAMILY_OF_ABILITY[ability]
    gold: Gold
    if family is Family.CONFABULATION:
        gold = AbstainGold()
    elif family is Family.CONFLICT:
        gold = _conflict(items)
    elif family is Family.TEMPORAL:
        gold = _temporal(items)
    else:
        answers = _answers(items)
        gold = TextGold(answers=answers, values=safe_values(family, answers))
    return family, gold, clean(query.strip()), rubric_texts


def _by_rubric(ability: str, rubric: Sequence[str]) -> RubricGold:
    """Return the rubric; for ``event_ordering`` with a sentence that asks for the order, which no item does."""
    sentences = [item.strip() for item in rubric]
    if ability == "event_ordering" and len(sentences) > 1:
        sentences.append("What the answer has of these comes in this order: " + "; ".join(sentences))
    return RubricGold(rubric=tuple(sentences))


def _answers(items: Sequence[str]) -> tuple[str, ...]:
    """Return the right answers: several items are the parts of a single answer; a single item may name alternatives."""
    return alternatives(items[0]) if len(items) == 1 else ("; ".join(items),)


def _conflict(items: Sequence[str]) -> ConflictGold:
    """Return the two statements: the items between the contradiction (first) and the question back (last)."""
    if len(items) != 4:
        raise FieldError("rubric", f"{len(items)} items; contradiction, two statements and a question are expected")
    return ConflictGold(original_detail=items[1], changed_detail=items[2])


def _temporal(items: Sequence[str]) -> TextGold:
    """Return the gold of a temporal question.

    A second item ``from … till …`` is dropped: the question asks for the length of time, and its two ends explain it.
    """
    if len(items) == 2 and items[1].casefold().startswith("from "):
        items = items[:1]
    match = _SPAN.fullmatch(items[0].strip().rstrip(".").casefold()) if len(items) == 1 else None
    answers = _answers(items)
    if match is None:
        return TextGold(answers=answers, values=safe_values(Family.TEMPORAL, answers))
    days = int(match.group(1)) * (7 if match.group(2) == "week" else 1)
    return TextGold(answers=answers, values=(DurationValue(days=days),))


def _evidence(
    question: Mapping[str, Any], name: str, turns: Mapping[int, tuple[str, str]], account: Account
) -> Iterator[tuple[str, str]]:
    for number in dict.fromkeys(_numbers(question.get("source_chat_ids"))):
        if number in turns:
            yield turns[number]
        else:
            account.skip(f"{name} evidence {number!r}", "no such message in the chat")


def _numbers(value: Any) -> Iterator[Any]:
    """Yield the message ids of a list, of nested lists or of an object of lists."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _numbers(item)
    elif value is not None:
        yield value
