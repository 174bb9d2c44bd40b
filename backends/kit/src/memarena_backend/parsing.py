"""Parses and checks requests into the kit's records, and writes a memory's records into responses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from memarena_proto import memory_backend_pb2 as pb

from memarena_backend.checks import check_id, check_required_text, check_text, parse_moment
from memarena_backend.errors import above_limit, invalid_argument
from memarena_backend.limits import QUERY_TEXT_BYTES, RESPONSE_BYTES, RESPONSE_ITEMS
from memarena_backend.records import (
    AskerKind,
    Description,
    Evidence,
    Item,
    Kind,
    Model,
    ModelAccess,
    ModelRole,
    Notice,
    Query,
    Requester,
)

_ASKERS = {
    pb.REQUESTER_KIND_OWNER: AskerKind.OWNER,
    pb.REQUESTER_KIND_KNOWN_PERSON: AskerKind.KNOWN_PERSON,
    pb.REQUESTER_KIND_ANONYMOUS: AskerKind.ANONYMOUS,
}
_NOTICE_RESERVE_BYTES = 1024
"""Reserved in a response for the notice that items were left out."""
_FRAMING_BYTES = 6
"""Most bytes that protobuf adds to a nested message: its tag and length."""
_MODEL_ROLES = {
    pb.MODEL_ROLE_READER: ModelRole.READER,
    pb.MODEL_ROLE_EXTRACTOR: ModelRole.EXTRACTOR,
    pb.MODEL_ROLE_EMBEDDER: ModelRole.EMBEDDER,
    pb.MODEL_ROLE_RERANKER: ModelRole.RERANKER,
}


class QueryParser:
    """Parses queries and checks them against one backend's description. Methods raise CallError."""

    def __init__(self, description: Description) -> None:
        self._description = description
        self._defaults = {option.key: option.default for option in description.options}

    def parse(self, request: pb.SearchRequest) -> Query:
        """Return the query, with the default of each option that was not sent."""
        limits = self._description.limits
        if limits.max_items is not None and request.max_items > limits.max_items:
            raise above_limit("max_items", request.max_items, limits.max_items, "items")
        return Query(
            query_id=check_id("query_id", request.query_id),
            text=check_required_text("text", request.text, limits.max_query_text_bytes or QUERY_TEXT_BYTES),
            asked_at=parse_moment("asked_at", request.asked_at),
            as_of_day=request.as_of_day,
            requester=_requester(request),
            max_items=request.max_items or None,
            max_context_tokens=request.max_context_tokens or None,
            options=self._options(request.options),
            evidence=self._evidence(request),
        )

    def _options(self, options: Sequence[pb.Option]) -> Mapping[str, str]:
        if not options:
            return self._defaults
        result = dict(self._defaults)
        previous = ""
        for position, option in enumerate(options):
            field = f"options[{position}]"
            if option.key not in self._defaults:
                declared = ", ".join(self._defaults) or "none"
                raise invalid_argument(field, f"{option.key!r} is not declared; declared: {declared}")
            if option.key <= previous:
                raise invalid_argument(field, "keys are unique and in ascending order")
            if not option.value:
                raise invalid_argument(field, f"{option.key} has no value")
            previous = option.key
            result[option.key] = check_text(field, option.value)
        return result

    def _evidence(self, request: pb.SearchRequest) -> Evidence | None:
        if not request.HasField("privileged_evidence"):
            return None
        field = "privileged_evidence"
        if self._description.kind is not Kind.DIAGNOSTIC:
            raise invalid_argument(field, "this backend is no diagnostic and must not see evidence")
        evidence = request.privileged_evidence
        ids = tuple(check_id(f"{field}.session_ids[{n}]", value) for n, value in enumerate(evidence.session_ids))
        return Evidence(ids, check_text(f"{field}.access_marker", evidence.access_marker))


def _requester(request: pb.SearchRequest) -> Requester:
    if not request.HasField("requester"):
        raise invalid_argument("requester", "is required")
    field, requester = "requester", request.requester
    kind = _ASKERS.get(requester.kind)
    if kind is None:
        raise invalid_argument(f"{field}.kind", "expected OWNER, KNOWN_PERSON or ANONYMOUS")
    if kind is AskerKind.KNOWN_PERSON:
        return Requester(
            kind,
            check_id(f"{field}.participant_id", requester.participant_id),
            check_required_text(f"{field}.display_name", requester.display_name),
            check_text(f"{field}.relationship", requester.relationship),
        )
    for name, value in (
        ("participant_id", requester.participant_id),
        ("display_name", requester.display_name),
        ("relationship", requester.relationship),
    ):
        if value:
            raise invalid_argument(f"{field}.{name}", f"must be empty unless the requester is a known person: {kind}")
    return Requester(kind)


def parse_model_access(sent: pb.ModelAccess, field: str) -> ModelAccess:
    """Return the gateway and its models. Raises CallError INVALID_ARGUMENT that names the field below ``field``."""
    models = []
    for position, model in enumerate(sent.models):
        role = _MODEL_ROLES.get(model.role)
        if role is None:
            raise invalid_argument(
                f"{field}.models[{position}].role", "expected READER, EXTRACTOR, EMBEDDER or RERANKER"
            )
        name = check_required_text(f"{field}.models[{position}].name", model.name)
        models.append(Model(name, role, model.context_window_tokens, model.no_system_role, model.counts_tokens))
    return ModelAccess(
        check_required_text(f"{field}.base_url", sent.base_url),
        check_required_text(f"{field}.token", sent.token),
        tuple(models),
    )


def put_item(response: pb.SearchResponse | pb.Retrieved, item: Item) -> pb.MemoryItem:
    """Add an item to a response and return its message.

    For speed it is built within the response, without a copy, and empty fields are not set.
    """
    proto = response.items.add(
        text=item.text,
        score=item.score,
        source_session_ids=item.session_ids,
        source_turn_ids=item.turn_ids,
        time=item.time,
    )
    if item.event_ids:
        proto.source_event_ids.extend(item.event_ids)
    if item.valid_from:
        proto.valid_from = item.valid_from
    if item.valid_until:
        proto.valid_until = item.valid_until
    if item.derived:
        proto.derived = True
    return proto


def put_items(response: pb.SearchResponse | pb.Retrieved, items: Sequence[Item]) -> int:
    """Add items to a response in order, as many as its limits allow (LIM-5); return how many were added."""
    room = RESPONSE_BYTES - _NOTICE_RESERVE_BYTES
    for count, item in enumerate(items):
        room -= put_item(response, item).ByteSize() + _FRAMING_BYTES
        if room < 0 or count == RESPONSE_ITEMS:
            del response.items[-1]
            return count
    return len(items)


def wire_notices(notices: Iterable[Notice]) -> list[pb.Notice]:
    """Return notices as messages. Those with the count 0 are dropped, since 0 means "once" on the wire."""
    return [
        pb.Notice(code=notice.code, message=notice.message, count=notice.count) for notice in notices if notice.count
    ]


def wire_description(description: Description) -> pb.DescribeResponse:
    """Return the response of Describe. It always declares DURABLE, as the kit keeps every committed day on disk."""
    limits = description.limits
    return pb.DescribeResponse(
        name=description.name,
        version=description.version,
        contract_version="1.2",
        kind=pb.BackendKind.Value(f"BACKEND_KIND_{description.kind.name}"),
        capabilities=sorted(
            [pb.CAPABILITY_DURABLE, *(pb.Capability.Value(f"CAPABILITY_{c.name}") for c in description.capabilities)]
        ),
        limits=pb.Limits(
            max_items=limits.max_items or 0,
            max_turn_text_bytes=limits.max_turn_text_bytes or 0,
            max_query_text_bytes=limits.max_query_text_bytes or 0,
            max_concurrent_namespaces=limits.max_concurrent_namespaces or 0,
            max_day_bytes=limits.max_day_bytes or 0,
        ),
        options=[
            pb.OptionSpec(key=option.key, description=option.description, default_value=option.default)
            for option in description.options
        ],
        token_counting=pb.TokenCounting.Value(f"TOKEN_COUNTING_{description.token_counting.name}"),
        preferred_prompt_style=pb.PromptStyle.Value(f"PROMPT_STYLE_{description.prompt_style.name}"),
        digest_versions=[1],
        retention=pb.Retention.Value(f"RETENTION_{description.retention.name}"),
        kept_facts=[pb.KeptFact(statement=fact.statement, question=fact.question) for fact in description.kept_facts],
    )
