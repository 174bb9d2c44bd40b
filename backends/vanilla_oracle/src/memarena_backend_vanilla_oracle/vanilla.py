"""Implements vanilla: no search, only the most recent turns that fit a budget, as a baseline for every memory.

Omniscient is the same over the sessions of all persons, which the harness sends to this diagnostic alone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import version

from memarena_backend import (
    IDENTITY_OPTION,
    POLICY_OPTION,
    Call,
    Capability,
    Day,
    Description,
    Item,
    Kind,
    Memory,
    Notice,
    OptionSpec,
    PromptStyle,
    Query,
    SearchResult,
    cut_text,
    line_of,
    setting_in_words,
    tokens_by_bytes,
)

DEFAULT_BUDGET_TOKENS = 8_192
"""Tokens of the returned turns if neither the option nor the call sets a limit."""

_OPTIONS = (
    OptionSpec(
        "budget_tokens",
        "Tokens (UTF-8 bytes / 4) that the returned turns may take, an integer of at least 1.",
        str(DEFAULT_BUDGET_TOKENS),
    ),
    IDENTITY_OPTION,
    POLICY_OPTION,
)


@dataclass(frozen=True, slots=True)
class _StoredTurn:
    """A turn as it is shown, and the setting and time of its session, which are shown once for all its turns."""

    at: datetime
    session_id: str
    session_time: str
    setting: str
    turn_id: str
    line: str


@dataclass(slots=True)
class _Block:
    """The turns of a session that are shown, the latest first, and the size of their text in ``bytes``."""

    latest: _StoredTurn
    turns: list[_StoredTurn] = field(default_factory=list)
    bytes: int = 0

    def text(self) -> str:
        lines = [turn.line for turn in reversed(self.turns)]
        return "\n".join([self.latest.setting, *lines] if self.latest.setting else lines)

    def item(self, score: float) -> Item:
        turn_ids = tuple(turn.turn_id for turn in reversed(self.turns))
        return Item(self.text(), score, (self.latest.session_id,), turn_ids, self.latest.session_time)


class VanillaMemory(Memory):
    """Returns the latest turns before the question that fit the budget, in the order of time.

    An item has the turns of a session: its setting, then a line for each turn. Scores rise with recency.
    """

    name = "vanilla"
    kind = Kind.COMPETITOR

    def __init__(self) -> None:
        self._turns: dict[str, list[_StoredTurn]] = {}

    def describe(self) -> Description:
        return Description(
            name=self.name,
            version=version("memarena-backend-vanilla-oracle"),
            kind=self.kind,
            capabilities=frozenset({Capability.ANSWER, Capability.PROVENANCE}),
            options=_OPTIONS,
            prompt_style=PromptStyle.TEXT_SESSIONS,
        )

    def commit_day(self, namespace: str, day: Day, call: Call) -> Sequence[Notice]:
        turns = self._turns.setdefault(namespace, [])
        for session in day.sessions:
            setting = setting_in_words(session)
            time = session.started_at.isoformat()
            for turn in session.turns:
                if turn.text:
                    turns.append(
                        _StoredTurn(turn.said_at, session.session_id, time, setting, turn.turn_id, line_of(turn))
                    )
        turns.sort(key=lambda each: each.at)  # stable: turns of the same moment stay in the order they were sent
        return ()

    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        budget = query.int_option("budget_tokens", minimum=1)
        if query.max_context_tokens is not None:
            budget = min(budget, query.max_context_tokens)
        turns = self._turns[namespace]
        end = bisect_right(turns, query.asked_at, key=lambda each: each.at)
        blocks = _latest(turns[:end], budget, query.max_items)
        if not blocks and end > 0:
            return _latest_cut(turns[end - 1], budget)
        return SearchResult([block.item((number + 1) / len(blocks)) for number, block in enumerate(blocks)])

    def forget(self, namespace: str) -> None:
        self._turns.pop(namespace, None)


class OmniscientMemory(VanillaMemory):
    """Vanilla over all sessions of the world, since the harness sends these to it."""

    name = "omniscient"
    kind = Kind.DIAGNOSTIC


def _latest(turns: Sequence[_StoredTurn], budget_tokens: int, max_items: int | None) -> list[_Block]:
    """Return blocks of the latest turns that fit, in the order of time, up to the first turn that does not fit."""
    blocks: dict[str, _Block] = {}
    room = budget_tokens
    for turn in reversed(turns):
        block = blocks.get(turn.session_id)
        if block is None:
            if max_items is not None and len(blocks) == max_items:
                break
            block = _Block(turn, bytes=len(turn.setting.encode()) if turn.setting else -1)
        # Each line follows a line feed, except the first of a block without a setting (hence the -1 above).
        size = block.bytes + 1 + len(turn.line.encode())
        room -= _tokens(size) - (_tokens(block.bytes) if block.turns else 0)
        if room < 0:
            break
        block.turns.append(turn)
        block.bytes = size
        blocks[turn.session_id] = block
    # Reversed first, so that sessions that begin at the same moment stay in the order they were sent.
    ordered = list(reversed(blocks.values()))
    ordered.sort(key=lambda block: block.turns[-1].at)
    return ordered


def _latest_cut(turn: _StoredTurn, budget_tokens: int) -> SearchResult:
    """Return as much of the latest turn as fits, for a turn that alone exceeds the budget."""
    block = _Block(turn, [turn])
    text = cut_text(block.text(), budget_tokens)
    if not text:
        return SearchResult((), (Notice("item_left_out", "the latest turn does not fit the budget"),))
    item = Item(text, 1.0, (turn.session_id,), (turn.turn_id,), turn.session_time)
    assert tokens_by_bytes(text) <= budget_tokens
    return SearchResult((item,), (Notice("item_cut", "the latest turn was cut to fit the budget"),))


def _tokens(size_bytes: int) -> int:
    return -(-size_bytes // 4)
