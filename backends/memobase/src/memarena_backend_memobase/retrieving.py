"""Answers a search: returns entries of the profile, then events similar to the question, each with its sources."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memarena_backend import (
    CallError,
    Item,
    OptionSpec,
    Query,
    SearchResult,
    failed_precondition,
    fit_ranked,
    invalid_argument,
    tokens_by_bytes,
    unavailable,
)

from memarena_backend_memobase.journal import Holding, KeptEvent, joined
from memarena_backend_memobase.server import Server, ServerFaultError

QUERY_LIMIT_CHARS = 4_000
"""Characters of a question that are searched for: it is part of a URL, and models embed only some hundred tokens."""
PROFILE_SCORE = 1.0
"""Score of profile entries, which are returned for any question; an event's score, its similarity, is at most 1."""

EVENTS = ("gist", "event", "off")
OPTIONS = (
    OptionSpec("events", "What is searched: gist (single lines of events), event (whole ones) or off.", "gist"),
    OptionSpec("k", "How many events or lines of events are returned at most, an integer of at least 1.", "20"),
    OptionSpec("profile_share", "Percent of the bounds that the profile may take, 0 (no profile) to 100.", "60"),
    OptionSpec("question_time", "on: the time of the question stands before the text that is searched for.", "off"),
    OptionSpec("similarity", "Events below this cosine similarity are left out, -1.0 to 1.0.", "0.2"),
)


@dataclass(frozen=True, slots=True)
class Plan:
    """The checked options of one search; ``text`` is the text to search for. See `OPTIONS` for the others."""

    events: str
    k: int
    profile_share: float
    text: str
    threshold: float


def plan_of(query: Query) -> Plan:
    """Parse the options of a question. Raises CallError INVALID_ARGUMENT that names the bad option."""
    share = query.int_option("profile_share", minimum=0)
    if share > 100:
        raise invalid_argument("options", f"profile_share: expected 0 to 100, got {share}")
    text = query.text[:QUERY_LIMIT_CHARS]
    if query.choice_option("question_time", ("off", "on")) == "on":
        text = f"[{query.asked_at.isoformat(sep=' ', timespec='minutes')}] {text}"
    return Plan(
        events=query.choice_option("events", EVENTS),
        k=query.int_option("k", minimum=1),
        profile_share=share / 100,
        text=text,
        threshold=_threshold(query.options["similarity"]),
    )


def retrieve(
    server: Server, user: str, holding: Holding, query: Query, plan: Plan, *, attributed: bool
) -> SearchResult:
    """Return the items for a question. ``attributed``: whether items name their source sessions."""
    slots = _profile(server, user, holding) if plan.profile_share else []
    events = _events(server, user, holding, plan) if plan.events != "off" else []
    if not attributed:
        slots, events = _without_sources(slots), _without_sources(events)
    return fit_together(slots, events, plan.profile_share, query.max_items, query.max_context_tokens)


def fit_together(
    slots: Sequence[Item], events: Sequence[Item], share: float, max_items: int | None, max_tokens: int | None
) -> SearchResult:
    """Return profile entries within their ``share`` of the bounds, then events within the rest.

    Without events the profile may fill the bounds. Items are not cut, unless not even one fits.
    """
    room = (
        None if max_items is None else max(1, round(max_items * share)),
        None if max_tokens is None else int(max_tokens * share),
    )
    if not events:
        return fit_ranked(slots, max_items, max_tokens)
    fitting_slots = _whole(slots, *room)
    rest_tokens = None if max_tokens is None else max_tokens - sum(tokens_by_bytes(item.text) for item in fitting_slots)
    fitting_events = _whole(events, None if max_items is None else max_items - len(fitting_slots), rest_tokens)
    if fitting_slots or fitting_events:
        return SearchResult([*fitting_slots, *fitting_events])
    # Not a single item fits uncut: cut the best event.
    return fit_ranked(events, max_items, max_tokens)


def _whole(items: Iterable[Item], max_items: int | None, max_tokens: int | None) -> list[Item]:
    fitting: list[Item] = []
    total = 0
    for item in items:
        total += tokens_by_bytes(item.text)
        if (max_items is not None and len(fitting) >= max_items) or (max_tokens is not None and total > max_tokens):
            break
        fitting.append(item)
    return fitting


def _profile(server: Server, user: str, holding: Holding) -> list[Item]:
    items = []
    for slot in server.profile(user):
        source = holding.slots.get(slot.id)
        if source is None:
            raise failed_precondition("the Memobase server holds a profile entry that no committed day made")
        topic, sub_topic = slot.attributes.get("topic"), slot.attributes.get("sub_topic")
        text = f"{topic}::{sub_topic}: {slot.content}"
        items.append(Item(text, PROFILE_SCORE, source.sessions, (), source.time))
    return items


def _events(server: Server, user: str, holding: Holding, plan: Plan) -> list[Item]:
    try:
        if plan.events == "event":
            return _whole_events(server, user, holding, plan)
        return _lines(server, user, holding, plan)
    except ServerFaultError as error:
        raise _search_failed(error) from error


def _whole_events(server: Server, user: str, holding: Holding, plan: Plan) -> list[Item]:
    items = []
    for event in server.search_events(user, plan.text, plan.k, plan.threshold):
        source = holding.events.get(event.id)
        if source is None or event.similarity is None:
            raise failed_precondition("the Memobase server found an event that no committed day made")
        if text := (event.event_data.event_tip or "").strip():
            items.append(Item(text, event.similarity, source.sessions, (), source.time))
    return items


def _lines(server: Server, user: str, holding: Holding, plan: Plan) -> list[Item]:
    sources = _by_line(holding.events.values())
    items = []
    for gist in server.search_gists(user, plan.text, plan.k, plan.threshold):
        line = gist.gist_data.content
        events = sources.get(line)
        if events is None:
            raise failed_precondition("the Memobase server found an event line that no committed day made")
        # The server does not name the event of a line. If several events have the same line, it gets all their sources.
        sessions, time = joined(*(event.sessions for event in events)), events[-1].time
        items.append(Item(line.removeprefix("-").strip() or line, gist.similarity, sessions, (), time))
    return sorted(items, key=lambda item: -item.score)


def _by_line(events: Iterable[KeptEvent]) -> dict[str, list[KeptEvent]]:
    by_line: dict[str, list[KeptEvent]] = {}
    for event in events:
        for line in event.lines:
            by_line.setdefault(line, []).append(event)
    return by_line


def _without_sources(items: Iterable[Item]) -> list[Item]:
    return [Item(item.text, item.score, (), (), item.time) for item in items]


def _search_failed(error: ServerFaultError) -> CallError:
    return unavailable(f"events could not be searched: {error}")


def _threshold(value: str) -> float:
    try:
        threshold = float(value)
    except ValueError:
        threshold = float("nan")
    if not -1.0 <= threshold <= 1.0:
        raise invalid_argument("options", f"similarity: expected a number from -1.0 to 1.0, got {value!r}")
    return threshold
