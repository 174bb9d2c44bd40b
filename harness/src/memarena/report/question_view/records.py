"""Defines the trace of a question that ``memarena show``, the HTML report and the viewer render.

The viewer hides the right answer at first, so fields that may contain it say so. Texts are complete; renderers truncate
them. :func:`~memarena.report.question_view.making.question_view` builds a trace from the records of a log.
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
"""By outcome: its sign and its text."""


@dataclass(frozen=True)
class TurnView:
    """A turn of an evidence session; ``marked``: whether it is evidence itself."""

    marked: bool
    speaker: str
    text: str


@dataclass(frozen=True)
class SessionView:
    """An evidence session with all its turns."""

    session_id: str
    started_at: str
    where: str
    """Location, group and modality as far as known, for example ``kitchen, family, voice``."""
    turns: tuple[TurnView, ...]

    @property
    def evidence(self) -> tuple[TurnView, ...]:
        """The turns that are evidence; all turns if none is marked."""
        return tuple(turn for turn in self.turns if turn.marked) or self.turns


@dataclass(frozen=True)
class ItemView:
    """An item that Search returned."""

    rank: int
    """Its rank in Search's list, from 1."""
    score: float
    sources: str
    """Ids of the sessions that the backend names as its source."""
    time: str
    holds_evidence: bool
    in_prompt: bool | None
    """Whether it was in the prompt; None if unknown."""
    text: str
    held: str
    """Turns whose words its text contains, as the harness measured; empty if it was not audited."""


@dataclass(frozen=True)
class CallView:
    """A model call; without messages if the run stored no texts of prompts (``kept`` is False)."""

    head: str
    """Phase, model, status and tokens in one line."""
    route: str
    messages: tuple[tuple[str, str], ...]
    """(role, text) of each message of the prompt."""
    output: str
    kept: bool


@dataclass(frozen=True)
class StepView:
    """A span of time; ``ms`` is None if it did not occur or was not measured."""

    part: Literal["search", "prefill", "handing", "rest", ""]
    """Its part in the bar of times; empty for a span that overlaps with others."""
    name: str
    ms: float | None


@dataclass(frozen=True)
class AttemptView:
    """One attempt at a question in one cell."""

    number: int
    """Number of the attempt, from 1."""
    latest: bool
    """Whether it is the last attempt, which counts."""
    failed: str
    """Status and cause of a failure; empty if the question was answered."""
    namespace: str
    request: str
    """Description of the Search request; empty without a search."""
    search: str
    """Result of Search, in a sentence."""
    notices: tuple[str, ...]
    items: tuple[ItemView, ...]
    own_items: tuple[ItemView, ...]
    """Items of the memory's own search for its Answer; empty if it used those of Search."""
    calls: tuple[CallView, ...]
    """Model calls with a prompt, an output or a time."""
    other_calls: tuple[str, ...]
    """Other calls, counted by route: ``3 × /v1/embeddings``."""
    answer: str
    reason: str
    raw: str
    """Full output of the model; empty if it equals the answer."""
    read: str
    """By which route the answer was read, how it was parsed, how it ended; empty without an answer."""
    steps: tuple[StepView, ...]

    def texts(self) -> dict[str, str]:
        """Return all texts that a page may truncate, by their names in addresses: ``answer``, ``item-1``, …"""
        texts = {"answer": self.answer, "reason": self.reason, "raw": self.raw}
        texts |= {f"item-{item.rank}": item.text for item in self.items}
        texts |= {f"own-{item.rank}": item.text for item in self.own_items}
        for n, call in enumerate(self.calls, 1):
            texts[f"output-{n}"] = call.output
            texts |= {f"message-{n}-{m}": text for m, (_, text) in enumerate(call.messages, 1)}
        return texts


@dataclass(frozen=True)
class Decision:
    """A fact about how an outcome was decided; ``stage``: whether it names the stage that went wrong."""

    text: str
    stage: bool = False


@dataclass(frozen=True)
class WayStep:
    """A step of a fact from the conversation to the answer; ``done``: whether it succeeded, None if neither applies."""

    done: bool | None
    text: str


@dataclass(frozen=True)
class JudgmentView:
    """A verdict, a cause or a failure of a judge; ``reason`` may contain the right answer."""

    judge: str
    version: str
    """Empty for the label of a raw output's behaviour."""
    result: str
    reason: str
    details: tuple[str, ...] = ()
    """What decided instead of the model, the model and its tokens, or a reply that could not be parsed."""


@dataclass(frozen=True)
class AnswerView:
    """The answer to a question in one cell."""

    cell_id: str
    outcome: str
    """A key of :data:`OUTCOMES`; empty if there is no outcome yet."""
    why: str
    """Reason of the outcome, which may contain the right answer."""
    decisions: tuple[Decision, ...]
    """Facts about how the outcome was decided, none of which reveals the right answer."""
    way: tuple[WayStep, ...]
    judgments: tuple[JudgmentView, ...]
    """The judge whose verdicts count comes first."""
    attempts: tuple[AttemptView, ...]
    """Attempts in their order, at least one; the last one counts."""


@dataclass(frozen=True)
class QuestionView:
    """A question with its evidence, its gold, and its answers in one cell or several."""

    instance_id: str
    family: str
    dimension: str
    text: str
    """Text of the question as it was sent."""
    facts: tuple[tuple[str, str], ...]
    """(name, value) of the circumstances of the question, without the gold."""
    gold: str
    """The right answer in words."""
    sessions: tuple[SessionView, ...]
    """Evidence sessions in the order of their start."""
    missing_sessions: tuple[str, ...]
    """Ids of evidence sessions that are not in the log."""
    answers: tuple[AnswerView, ...]
