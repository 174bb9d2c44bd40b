"""Converts days and questions of the data set to messages of the contract, and returned items back.

All content of a data set that a cell sends to a backend passes through this module, so that a leak of gold would be
here. Requests hold questions' words, people, times and days, with opaque ids. Evidence, and the marker that follows
from the gold of a permission question, are added by :func:`add_privileged_evidence` alone, and days of evidence
sessions by one projection; callers use both for diagnostic backends only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from memarena_answering import control_text
from memarena_dataset.gold import PermissionGold
from memarena_dataset.io.reading import Dataset
from memarena_dataset.model import Session, Turn
from memarena_proto import memory_backend_pb2 as pb
from memarena_proto.digest import DIGEST_VERSION, DayDigest
from memarena_proto.frames import split_session

from memarena.execution.cells.opaque_ids import IdKind, NamespaceIds
from memarena.execution.errors import RunError
from memarena.execution.planning.questions import date_of, group_name, place_name, rfc3339
from memarena.log.records import Projection, Question, Reading, RetrievedItem

MAX_QUERY_BYTES = 1 << 16
"""Greatest length of a query's text (SPEC.md LIM)."""
_REQUESTER = {
    "owner": pb.REQUESTER_KIND_OWNER,
    "known_person": pb.REQUESTER_KIND_KNOWN_PERSON,
    "anonymous": pb.REQUESTER_KIND_ANONYMOUS,
}
_PROMPT_STYLE = {
    "text_sessions": pb.PROMPT_STYLE_TEXT_SESSIONS,
    "json_context": pb.PROMPT_STYLE_JSON_CONTEXT,
}
_THINKING = {"default": pb.THINKING_UNSPECIFIED, "on": pb.THINKING_ON, "off": pb.THINKING_OFF}


@dataclass(frozen=True)
class DayBatch:
    """One day of one ego as frames, with the counts for the log."""

    frames: tuple[pb.IngestRequest, ...]
    sessions: int
    turns: int
    events: int
    payload_bytes: int


def check_day(backend: str, limits: pb.Limits, day: int, ego: str, batch: DayBatch) -> None:
    """Raise :class:`RunError` for a day above the backend's declared limits (SPEC.md LIM-3, LIM-6)."""
    sizes = [("days", limits.max_day_bytes, batch.payload_bytes, "it")]
    if limits.max_turn_text_bytes:
        texts = [turn.text for frame in batch.frames for turn in frame.session.turns]
        texts += [frame.event.text for frame in batch.frames if frame.HasField("event")]
        longest = max((len(text.encode()) for text in texts), default=0)
        sizes.append(("turns and events", limits.max_turn_text_bytes, longest, "the longest of them"))
    for limit_name, limit, size, subject in sizes:
        if limit and size > limit:
            raise RunError(
                f"--backend {backend}: takes {limit_name} of at most {limit:,} bytes, "
                f"and on day {day} of {ego} {subject} has {size:,}"
            )


def check_questions(backend: str, limits: pb.Limits, questions: Iterable[Question]) -> None:
    """Raise :class:`RunError` for a question above the backend's declared limit (SPEC.md LIM-3)."""
    limit = limits.max_query_text_bytes
    for question in questions if limit else ():
        size = len(question.question_text.encode())
        if size > limit:
            raise RunError(
                f"--backend {backend}: takes questions of at most {limit:,} bytes, and "
                f"{question.instance.instance_id} has {size:,}"
            )


def day_batch(
    dataset: Dataset,
    ego: str,
    day: int,
    ids: NamespaceIds,
    access: pb.ModelAccess | None,
    projection: Projection = "ego",
) -> DayBatch:
    """Return header, sessions, events and trailer of one day of a projection.

    Any projection but the ego's is for DIAGNOSTIC backends alone (SPEC.md EVD-5). Evidence is sessions, never events.
    """
    # None: every person's sessions.
    seer = ego if projection == "ego" else None
    header = pb.DayHeader(
        namespace=ids.namespace,
        day_index=day,
        date=date_of(dataset, day),
        batch_id=ids.make(IdKind.BATCH, str(day)),
        owner=_participant(dataset, ego, ego, ids),
        model_access=access,
    )
    digest = DayDigest()
    frames: list[pb.IngestRequest] = []

    def add(frame: pb.IngestRequest) -> None:
        frames.append(frame)
        digest.add(frame)

    add(pb.IngestRequest(header=header))
    evidence_alone = projection == "evidence_sessions"
    for session in dataset.day_sessions(seer, day):
        if evidence_alone and session.session_id not in dataset.evidence_session_ids:
            continue
        for part in split_session(_session(dataset, ego, session, ids)):
            add(pb.IngestRequest(session=part))
    for event in () if evidence_alone else dataset.day_events(seer, day):
        message = pb.Event(
            event_id=ids.make(IdKind.EVENT, event.event_id),
            happened_at=rfc3339(dataset, event.timestamp),
            text=event.content,
            category=event.category or "",
        )
        add(pb.IngestRequest(event=message))
    trailer = pb.DayTrailer(
        session_count=digest.session_count,
        turn_count=digest.turn_count,
        event_count=digest.event_count,
        digest_version=DIGEST_VERSION,
        digest=digest.digest(),
    )
    frames.append(pb.IngestRequest(trailer=trailer))
    return DayBatch(
        frames=tuple(frames),
        sessions=trailer.session_count,
        turns=trailer.turn_count,
        events=trailer.event_count,
        payload_bytes=sum(frame.ByteSize() for frame in frames),
    )


def search_request(
    question: Question,
    reading: Reading,
    ids: NamespaceIds,
    options: Iterable[tuple[str, str]],
) -> pb.SearchRequest:
    """Return the request for a question, without its access to models, which the caller adds.

    Args:
        question: its gold and evidence stay here.
        reading: bounds on items and context tokens.
        ids: make the opaque ids of this namespace.
        options: keys and values that the run sets for the backend.
    """
    instance = question.instance
    requester = pb.Requester(kind=_REQUESTER[question.requester_kind])
    if question.requester_kind == "known_person" and instance.asker_agent_id:
        requester.participant_id = ids.make(IdKind.PARTICIPANT, instance.asker_agent_id)
        requester.display_name = question.asker_name
        requester.relationship = question.relationship
    # Not from the instance's id: the same question by the same asker at the same time has the same query id.
    identity = "\x00".join((question.asked_at, question.asker_name, question.question_text))
    return pb.SearchRequest(
        namespace=ids.namespace,
        query_id=ids.make(IdKind.QUERY, identity),
        text=question.question_text,
        asked_at=question.asked_at,
        as_of_day=question.day,
        requester=requester,
        max_items=reading.max_items or 0,
        max_context_tokens=reading.max_context_tokens,
        options=[pb.Option(key=key, value=value) for key, value in sorted(options)],
    )


def owner_search_request(
    dataset: Dataset, day: int, text: str, reading: Reading, ids: NamespaceIds, options: Iterable[tuple[str, str]]
) -> pb.SearchRequest:
    """Return the owner's request for any text after a day, without its access to models, which the caller adds.

    Such a search belongs to no question of the data set.
    """
    return pb.SearchRequest(
        namespace=ids.namespace,
        query_id=ids.make(IdKind.QUERY, f"owner\x00{day}\x00{text}"),
        text=text.encode()[:MAX_QUERY_BYTES].decode("utf-8", "ignore"),
        asked_at=rfc3339(dataset, day + 1),
        as_of_day=day,
        requester=pb.Requester(kind=pb.REQUESTER_KIND_OWNER),
        max_items=reading.max_items or 0,
        max_context_tokens=reading.max_context_tokens,
        options=[pb.Option(key=key, value=value) for key, value in sorted(options)],
    )


def forget_request(kind: Literal["session", "subject", "fact"], value: str, ids: NamespaceIds) -> pb.ForgetRequest:
    """Return the request to forget a session by the data set's id, a name, or verbatim words."""
    if kind == "session":
        return pb.ForgetRequest(namespace=ids.namespace, session_id=ids.make(IdKind.SESSION, value))
    if kind == "subject":
        return pb.ForgetRequest(namespace=ids.namespace, subject=value)
    return pb.ForgetRequest(namespace=ids.namespace, fact_text=value)


def add_privileged_evidence(
    request: pb.SearchRequest,
    dataset: Dataset,
    question: Question,
    ids: NamespaceIds,
    *,
    access_marker: bool = False,
) -> None:
    """Name the evidence sessions, in the order in which they were held. For DIAGNOSTIC backends alone (SPEC.md EVD).

    ``access_marker`` adds, for a permission question, the note that says whether the asker may hear it.
    """
    sessions = sorted(question.instance.evidence_session_ids, key=lambda s: (dataset.session(s).start_time, s))
    evidence = pb.PrivilegedEvidence(session_ids=[ids.make(IdKind.SESSION, s) for s in sessions])
    gold = question.instance.gold
    if access_marker and isinstance(gold, PermissionGold):
        words = control_text()
        must_withhold = gold.expected_action == "withhold"
        evidence.access_marker = words.access_denied if must_withhold else words.access_allowed
    request.privileged_evidence.CopyFrom(evidence)


def answer_request(search: pb.SearchRequest, reading: Reading, model: str, prompt_style: str) -> pb.AnswerRequest:
    """Return the question with the reading parameters. ``prompt_style`` is text_sessions or json_context."""
    return pb.AnswerRequest(
        search=search,
        reading=pb.Reading(
            model=model,
            max_tokens=reading.max_reply_tokens,
            temperature=reading.temperature,
            seed=reading.seed,
            prompt_style=_PROMPT_STYLE[prompt_style],
            thinking=_THINKING[reading.thinking],
        ),
    )


def retrieved_items(items: Iterable[pb.MemoryItem], ids: NamespaceIds) -> tuple[RetrievedItem, ...]:
    """Return items with the data set's ids; ids that were never issued in this namespace are counted."""
    return tuple(_retrieved_item(item, ids) for item in items)


def _retrieved_item(item: pb.MemoryItem, ids: NamespaceIds) -> RetrievedItem:
    sessions = [ids.real(IdKind.SESSION, s) for s in item.source_session_ids]
    turns = [ids.real(IdKind.TURN, t) for t in item.source_turn_ids]
    return RetrievedItem(
        text=item.text,
        score=item.score,
        session_ids=tuple(s for s in sessions if s is not None),
        turn_ids=tuple(t for t in turns if t is not None),
        unknown_ids=sessions.count(None) + turns.count(None),
        time=item.time,
    )


def _participant(dataset: Dataset, ego: str, agent_id: str, ids: NamespaceIds) -> pb.Participant:
    if agent_id == ego:
        role = pb.PARTICIPANT_ROLE_OWNER
    elif agent_id.startswith("assistant_"):
        role = pb.PARTICIPANT_ROLE_ASSISTANT
    else:
        role = pb.PARTICIPANT_ROLE_PERSON
    return pb.Participant(
        participant_id=ids.make(IdKind.PARTICIPANT, agent_id),
        display_name=dataset.agents[agent_id].name,
        role=role,
    )


def _session(dataset: Dataset, ego: str, session: Session, ids: NamespaceIds) -> pb.Session:
    return pb.Session(
        session_id=ids.make(IdKind.SESSION, session.session_id),
        participants=[_participant(dataset, ego, p, ids) for p in session.participants],
        started_at=rfc3339(dataset, session.start_time),
        ended_at=rfc3339(dataset, session.end_time),
        modality=session.modality or "",
        place=place_name(dataset, session.location_id) or "",
        group=group_name(dataset, session.group_id) or "",
        turns=[_turn(dataset, turn, ids) for turn in session.turns],
    )


def _turn(dataset: Dataset, turn: Turn, ids: NamespaceIds) -> pb.Turn:
    return pb.Turn(
        turn_id=ids.make(IdKind.TURN, turn.turn_id),
        speaker_id=ids.make(IdKind.PARTICIPANT, turn.speaker_id),
        text=turn.text,
        said_at=rfc3339(dataset, turn.timestamp),
    )
