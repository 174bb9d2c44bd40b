"""What a question's trace holds, for ``memarena show``, the HTML report and the viewer: whole texts, cut where shown.

:func:`~memarena.report.question_view.making.question_view` makes it from the records of a log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

OUTCOMES = {
    "correct": ("✓", "right"),
    "wrong": ("✗", "wrong"),
    "backend_failed": ("▲", "memory failed"),
    "infra_failed": ("?", "failed on our side"),
    "reader_not_applicable": ("?", "reader could not read it"),
}
"""Sign and word of every outcome."""


@dataclass(frozen=True)
class TurnView:
    """A turn of an evidence session; ``marked``: it is evidence itself."""

    marked: bool
    speaker: str
    text: str


@dataclass(frozen=True)
class SessionView:
    """An evidence session, every turn of it."""

    session_id: str
    started_at: str
    where: str
    """Its place, group and modality as far as known, for example ``kitchen, family, voice``."""
    turns: tuple[TurnView, ...]

    @property
    def evidence(self) -> tuple[TurnView, ...]:
        """The turns that are evidence; all where none is marked."""
        return tuple(turn for turn in self.turns if turn.marked) or self.turns


@dataclass(frozen=True)
class ItemView:
    """An item of a search."""

    rank: int
    """From 1."""
    score: float
    sources: str
    time: str
    holds_evidence: bool
    in_prompt: bool | None
    """Whether it fitted into the prompt; None where that is not known."""
    text: str
    held: str
    """What the harness measured its text to hold; empty where it was not audited."""


@dataclass(frozen=True)
class CallView:
    """A call of a model. Without messages where the run kept no texts (``kept`` is False)."""

    head: str
    """What for, which model, how it ended, how much it read and wrote."""
    route: str
    messages: tuple[tuple[str, str], ...]
    """Role and text."""
    output: str
    kept: bool


@dataclass(frozen=True)
class StepView:
    """A span of time in milliseconds; None: did not happen, or was not read."""

    part: Literal["search", "prefill", "handing", "rest", ""]
    """Its part of the bar of times; empty for one that overlaps with others."""
    name: str
    ms: float | None


@dataclass(frozen=True)
class AttemptView:
    """One attempt at a question in one cell."""

    number: int
    """From 1."""
    latest: bool
    """Whether it counts."""
    failed: str
    """What failed; empty where it was answered."""
    namespace: str
    request: str
    """What was searched for; empty without a search."""
    search: str
    """What Search returned, in a sentence."""
    notices: tuple[str, ...]
    items: tuple[ItemView, ...]
    own_items: tuple[ItemView, ...]
    """Items of another search, which the memory made itself for its Answer."""
    calls: tuple[CallView, ...]
    """Model calls that have something to show."""
    other_calls: tuple[str, ...]
    """The others, counted by route: ``3 × /v1/embeddings``."""
    answer: str
    reason: str
    raw: str
    """The whole output; empty where it is the answer."""
    read: str
    """Who had the answer made, how the output was parsed, how it ended; empty without an answer."""
    steps: tuple[StepView, ...]

    def texts(self) -> dict[str, str]:
        """Every text that a page may cut, by the name that it has in addresses: ``answer``, ``item-1``, …"""
        texts = {"answer": self.answer, "reason": self.reason, "raw": self.raw}
        texts |= {f"item-{item.rank}": item.text for item in self.items}
        texts |= {f"own-{item.rank}": item.text for item in self.own_items}
        for n, call in enumerate(self.calls, 1):
            texts[f"output-{n}"] = call.output
            texts |= {f"message-{n}-{m}": text for m, (_, text) in enumerate(call.messages, 1)}
        return texts


@dataclass(frozen=True)
class Decision:
    """One thing about how an outcome came about; ``stage``: it says where the answer went wrong."""

    text: str
    stage: bool = False


@dataclass(frozen=True)
class WayStep:
    """A step on the way of the fact from the life to the answer: done, not done, or neither."""

    done: bool | None
    text: str


@dataclass(frozen=True)
class JudgmentView:
    """What a judge stated; ``reason`` may give the right answer away."""

    judge: str
    version: str
    """Empty for the label of a raw output's behaviour."""
    result: str
    reason: str
    details: tuple[str, ...] = ()
    """What it was made with: who decided instead, the model and its use, the reply that could not be read."""


@dataclass(frozen=True)
class AnswerView:
    """How a question went in one cell."""

    cell_id: str
    outcome: str
    """A key of :data:`OUTCOMES`; empty where it has none yet."""
    why: str
    """May give the right answer away."""
    decisions: tuple[Decision, ...]
    """How the outcome came about, without anything that gives the right answer away."""
    way: tuple[WayStep, ...]
    judgments: tuple[JudgmentView, ...]
    """That of the judge whose verdicts count comes first."""
    attempts: tuple[AttemptView, ...]
    """At least one; the last counts."""


@dataclass(frozen=True)
class QuestionView:
    """A question with its evidence, its gold, and its answers in one cell or several."""

    instance_id: str
    family: str
    dimension: str
    text: str
    """As it was sent."""
    facts: tuple[tuple[str, str], ...]
    """How it was asked: names and values, without the gold."""
    gold: str
    """The right answer in words."""
    sessions: tuple[SessionView, ...]
    """Evidence in the order in which it took place."""
    missing_sessions: tuple[str, ...]
    """Evidence sessions that the log does not hold."""
    answers: tuple[AnswerView, ...]
