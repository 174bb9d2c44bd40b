"""Turns the instances of a data set into the questions of a run: their text, day, order and asker.

Neither gold nor family affects what is sent, nor when: a backend could otherwise learn the answer from text or order.
The text is the instance's query, to which the data set's reader adds the options of a multiple-choice question if the
file has them separately.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from datetime import timedelta
from typing import Literal

from memarena_dataset.io.reading import Dataset
from memarena_dataset.model import Instance

from memarena.log.records import EvidenceSession, EvidenceText, EvidenceTurn, Question

Protocol = Literal["interleaved", "end_of_horizon"]


def question_day(instance: Instance, day_count: int, protocol: Protocol) -> int:
    """Return the day after which the question is asked: that of its timestamp if it has one, else the last day."""
    last = day_count - 1
    if protocol == "end_of_horizon" or instance.query_timestamp is None:
        return last
    return min(max(math.floor(instance.query_timestamp), 0), last)


def order_key(seed: int, question: Question) -> bytes:
    """Return the sort key of a seeded permutation, which depends on asker, text and time, not on gold, family or id."""
    parts = (str(seed), question.instance.ego_agent_id, question.asked_at, question.asker_name, question.question_text)
    return hashlib.sha256("\x00".join(parts).encode()).digest()


def plan_questions(dataset: Dataset, instances: Iterable[Instance], protocol: Protocol, seed: int) -> list[Question]:
    """Return the questions of a run, ordered by ego, day and the seeded permutation within the day.

    Args:
        dataset: the world that they are about.
        instances: those that the run's filters leave.
        protocol: whether a question is asked on its own day or after the last one.
        seed: seed of the permutation, which depends on neither gold, family nor id (:func:`order_key`).
    """
    questions = [_question(dataset, instance, protocol) for instance in instances]
    return sorted(questions, key=lambda q: (q.instance.ego_agent_id, q.day, order_key(seed, q)))


def sample_questions(questions: list[Question], limit: int, seed: int) -> list[Question]:
    """Return at most ``limit`` questions, drawn by the seeded permutation, in the order of ``questions``."""
    sampled_ids = {id(q) for q in sorted(questions, key=lambda q: order_key(seed, q))[:limit]}
    return [q for q in questions if id(q) in sampled_ids]


def evidence_texts(dataset: Dataset, questions: Iterable[Question]) -> list[EvidenceText]:
    """Return each evidence session of the questions once, verbatim, in order of session id."""
    session_ids = {s for q in questions for s in q.instance.evidence_session_ids}
    return [EvidenceText(session=_evidence(dataset, session_id)) for session_id in sorted(session_ids)]


def _question(dataset: Dataset, instance: Instance, protocol: Protocol) -> Question:
    """Return a question with its day, time, asker and the names that its prompt uses."""
    day = question_day(instance, dataset.day_count, protocol)
    ego, asker = instance.ego_agent_id, instance.asker_agent_id
    kind: Literal["owner", "known_person", "anonymous"]
    if asker == ego:
        kind = "owner"
    elif asker is not None and asker in dataset.agents:
        kind = "known_person"
    else:
        kind = "anonymous"
    return Question(
        instance=instance,
        question_text=instance.query,
        day=day,
        asked_at=rfc3339(dataset, day + 1),
        requester_kind=kind,
        relationship=dataset.relationship(ego, asker) if kind == "known_person" and asker else "",
        lag_days=_lag_days(dataset, instance, day),
        ego_name=_name(dataset, ego),
        asker_name=_name(dataset, asker) if kind != "anonymous" and asker else "",
    )


def rfc3339(dataset: Dataset, t: float) -> str:
    """Return a time of the simulation (in days) as RFC 3339 in UTC, to the second."""
    return dataset.moment(t).strftime("%Y-%m-%dT%H:%M:%SZ")


def date_of(dataset: Dataset, day: int) -> str:
    """Return the calendar date of a day as YYYY-MM-DD."""
    return (dataset.calendar_epoch + timedelta(days=day)).isoformat()


def _name(dataset: Dataset, agent_id: str) -> str:
    return dataset.agents[agent_id].name


def _lag_days(dataset: Dataset, instance: Instance, day: int) -> int | None:
    days = [dataset.session(s).day for s in instance.evidence_session_ids]
    return day - max(days) if days else None


def _evidence(dataset: Dataset, session_id: str) -> EvidenceSession:
    """Return an evidence session as the log stores it, with names instead of ids."""
    session = dataset.session(session_id)
    return EvidenceSession(
        session_id=session_id,
        started_at=rfc3339(dataset, session.start_time),
        place=place_name(dataset, session.location_id),
        group=group_name(dataset, session.group_id),
        modality=session.modality,
        turns=tuple(
            EvidenceTurn(
                turn_id=t.turn_id,
                speaker=_name(dataset, t.speaker_id),
                text=t.text,
                said_at=rfc3339(dataset, t.timestamp),
            )
            for t in session.turns
        ),
    )


def place_name(dataset: Dataset, location_id: str | None) -> str | None:
    """Return the name of a location; None if it has none, since an id of the data set must not replace it."""
    location = dataset.locations.get(location_id) if location_id else None
    return (location.name or None) if location else None


def group_name(dataset: Dataset, group_id: str | None) -> str | None:
    """Return the name of a group, as :func:`place_name` does for a location."""
    group = dataset.groups.get(group_id) if group_id else None
    return (group.name or None) if group else None
