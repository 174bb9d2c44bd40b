"""Converts the kit's records to messages of the contract and back, for calls to a backend at an address."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from memarena_backend import (
    AskerKind,
    Capability,
    Day,
    Description,
    Item,
    KeptFact,
    Kind,
    Limits,
    ModelAccess,
    Notice,
    OptionSpec,
    Participant,
    PromptStyle,
    Query,
    Retention,
    SearchResult,
    Session,
    TokenCounting,
)
from memarena_proto import memory_backend_pb2 as pb
from memarena_proto.digest import DayDigest
from memarena_proto.frames import split_session

_KNOWN_TO_THE_KIT = frozenset(f"CAPABILITY_{capability.name}" for capability in Capability)

# ------------------------------------------------------------------ Describe


def description_of(response: pb.DescribeResponse) -> Description:
    """Return the description in a response. Raises ValueError that names an unusable field."""
    if response.contract_version.partition(".")[0] != "1":
        raise ValueError(f"contract_version: expected 1.x, got {response.contract_version!r}")
    if response.kind == pb.BACKEND_KIND_UNSPECIFIED or not response.name:
        raise ValueError("name and kind are required")
    names = [pb.Capability.Name(number) for number in response.capabilities]
    own_tokens = response.token_counting == pb.TOKEN_COUNTING_OWN_TOKENIZER
    extracted = response.retention == pb.RETENTION_EXTRACTED
    json_context = response.preferred_prompt_style == pb.PROMPT_STYLE_JSON_CONTEXT
    return Description(
        name=response.name,
        version=response.version,
        kind=Kind.DIAGNOSTIC if response.kind == pb.BACKEND_KIND_DIAGNOSTIC else Kind.COMPETITOR,
        capabilities=frozenset(
            Capability(name.removeprefix("CAPABILITY_").lower()) for name in names if name in _KNOWN_TO_THE_KIT
        ),
        options=tuple(OptionSpec(option.key, option.description, option.default_value) for option in response.options),
        prompt_style=PromptStyle.JSON_CONTEXT if json_context else PromptStyle.TEXT_SESSIONS,
        limits=_limits(response.limits),
        retention=Retention.EXTRACTED if extracted else Retention.VERBATIM,
        token_counting=TokenCounting.OWN_TOKENIZER if own_tokens else TokenCounting.UTF8_BYTES_DIV_4,
        kept_facts=tuple(KeptFact(fact.statement, fact.question) for fact in response.kept_facts),
    )


def _limits(limits: pb.Limits) -> Limits:
    return Limits(
        limits.max_items or None,
        limits.max_turn_text_bytes or None,
        limits.max_query_text_bytes or None,
        limits.max_concurrent_namespaces or None,
        limits.max_day_bytes or None,
    )


# ------------------------------------------------------------------ Ingest


def frames_of(namespace: str, day: Day, models: ModelAccess | None) -> list[pb.IngestRequest]:
    """Return a day as frames. The batch id is derived from the content, so sending the same day again is a replay."""
    parts = [pb.IngestRequest(session=part) for session in day.sessions for part in split_session(_session(session))]
    parts += [
        pb.IngestRequest(
            event=pb.Event(
                event_id=event.event_id,
                happened_at=event.happened_at.isoformat(),
                text=event.text,
                category=event.category,
            )
        )
        for event in day.events
    ]
    header = pb.DayHeader(
        namespace=namespace,
        day_index=day.index,
        date=day.date.isoformat(),
        owner=_participant(day.owner),
        batch_id="unnumbered",  # until the id is derived from the digest of the rest
    )
    header.batch_id = hashlib.sha256(_digest(header, parts).digest()).hexdigest()[:32]
    trailer = _digest(header, parts).trailer()
    if models is not None:
        header.model_access.CopyFrom(_access(models))
    return [pb.IngestRequest(header=header), *parts, pb.IngestRequest(trailer=trailer)]


def _digest(header: pb.DayHeader, parts: Iterable[pb.IngestRequest]) -> DayDigest:
    digest = DayDigest()
    digest.add(pb.IngestRequest(header=header))
    for part in parts:
        digest.add(part)
    return digest


def _session(session: Session) -> pb.Session:
    return pb.Session(
        session_id=session.session_id,
        participants=map(_participant, session.participants),
        started_at=session.started_at.isoformat(),
        ended_at=session.ended_at.isoformat(),
        modality=session.modality,
        place=session.place,
        group=session.group,
        turns=[
            pb.Turn(
                turn_id=turn.turn_id,
                speaker_id=turn.speaker.participant_id,
                text=turn.text,
                said_at=turn.said_at.isoformat(),
            )
            for turn in session.turns
        ],
    )


def _participant(participant: Participant) -> pb.Participant:
    role = pb.ParticipantRole.Value(f"PARTICIPANT_ROLE_{participant.role.name}")
    return pb.Participant(participant_id=participant.participant_id, display_name=participant.display_name, role=role)


def _access(models: ModelAccess) -> pb.ModelAccess:
    return pb.ModelAccess(
        base_url=models.base_url,
        token=models.token,
        models=[
            pb.Model(
                name=model.name,
                role=pb.ModelRole.Value(f"MODEL_ROLE_{model.role.name}"),
                context_window_tokens=model.context_window_tokens,
                no_system_role=model.no_system_role,
                counts_tokens=model.counts_tokens,
            )
            for model in models.models
        ],
    )


# ------------------------------------------------------------------ Search


def search_of(namespace: str, query: Query, options: Iterable[str], models: ModelAccess | None) -> pb.SearchRequest:
    """Return a query as a request; ``options`` are the keys that the backend knows, others are not sent."""
    asker, kind = query.requester, query.requester.kind
    is_known = kind is AskerKind.KNOWN_PERSON
    request = pb.SearchRequest(
        namespace=namespace,
        query_id=query.query_id,
        text=query.text,
        asked_at=query.asked_at.isoformat(),
        as_of_day=query.as_of_day,
        requester=pb.Requester(
            kind=pb.RequesterKind.Value(f"REQUESTER_KIND_{kind.name}"),
            participant_id=asker.participant_id if is_known else "",
            display_name=asker.display_name if is_known else "",
            relationship=asker.relationship if is_known else "",
        ),
        max_items=query.max_items or 0,
        max_context_tokens=query.max_context_tokens or 0,
        options=list(_options(query, options)),
    )
    if models is not None:
        request.model_access.CopyFrom(_access(models))
    if query.evidence is not None:
        evidence = pb.PrivilegedEvidence(
            session_ids=query.evidence.session_ids, access_marker=query.evidence.access_marker
        )
        request.privileged_evidence.CopyFrom(evidence)
    return request


def _options(query: Query, keys: Iterable[str]) -> Iterator[pb.Option]:
    for key in sorted(keys):
        if query.options[key]:
            yield pb.Option(key=key, value=query.options[key])


def result_of(response: pb.SearchResponse) -> SearchResult:
    """Return the items and notices of a response."""
    items = [
        Item(
            item.text,
            item.score,
            tuple(item.source_session_ids),
            tuple(item.source_turn_ids),
            item.time,
            tuple(item.source_event_ids),
            item.valid_from,
            item.valid_until,
            item.derived,
        )
        for item in response.items
    ]
    return SearchResult(items, notices_of(response.notices), truncated=response.truncated)


def notices_of(notices: Iterable[pb.Notice]) -> list[Notice]:
    """Return the kit's notices for those of a message, in which a count of 0 means once."""
    return [Notice(notice.code, notice.message, notice.count or 1) for notice in notices]
