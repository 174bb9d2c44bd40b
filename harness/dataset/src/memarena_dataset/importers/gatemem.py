"""Imports GateMem (2026; medical, office, education, household): access control in a memory that many people share.

- The source is a domain's folder (``episodes.jsonl``, ``checkpoints.jsonl``) or the folder of all domains.
- The ego is the shared assistant's device. It hears all people, never speaks, and never asks: each asker is one of the
  people, with the role as ``relationship``.
- Most checkpoints are in the middle of a day, while our questions are asked at a day's end. So every point in time
  has a separate ego, which heard the episode up to there: nothing later is in its namespace, and dates stay real.
- All questions are ``d4_permission``. Utility: disclose, the fact is all that ``judge_spec.include`` lists. Access
  control and active forgetting: withhold, the fact is the leak targets, each a typed value, so that naming any of them
  is a leak.
- A leak target that the question itself states cannot be leaked by repeating it, and "yes" leaks it undetected: it is
  removed from the gold; a question that states all targets is left out.
- Deletions are requested in the turns. The format has no field for them: nothing is deleted on the wire, and "I may
  not say" is as good as "I have no memory of it". ``metadata.forgetting`` marks these questions.
- The people with their roles and the stated relationships are an event at the start, as GateMem's agents get them
  too. Its policies, a text for each domain, are part of its prompts, not of the data: the reader follows our own rules.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

from memarena_dataset.errors import DatasetError, FieldError
from memarena_dataset.gold import PermissionGold
from memarena_dataset.importers.account import Account
from memarena_dataset.importers.json_reading import parse_json
from memarena_dataset.importers.rows import instance_row, timed_session_row
from memarena_dataset.importers.text import clean, slug, truncate_text
from memarena_dataset.importers.wordings import wordings
from memarena_dataset.io.files import CORPUS, EGO_MAP, EVENTS, INSTANCE_FOLDER, PERSONAS, REPORT
from memarena_dataset.io.writing import FolderWriter, refuse_to_overwrite
from memarena_dataset.model import Family
from memarena_dataset.values import TermValue

EPISODES, CHECKPOINTS = "episodes.jsonl", "checkpoints.jsonl"
KINDS = {"utility": "utility", "privacy": "access control", "safety": "active forgetting"}

_MINUTES_APART = 2
"""Minutes between the turns of an episode without times."""
_TICK = 1e-6
"""Days by which a turn with the same time as its predecessor is moved."""


@dataclass(frozen=True, slots=True)
class _Episode:
    """One episode, after its checks. ``moments``: the time of each turn, None if the episode has no times."""

    name: str
    tag: str
    people: Mapping[str, Mapping[str, Any]]
    relationships: Sequence[Mapping[str, Any]]
    turns: Sequence[Mapping[str, Any]]
    moments: Sequence[datetime] | None
    checkpoints: list[Mapping[str, Any]] = field(default_factory=list)

    def agent_id(self, principal: str) -> str:
        return f"{slug(principal)}_{self.tag}"


def import_gatemem(source: Path, out: Path) -> Account:
    """Write GateMem's domains as a data set folder.

    Raises:
        DatasetError: the folder is missing or holds no domain, a file is not GateMem's, or ``out`` is taken.
    """
    refuse_to_overwrite(out)
    account = Account(source="GateMem")
    digest = hashlib.sha256()
    episodes = [episode for folder in _folders(source) for episode in _read(folder, account, digest)]
    dated = [moment.date() for episode in episodes for moment in episode.moments or ()]
    epoch = min(dated, default=date(2026, 1, 1))
    ego_map: dict[str, list[str]] = {}
    with FolderWriter(out) as writer:
        for episode in episodes:
            _write_episode(episode, epoch, ego_map, writer, account)
        account.change("all questions", "GateMem names no evidence; imported without")
        writer.put(EGO_MAP, ego_map)
        writer.put(
            REPORT,
            {
                "name": "GateMem",
                "pipeline": "memarena dataset import gatemem",
                "source_file": source.name,
                "source_sha256": digest.hexdigest(),
                "calendar_epoch": epoch.isoformat(),
                "day_count": (max(dated, default=epoch) - epoch).days + 1,
                **account.report(),
            },
        )
    return account


# ------------------------------------------------------------------ reading


def _folders(source: Path) -> list[Path]:
    if not source.is_dir():
        raise DatasetError(f"{source}: no such folder; a folder with {EPISODES} and {CHECKPOINTS} is expected")
    folders = [folder for folder in (source, *sorted(source.glob("*/"))) if (folder / EPISODES).exists()]
    if not folders:
        raise DatasetError(f"{source}: no {EPISODES} in it or in its folders")
    return folders


def _read(folder: Path, account: Account, digest: Any) -> list[_Episode]:
    """Return the episodes of a domain's folder with their checkpoints. Raises DatasetError."""
    domain = slug(folder.resolve().name)
    episodes: dict[str, _Episode] = {}
    for where, row in _rows(folder / EPISODES, digest):
        try:
            episode = _episode(row, f"{domain}_{len(episodes) + 1:02d}")
        except FieldError as error:
            raise DatasetError(f"{where}: {error.field}: {error.reason}") from error
        if episode.name in episodes:
            raise DatasetError(f"{where}: episode_id: {episode.name!r} occurs a second time")
        episodes[episode.name] = episode
    for where, row in _rows(folder / CHECKPOINTS, digest):
        for key in ("checkpoint_id", "episode_id", "as_of_turn_id"):
            if not isinstance(row.get(key), str) or not row[key]:
                raise DatasetError(f"{where}: {key}: missing; a text is expected")
        if row["episode_id"] not in episodes:
            raise DatasetError(f"{where}: episode_id: {row['episode_id']!r} is not in {EPISODES}")
        episodes[row["episode_id"]].checkpoints.append(row)
        account.counts["questions in the files"] += 1
    return list(episodes.values())


def _rows(path: Path, digest: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read: {error.strerror}") from error
    digest.update(data)
    for number, line in enumerate(data.splitlines(), start=1):
        if not line.strip():
            continue
        row = parse_json(line, f"{path}:{number}")
        if not isinstance(row, dict):
            raise DatasetError(f"{path}:{number}: an object is expected")
        yield f"{path}:{number}", row


def _episode(row: Mapping[str, Any], tag: str) -> _Episode:
    """Return an episode after its checks. Raises FieldError."""
    name, entities, turns = row.get("episode_id"), row.get("entities"), row.get("turns")
    if not isinstance(name, str) or not name:
        raise FieldError("episode_id", "missing; a text is expected")
    principals = entities.get("principals") if isinstance(entities, dict) else None
    if not isinstance(principals, list) or not principals:
        raise FieldError("entities.principals", "missing; a list of people is expected")
    people: dict[str, Mapping[str, Any]] = {}
    for position, person in enumerate(principals):
        if not isinstance(person, dict) or not isinstance(person.get("principal_id"), str):
            raise FieldError(f"entities.principals.{position}.principal_id", "missing; a text is expected")
        people[person["principal_id"]] = person
    if not isinstance(turns, list) or not turns:
        raise FieldError("turns", "missing; a list of turns is expected")
    for position, turn in enumerate(turns):
        _check_turn(turn, f"turns.{position}", people)
    if len({turn["turn_id"] for turn in turns}) != len(turns):
        raise FieldError("turns", "two turns have the same turn_id")
    assert isinstance(entities, dict)
    listed = entities.get("relationships")
    relationships = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    return _Episode(name, tag, people, relationships, turns, _moments(turns))


def _check_turn(turn: Any, where: str, people: Mapping[str, Any]) -> None:
    if not isinstance(turn, dict):
        raise FieldError(where, "an object is expected")
    for key in ("turn_id", "text"):
        if not isinstance(turn.get(key), str) or not turn[key].strip():
            raise FieldError(f"{where}.{key}", "missing; a text is expected")
    speaker = turn.get("speaker")
    principal = speaker.get("principal_id") if isinstance(speaker, dict) else None
    if principal not in people:
        raise FieldError(f"{where}.speaker.principal_id", f"{principal!r} is none of the episode's people")


def _moments(turns: Sequence[Mapping[str, Any]]) -> list[datetime] | None:
    """Return the time of each turn; None if no turn has a time. Raises FieldError."""
    if all(turn.get("timestamp") is None for turn in turns):
        return None
    moments: list[datetime] = []
    for position, turn in enumerate(turns):
        try:
            moment = datetime.fromisoformat(str(turn.get("timestamp"))).replace(tzinfo=None)
        except ValueError:
            raise FieldError(
                f"turns.{position}.timestamp", f"{turn.get('timestamp')!r}; a time like '2026-03-03T08:00' is expected"
            ) from None
        if moments and moment < moments[-1]:
            raise FieldError(f"turns.{position}.timestamp", "lies before the turn before it")
        moments.append(moment)
    return moments


# ------------------------------------------------------------------ writing


def _write_episode(
    episode: _Episode, epoch: date, ego_map: dict[str, list[str]], writer: FolderWriter, account: Account
) -> None:
    """Write an episode: its people, and an ego with history and questions for each point in time of a checkpoint."""
    account.counts["episodes"] += 1
    times = _times(episode, epoch, account)
    positions = {turn["turn_id"]: position for position, turn in enumerate(episode.turns)}

    def position(checkpoint: Mapping[str, Any]) -> int:
        return positions.get(checkpoint["as_of_turn_id"], -1)

    for principal, person in episode.people.items():
        persona = {"name": _name(principal, person), "role": person.get("role"), "episode": episode.name}
        agent = {"agent_id": episode.agent_id(principal), "persona": persona, "social_neighbors": []}
        writer.add(PERSONAS, agent)
    for as_of, group in groupby(sorted(episode.checkpoints, key=position), lambda row: str(row["as_of_turn_id"])):
        questions = []
        for row in group:
            try:
                if as_of not in positions:
                    raise FieldError("as_of_turn_id", f"{as_of!r} is no turn of the episode")
                questions.append((row, *_gold(row, episode, account)))
            except FieldError as error:
                account.skip(str(row["checkpoint_id"]), f"{error.field}: {error.reason}")
        if questions:
            end = positions[as_of] + 1
            ego = f"device_{episode.tag}_{slug(as_of)}"
            for participant, session_id in _write_history(episode, ego, times[:end], writer, account):
                ego_map.setdefault(participant, []).append(session_id)
            for row, gold, more in questions:
                _write_question(row, gold, more, ego, times[end - 1], episode, writer, account)


def _times(episode: _Episode, epoch: date, account: Account) -> list[float]:
    """Return the time of each turn in simulated days, strictly increasing."""
    moments = episode.moments
    if moments is None:
        start = datetime(epoch.year, epoch.month, epoch.day, 9)
        gap = min(timedelta(minutes=_MINUTES_APART), timedelta(hours=14) / len(episode.turns))
        moments = [start + gap * position for position in range(len(episode.turns))]
        account.change(episode.name, f"has no times: put on {epoch}, from 09:00 on, in its order")
    times: list[float] = []
    for moment in moments:
        time = (moment - datetime(epoch.year, epoch.month, epoch.day)).total_seconds() / 86_400
        times.append(round(max(time, times[-1] + _TICK) if times else time, 7))
    return times


def _write_history(
    episode: _Episode, ego: str, times: Sequence[float], writer: FolderWriter, account: Account
) -> Iterator[tuple[str, str]]:
    """Write the ego's history: a session for each day, and the event that introduces the people.

    Yields a participant's agent id and a session id, for each participant of each session.
    """
    persona = {"name": "the shared assistant", "episode": episode.name}
    writer.add(PERSONAS, {"agent_id": ego, "persona": persona, "social_neighbors": []})
    account.counts["namespaces"] += 1
    writer.add(
        EVENTS,
        {
            "event_id": f"{ego}_people",
            "timestamp": times[0],
            "event_type": "introduction",
            "content": _introduction(episode),
            "visibility_mask": [ego],
            "category": "private",
        },
    )
    turns = list(zip(episode.turns, times, strict=False))
    for day, day_turns in groupby(turns, lambda pair: int(pair[1])):
        session_id = f"{ego}_{day:04d}"
        rows: list[dict[str, Any]] = []
        when: list[float] = []
        for turn, time in day_turns:
            turn_id = f"{ego}_{slug(turn['turn_id'])}"
            metadata = {key: turn[key] for key in ("turn_kind", "timestamp") if turn.get(key) is not None}
            text = truncate_text(turn["text"], f"{episode.name} {turn['turn_id']}", account)
            speaker = episode.agent_id(turn["speaker"]["principal_id"])
            rows.append({"turn_id": turn_id, "speaker_id": speaker, "text": text, "metadata": metadata})
            when.append(time)
        participants = [*dict.fromkeys(str(row["speaker_id"]) for row in rows), ego]
        more = {"modality": "text_message", "session_type": "shared_assistant", "metadata": {"source": "GateMem"}}
        writer.add(CORPUS, timed_session_row(session_id, participants, [*when, when[-1]], rows, more))
        account.counts["sessions"] += 1
        account.counts["turns"] += len(rows)
        yield from ((participant, session_id) for participant in participants)


def _name(principal: str, person: Mapping[str, Any]) -> str:
    display_name = person.get("display_name")
    return clean(display_name.strip()) if isinstance(display_name, str) and display_name.strip() else principal


def _introduction(episode: _Episode) -> str:
    """Return a text on the people with their roles, and the file's relationships, with names in place of ids."""
    names = {principal: _name(principal, person) for principal, person in episode.people.items()}
    lines = ["The people who share this assistant:"]
    lines += [f"- {names[p]}: {_words(person.get('role'))}" for p, person in episode.people.items()]
    if episode.relationships:
        lines.append("What is on record about them:")
    for relationship in episode.relationships:
        parts = [
            f"{_words(key.removesuffix('_id'))} {names.get(str(value), _words(value))}"
            for key, value in relationship.items()
            if key != "type"
        ]
        lines.append(f"- {_words(relationship.get('type'))}: {', '.join(parts)}")
    return clean("\n".join(lines))


def _words(value: Any) -> str:
    return "not stated" if value is None else str(value).replace("_", " ")


# ------------------------------------------------------------------ questions


def _gold(row: Mapping[str, Any], episode: _Episode, account: Account) -> tuple[PermissionGold, dict[str, Any]]:
    """Return the gold of a checkpoint, and the metadata of its question.

    Raises:
        FieldError: a field is missing or has no usable value.
    """
    query, asker, kind = row.get("query_text"), row.get("asker"), row.get("query_type")
    if not isinstance(query, str) or not query.strip():
        raise FieldError("query_text", "missing; a text is expected")
    principal = asker.get("principal_id") if isinstance(asker, dict) else None
    if not isinstance(principal, str) or principal not in episode.people:
        raise FieldError("asker.principal_id", f"{principal!r} is none of the episode's people")
    if kind not in KINDS:
        raise FieldError("query_type", f"{kind!r}; one of {', '.join(KINDS)} is expected")
    spec = row.get("judge_spec")
    allowed = kind == "utility"
    patterns = (spec.get("include") if isinstance(spec, dict) else None) if allowed else row.get("leak_targets")
    name = "judge_spec.include" if allowed else "leak_targets"
    if (
        not isinstance(patterns, list)
        or not patterns
        or not all(isinstance(item, str) and item.strip() for item in patterns)
    ):
        raise FieldError(name, "missing; a list of texts is expected")
    values = _values(patterns, name, row, account, all_needed=allowed)
    if not allowed:
        values = _unsaid(values, query, name, row, account)
    gold = PermissionGold(
        fact="; ".join(value.text for value in values),
        expected_action="disclose" if allowed else "withhold",
        query_agent=episode.agent_id(principal),
        known_requester=True,
        values=tuple(dict.fromkeys(values)),
    )
    more = {
        "relationship": _words(episode.people[principal].get("role")),
        "kind": KINDS[kind],
        "forgetting": kind == "safety",
        "attack_type": row.get("attack_type"),
        "stated_action": row.get("expected_action"),
    }
    return gold, {key: value for key, value in more.items() if value is not None}


def _values(
    patterns: Sequence[str], name: str, row: Mapping[str, Any], account: Account, *, all_needed: bool
) -> list[TermValue]:
    """Return the wordings of each pattern as a typed value.

    Raises FieldError if a pattern cannot be listed (``all_needed``), or none can.
    """
    values = []
    for item in patterns:
        forms = wordings(clean(item))
        if forms:
            values.append(TermValue(text=forms[0], aliases=forms[1:]))
        elif all_needed:
            raise FieldError(name, f"{item!r} is a pattern whose wordings cannot be listed")
        else:
            account.skip(f"{row['checkpoint_id']} {name} {item!r}", "a pattern whose wordings cannot be listed")
    if not values:
        raise FieldError(name, "none of its patterns has wordings that can be listed")
    return values


def _unsaid(
    values: Sequence[TermValue], query: str, name: str, row: Mapping[str, Any], account: Account
) -> list[TermValue]:
    """Return the leak targets that the question does not state itself. Raises FieldError if it states all of them."""
    question = query.casefold()
    unsaid = [
        value for value in values if not any(form.casefold() in question for form in (value.text, *value.aliases))
    ]
    if not unsaid:
        raise FieldError(name, "the question says all of them itself, so that saying them leaks nothing")
    if len(unsaid) < len(values):
        left_out = ", ".join(repr(value.text) for value in values if value not in unsaid)
        account.change(str(row["checkpoint_id"]), f"{left_out} left out of {name}: the question says so itself")
    return unsaid


def _write_question(
    row: Mapping[str, Any],
    gold: PermissionGold,
    more: Mapping[str, Any],
    ego: str,
    asked_at: float,
    episode: _Episode,
    writer: FolderWriter,
    account: Account,
) -> None:
    """Write a checkpoint as a question to ``ego``; ``asked_at`` in simulated days, ``more`` is further metadata."""
    family = Family.PERMISSION
    instance = instance_row(
        str(row["checkpoint_id"]),
        family,
        clean(str(row["query_text"]).strip()),
        gold,
        ego=ego,
        asker=episode.agent_id(row["asker"]["principal_id"]),
        sessions=[],
        turns=[],
        metadata={"query_timestamp": asked_at, "as_of": row["as_of_turn_id"], **more},
    )
    writer.add(f"{INSTANCE_FOLDER}/{family.value}.jsonl", instance)
    account.counts["questions imported"] += 1
    account.counts[f"questions {gold.expected_action}"] += 1
