"""Imports LoCoMo (Maharana et al., ACL 2024): one ego per conversation, real dates; reports each skipped question.

- The ego is ``speaker_a``. Agents are named after the conversation (``john_conv_43``), since names occur in several;
  the persona has the name that people use.
- Day 0 is the earliest session date of the whole file, so simulated days are real dates.
- Category 5 becomes ``d3_confabulation`` (abstain), 2 ``d8_temporal``, 1, 3 and 4 ``d7_qa``. Questions carry no
  timestamp: they are asked at the end of the last day.
- A shared picture becomes text at the end of the turn, ``[shares a photo: <caption>]``: questions about pictures depend
  on the caption. Its address goes to the turn's metadata.
- Corrections of golds and evidence come from a second file, see ``corrections.py``. A corrected question keeps its
  published gold in ``metadata.correction``, so that it is scored with and without the correction.
- ``event_summary``, ``observation`` and ``session_summary`` are made from the conversations and are left out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

from memarena_dataset.errors import DatasetError, FieldError
from memarena_dataset.gold import AbstainGold, Gold, TextGold
from memarena_dataset.importers.account import Account
from memarena_dataset.importers.corrections import Correction, Corrections, read_corrections
from memarena_dataset.importers.json_reading import read_json
from memarena_dataset.importers.rows import instance_row, session_row
from memarena_dataset.importers.text import clean, slug
from memarena_dataset.importers.typed_answers import safe_values
from memarena_dataset.io.files import CORPUS, EDGES, EGO_MAP, INSTANCE_FOLDER, PERSONAS, REPORT
from memarena_dataset.io.writing import FolderWriter, ground_truth_of, refuse_to_overwrite
from memarena_dataset.model import Family
from memarena_dataset.values.alternatives import alternatives

FAMILY_OF_CATEGORY: Mapping[int, Family] = {
    1: Family.QA,
    2: Family.TEMPORAL,
    3: Family.QA,
    4: Family.QA,
    5: Family.CONFABULATION,
}
CATEGORY_NAMES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}

_CONVERSATIONS = 10
"""Number of conversations of the whole data set."""
_SESSION_KEY = re.compile(r"session_(\d+)")
_DATE_KEY = re.compile(r"session_(\d+)_date_time")
_DIALOGUE_ID = re.compile(r"D(\d+):(\d+)")


@dataclass(frozen=True, slots=True)
class _Conversation:
    """One conversation of the file, checked."""

    name: str
    speakers: tuple[str, str]
    sessions: Mapping[int, tuple[datetime, list[Mapping[str, Any]]]]
    questions: list[Mapping[str, Any]]

    def agent_id(self, speaker: str) -> str:
        return f"{slug(speaker)}_{slug(self.name)}"

    @property
    def ego(self) -> str:
        return self.agent_id(self.speakers[0])

    def session_id(self, number: int) -> str:
        return f"{self.name}_session_{number:02d}"

    def turn_id(self, dialogue_id: str) -> str:
        return f"{self.name}_{dialogue_id}"


def import_locomo(source: Path, out: Path, corrections: Path | None = None) -> Account:
    """Write a LoCoMo file as a data set folder, with the corrections of a second file if there is one.

    Raises:
        DatasetError: a file is missing or not of its form, or ``out`` is taken.
    """
    refuse_to_overwrite(out)
    account = Account(source="LoCoMo")
    corrected = read_corrections(corrections) if corrections else Corrections(())
    value, data = read_json(source)
    try:
        conversations = _conversations(value, account)
    except FieldError as error:
        raise DatasetError(f"{source}: {error.field}: {error.reason}") from error
    epoch = min(moment.date() for talk in conversations for moment, _ in talk.sessions.values())
    last = max(moment.date() for talk in conversations for moment, _ in talk.sessions.values())
    with FolderWriter(out) as writer:
        for index, talk in enumerate(conversations):
            known_turns = _write_conversation(talk, epoch, writer, account)
            talk_corrections = _corrections_of(talk, index, len(conversations), corrected)
            _write_questions(talk, known_turns, talk_corrections, writer, account)
        for unused in corrected.unused():
            account.skip(f"correction {unused.name}", f"no question {unused.position} reads {unused.question!r}")
        writer.put(EGO_MAP, _ego_map(conversations))
        writer.put(
            REPORT,
            {
                "name": "LoCoMo",
                "pipeline": "memarena dataset import locomo",
                "source_file": source.name,
                "source_sha256": hashlib.sha256(data).hexdigest(),
                "calendar_epoch": epoch.isoformat(),
                "day_count": (last - epoch).days + 1,
                **({"corrections_file": corrections.name} if corrections else {}),
                **account.report(),
            },
        )
    return account


def _corrections_of(
    talk: _Conversation, index: int, conversations: int, corrected: Corrections
) -> Mapping[int, Correction]:
    """Return the corrections of a conversation by the index of their question, from 0.

    A file with fewer conversations than LoCoMo's ten may hold any of the ten, so corrections are then matched without
    the conversation's index.
    """
    corrections = {
        position: corrected.of(index, position, str(question.get("question")), only_here=conversations < _CONVERSATIONS)
        for position, question in enumerate(talk.questions)
    }
    return {position: correction for position, correction in corrections.items() if correction is not None}


# ------------------------------------------------------------------ reading


def _conversations(value: Any, account: Account) -> list[_Conversation]:
    items = [value] if isinstance(value, dict) else value
    if not isinstance(items, list) or not items:
        raise FieldError("file", "a list of conversations is expected")
    conversations = [_conversation(item, str(position), account) for position, item in enumerate(items)]
    names = [talk.name for talk in conversations]
    if len(set(names)) != len(names):
        raise FieldError("sample_id", "two conversations have the same one")
    return conversations


def _conversation(item: Any, where: str, account: Account) -> _Conversation:
    """Return a conversation after its checks. Raises FieldError."""
    if not isinstance(item, dict):
        raise FieldError(where, "an object with sample_id, conversation and qa is expected")
    name, talk, questions = item.get("sample_id"), item.get("conversation"), item.get("qa")
    if not isinstance(name, str) or not name:
        raise FieldError(f"{where}.sample_id", "missing; a text is expected")
    if not isinstance(talk, dict):
        raise FieldError(f"{where}.conversation", "missing; an object is expected")
    if not isinstance(questions, list) or not all(isinstance(question, dict) for question in questions):
        raise FieldError(f"{where}.qa", "missing; a list of objects is expected")
    speakers = (talk.get("speaker_a"), talk.get("speaker_b"))
    if not all(isinstance(speaker, str) and speaker for speaker in speakers) or speakers[0] == speakers[1]:
        raise FieldError(f"{where}.conversation", "two different names are expected as speaker_a and speaker_b")
    sessions = dict(_sessions(name, talk, f"{where}.conversation", account))
    if not sessions:
        raise FieldError(f"{where}.conversation", "no session_N with a session_N_date_time")
    return _Conversation(name, (str(speakers[0]), str(speakers[1])), sessions, questions)


def _sessions(
    name: str, talk: Mapping[str, Any], where: str, account: Account
) -> Iterator[tuple[int, tuple[datetime, list[Mapping[str, Any]]]]]:
    """Yield number, start and turns of each session. Sessions without turns or date are noted in the account."""
    numbers = sorted(int(match.group(1)) for key in talk if (match := _SESSION_KEY.fullmatch(key)))
    dates = {int(match.group(1)): value for key, value in talk.items() if (match := _DATE_KEY.fullmatch(key))}
    for number in numbers:
        field, turns = f"{where}.session_{number}", talk[f"session_{number}"]
        if not isinstance(turns, list) or not all(isinstance(turn, dict) for turn in turns):
            raise FieldError(field, "a list of turns is expected")
        for position, turn in enumerate(turns):
            for key in ("speaker", "dia_id", "text"):
                if not isinstance(turn.get(key), str):
                    raise FieldError(f"{field}.{position}.{key}", "missing; a text is expected")
        if not turns:
            account.skip(f"{name} session_{number}", "holds no turns")
        elif number not in dates:
            account.skip(f"{name} session_{number}", "no session date, so its day is unknown")
        else:
            yield number, (_moment(dates[number], f"{field}_date_time"), turns)
    for number in sorted(set(dates) - set(numbers)):
        account.skip(f"{name} session_{number}_date_time", "a date without a session next to it")


def _moment(text: Any, field: str) -> datetime:
    try:
        return datetime.strptime(str(text).strip(), "%I:%M %p on %d %B, %Y")
    except ValueError:
        raise FieldError(field, f"{text!r}; a time like '1:56 pm on 8 May, 2023' is expected") from None


# ------------------------------------------------------------------ writing


def _write_conversation(talk: _Conversation, epoch: date, writer: FolderWriter, account: Account) -> dict[str, str]:
    """Write the sessions; return the session of each turn id."""
    agents = {speaker: talk.agent_id(speaker) for speaker in talk.speakers}
    for speaker, agent_id in agents.items():
        others = [other for other in agents.values() if other != agent_id]
        persona = {"name": speaker, "conversation": talk.name}
        writer.add(PERSONAS, {"agent_id": agent_id, "persona": persona, "social_neighbors": others})
        account.counts["speakers"] += 1
    writer.add(EDGES, {"source": agents[talk.speakers[0]], "target": agents[talk.speakers[1]], "weight": 1.0})
    session_of: dict[str, str] = {}
    for number, (moment, turns) in talk.sessions.items():
        session_id = talk.session_id(number)
        rows = []
        for turn in turns:
            turn_id = talk.turn_id(turn["dia_id"])
            if turn["speaker"] not in agents:
                account.skip(turn_id, f"spoken by {turn['speaker']!r}, who is not one of the two speakers")
            elif turn_id in session_of:
                account.skip(turn_id, "the dia_id occurs a second time")
            else:
                session_of[turn_id] = session_id
                rows.append(_turn(turn, turn_id, agents[turn["speaker"]]))
        start = (moment.date() - epoch).days + (moment.hour * 60 + moment.minute) / 1440
        more = {"modality": "text_message", "session_type": "person_person", "metadata": {"source": "LoCoMo"}}
        writer.add(CORPUS, session_row(session_id, list(agents.values()), round(start, 6), rows, **more))
        account.counts["sessions"] += 1
        account.counts["turns"] += len(rows)
    return session_of


def _turn(turn: Mapping[str, Any], turn_id: str, speaker_id: str) -> dict[str, Any]:
    text = clean(turn["text"].strip())
    caption = turn.get("blip_caption")
    if isinstance(caption, str) and caption.strip():
        text = f"{text} [shares a photo: {clean(caption.strip())}]".strip()
    metadata = {key: turn[key] for key in ("dia_id", "img_url", "query") if key in turn}
    return {"turn_id": turn_id, "speaker_id": speaker_id, "text": text, "metadata": metadata}


def _write_questions(
    talk: _Conversation,
    session_of: Mapping[str, str],
    corrections: Mapping[int, Correction],
    writer: FolderWriter,
    account: Account,
) -> None:
    """Write the questions of a conversation; ``session_of`` by turn id, ``corrections`` by question index."""
    for position, question in enumerate(talk.questions):
        name = f"{talk.name}_q{position + 1:03d}"
        account.counts["questions in the file"] += 1
        try:
            family, gold, more = _gold(question, name, account)
        except FieldError as error:
            account.skip(name, f"{error.field}: {error.reason}")
            continue
        turns = _evidence(question.get("evidence"), name, talk, session_of, account)
        correction = corrections.get(position)
        if correction is not None:
            corrected_ids = list(correction.evidence)
            corrected = _evidence(corrected_ids, name, talk, session_of, account) if corrected_ids else turns
            gold, turns, more["correction"] = _corrected(correction, family, gold, turns, corrected)
            account.counts["questions corrected"] += 1
        row = instance_row(
            name,
            family,
            clean(question["question"].strip()),
            gold,
            ego=talk.ego,
            sessions=list(dict.fromkeys(session_of[turn_id] for turn_id in turns)),
            turns=turns,
            metadata={"category": CATEGORY_NAMES[question["category"]], **more},
        )
        writer.add(f"{INSTANCE_FOLDER}/{family.value}.jsonl", row)
        account.counts["questions imported"] += 1
        account.counts[f"questions {family.value}"] += 1


def _corrected(
    correction: Correction, family: Family, gold: Gold, turns: list[str], corrected_turns: list[str]
) -> tuple[Gold, list[str], dict[str, Any]]:
    """Return gold, evidence turns and metadata after a correction.

    The metadata has the correction's reason, and the published gold and evidence if they were changed.
    """
    metadata: dict[str, Any] = {"id": correction.name, "kind": correction.kind, "reason": correction.reason}
    if isinstance(gold, TextGold) and correction.changes_gold:
        metadata["published_ground_truth"] = ground_truth_of(family, gold)
        answers = alternatives(correction.answer)
        gold = TextGold(answers=answers, values=safe_values(family, answers))
    if corrected_turns and corrected_turns != turns:
        metadata["published_evidence_turn_ids"] = turns
        turns = corrected_turns
    return gold, turns, metadata


def _gold(question: Mapping[str, Any], name: str, account: Account) -> tuple[Family, Gold, dict[str, Any]]:
    category = question.get("category")
    if not isinstance(category, int) or category not in FAMILY_OF_CATEGORY:
        raise FieldError("category", f"{category!r}; 1 to 5 is expected")
    if not isinstance(question.get("question"), str) or not question["question"].strip():
        raise FieldError("question", "missing; a text is expected")
    family = FAMILY_OF_CATEGORY[category]
    answer = question.get("answer")
    if category == 5:
        adversarial = question.get("adversarial_answer")
        more: dict[str, Any] = {}
        if answer is not None:
            more["stated_answer"] = clean(str(answer))
            account.change(name, f"adversarial, yet it states the answer {answer!r}: abstaining stays the gold")
        return family, AbstainGold(adversarial_answer=None if adversarial is None else clean(str(adversarial))), more
    if answer is None or not str(answer).strip():
        raise FieldError("answer", "missing")
    answers = alternatives(clean(str(answer)))
    return family, TextGold(answers=answers, values=safe_values(family, answers)), {}


def _evidence(
    listed: Any, name: str, talk: _Conversation, session_of: Mapping[str, str], account: Account
) -> list[str]:
    """Turn ids of the evidence that can be read safely; the rest is named."""
    items = listed if isinstance(listed, list) else []
    if not items:
        account.change(name, "has no evidence in the file; imported without")
        return []
    turns: list[str] = []
    for item in items:
        parts = [part for part in re.split(r"[;,\s]+", str(item)) if part]
        if len(parts) > 1:
            account.change(name, f"evidence {item!r} holds several ids: read as {' and '.join(parts)}")
        for part in parts:
            match = _DIALOGUE_ID.fullmatch(part)
            if match is None:
                account.skip(f"{name} evidence {part!r}", "not an id like 'D8:6'")
                continue
            dialogue_id = f"D{int(match.group(1))}:{int(match.group(2))}"
            turn_id = talk.turn_id(dialogue_id)
            if turn_id not in session_of:
                account.skip(f"{name} evidence {part!r}", "no such turn in the conversation")
            elif turn_id not in turns:
                turns.append(turn_id)
    if not turns:
        account.change(name, "none of its evidence can be used; imported without")
    return turns


def _ego_map(conversations: list[_Conversation]) -> dict[str, list[str]]:
    return {
        talk.agent_id(speaker): [talk.session_id(number) for number in talk.sessions]
        for talk in conversations
        for speaker in talk.speakers
    }
