"""Implements oracle, a diagnostic that returns the evidence sessions: an upper bound for what search can gain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version

from memarena_backend import (
    IDENTITY_OPTION,
    POLICY_OPTION,
    Call,
    Capability,
    Day,
    Description,
    Evidence,
    Item,
    Kind,
    Memory,
    Notice,
    OptionSpec,
    PromptStyle,
    Query,
    SearchResult,
    Session,
    fit_ranked,
    invalid_argument,
    line_of,
    setting_in_words,
    tokens_by_bytes,
)

from memarena_backend_vanilla_oracle.distractors import DEFAULT_BUDGET_TOKENS, draw, recent

DISTRACTORS = ("none", "recent", "random")

_OPTIONS = (
    OptionSpec(
        "budget_tokens",
        "Tokens (UTF-8 bytes / 4) that the items may take; 0: as the call says, "
        f"and {DEFAULT_BUDGET_TOKENS} where distractors fill it up.",
        "0",
    ),
    OptionSpec("distractor_seed", "Seed of the draw of random distractors, an integer of at least 0.", "0"),
    OptionSpec(
        "distractors",
        "Sessions next to the evidence: none, recent (the latest that fit), or random (as many, drawn uniformly).",
        "none",
    ),
    IDENTITY_OPTION,
    POLICY_OPTION,
)


class OracleMemory(Memory):
    """Returns the sessions named in the privileged evidence, verbatim, in that order and with falling scores.

    A query without privileged evidence is an error (EVD-3). If the evidence names no session, only distractors are
    returned. An access marker becomes the first line of each evidence session, as in the paper's control runs. With
    distractors all sessions are in order of time; evidence has the higher scores, so that a reader with less room drops
    distractors first.
    """

    def __init__(self) -> None:
        self._sessions: dict[str, dict[str, Session]] = {}

    def describe(self) -> Description:
        return Description(
            name="oracle",
            version=version("memarena-backend-vanilla-oracle"),
            kind=Kind.DIAGNOSTIC,
            capabilities=frozenset({Capability.ANSWER, Capability.PROVENANCE}),
            options=_OPTIONS,
            prompt_style=PromptStyle.TEXT_SESSIONS,
        )

    def commit_day(self, namespace: str, day: Day, call: Call) -> Sequence[Notice]:
        sessions = self._sessions.setdefault(namespace, {})
        sessions.update((session.session_id, session) for session in day.sessions)
        return ()

    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        if query.evidence is None:
            raise invalid_argument("privileged_evidence", "oracle returns evidence and nothing else; none was sent")
        sessions = self._evidence_sessions(namespace, query.evidence)
        items = [
            _item(session, query.evidence.access_marker, 1.0 - position / len(sessions))
            for position, session in enumerate(sessions)
        ]
        choice = query.choice_option("distractors", DISTRACTORS)
        query.int_option("distractor_seed", minimum=0)  # refused also where nothing is drawn (SRC-8)
        budget = _budget(query, has_distractors=choice != "none")
        # A session without text makes no item.
        evidence = fit_ranked([item for item in items if item.text], query.max_items, budget)
        if choice == "none" or budget is None:
            return evidence
        return SearchResult(self._among_others(namespace, query, evidence.items, budget, choice), evidence.notices)

    def forget(self, namespace: str) -> None:
        self._sessions.pop(namespace, None)

    def _evidence_sessions(self, namespace: str, evidence: Evidence) -> list[Session]:
        sessions = self._sessions[namespace]
        result: dict[str, Session] = {}
        for position, session_id in enumerate(evidence.session_ids):
            if session_id not in sessions:
                raise invalid_argument(
                    f"privileged_evidence.session_ids[{position}]",
                    f"{session_id!r} was not ingested into the namespace",
                )
            result[session_id] = sessions[session_id]
        return list(result.values())

    def _among_others(
        self, namespace: str, query: Query, evidence: Sequence[Item], budget_tokens: int, choice: str
    ) -> list[Item]:
        """Return evidence and distractors in order of time. Scores: evidence above 0.5, distractors at most 0.5."""
        assert query.evidence is not None
        evidence_ids = set(query.evidence.session_ids)
        before = sorted(
            (s for s in self._sessions[namespace].values() if s.session_id not in evidence_ids),
            key=lambda session: session.started_at,
        )
        items = [_item(session, "", 0.0) for session in before if session.ended_at <= query.asked_at]
        candidates = [item for item in items if item.text]
        room = budget_tokens - sum(tokens_by_bytes(item.text) for item in evidence)
        chosen = recent(candidates, room)
        if choice == "random":
            seed = query.int_option("distractor_seed", minimum=0)
            chosen = draw(candidates, room, len(chosen), seed, query.text)
        if query.max_items is not None:
            chosen = chosen[: query.max_items - len(evidence)]
        others = [
            replace(candidates[position], score=0.5 * (1.0 - index / len(chosen)))
            for index, position in enumerate(chosen)
        ]
        above = [replace(item, score=0.5 + 0.5 * item.score) for item in evidence]
        times = {session.session_id: session.started_at for session in self._sessions[namespace].values()}
        return sorted([*above, *others], key=lambda item: times[item.session_ids[0]])


def _budget(query: Query, *, has_distractors: bool) -> int | None:
    """Return the tokens that the items may take, None if there is no limit."""
    option = query.int_option("budget_tokens", minimum=0) or (DEFAULT_BUDGET_TOKENS if has_distractors else None)
    bounds = [bound for bound in (option, query.max_context_tokens) if bound is not None]
    return min(bounds) if bounds else None


def _item(session: Session, access_marker: str, score: float) -> Item:
    turns = [turn for turn in session.turns if turn.text]
    lines = [access_marker, setting_in_words(session), *map(line_of, turns)]
    return Item(
        text="\n".join(line for line in lines if line),
        score=score,
        session_ids=(session.session_id,),
        turn_ids=tuple(turn.turn_id for turn in turns),
        time=session.started_at.isoformat(),
    )
