"""Oracle: hands over the sessions that hold the evidence. A diagnostic: what better search could still gain."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

from memarena_backend import (
    Call,
    Capability,
    Day,
    Description,
    Evidence,
    Item,
    Kind,
    Memory,
    Notice,
    PromptStyle,
    Query,
    SearchResult,
    Session,
    fit_ranked,
    invalid_argument,
    line_of,
    setting_in_words,
)


class OracleMemory(Memory):
    """Returns the sessions named in the privileged evidence, verbatim, in the order named; scores fall with it.

    Privileged evidence must be there (EVD-3). If it names no session, the question has no evidence: no items. An access
    marker stands on a line of its own at the head of every session, as in the paper's control runs.
    """

    def __init__(self) -> None:
        self._sessions: dict[str, dict[str, Session]] = {}

    def describe(self) -> Description:
        return Description(
            name="oracle",
            version=version("memarena-backend-vanilla-oracle"),
            kind=Kind.DIAGNOSTIC,
            capabilities=frozenset({Capability.ANSWER, Capability.PROVENANCE}),
            prompt_style=PromptStyle.TEXT_SESSIONS,
        )

    def commit_day(self, namespace: str, day: Day, call: Call) -> Sequence[Notice]:
        sessions = self._sessions.setdefault(namespace, {})
        sessions.update((session.session_id, session) for session in day.sessions)
        return ()

    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        if query.evidence is None:
            raise invalid_argument("privileged_evidence", "oracle returns evidence and nothing else; none was sent")
        sessions = self._named(namespace, query.evidence)
        items = [
            _item(session, query.evidence.access_marker, 1.0 - position / len(sessions))
            for position, session in enumerate(sessions)
        ]
        # A session of which nothing was said has nothing to show.
        return fit_ranked([item for item in items if item.text], query.max_items, query.max_context_tokens)

    def forget(self, namespace: str) -> None:
        self._sessions.pop(namespace, None)

    def _named(self, namespace: str, evidence: Evidence) -> list[Session]:
        held = self._sessions[namespace]
        named: dict[str, Session] = {}
        for position, session_id in enumerate(evidence.session_ids):
            if session_id not in held:
                raise invalid_argument(
                    f"privileged_evidence.session_ids[{position}]",
                    f"{session_id!r} was not ingested into the namespace",
                )
            named[session_id] = held[session_id]
        return list(named.values())


def _item(session: Session, access_marker: str, score: float) -> Item:
    said = [turn for turn in session.turns if turn.text]
    lines = [access_marker, setting_in_words(session), *map(line_of, said)]
    return Item(
        text="\n".join(line for line in lines if line),
        score=score,
        session_ids=(session.session_id,),
        turn_ids=tuple(turn.turn_id for turn in said),
        time=session.started_at.isoformat(),
    )
