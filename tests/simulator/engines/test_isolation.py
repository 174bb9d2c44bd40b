"""Tests, with both engines, that a fact planted on a day is known and stated by others only from the next day on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from memarena_dataset.values import NameValue
from memarena_masim.config import WorldConfig
from memarena_masim.engines.connection import EndpointConfig
from memarena_masim.engines.llm import LlmEngine
from memarena_masim.engines.model import Engine, Setting
from memarena_masim.engines.offline import OfflineEngine
from memarena_masim.facts.catalogue import catalogue
from memarena_masim.facts.values import SpokenValue
from memarena_masim.plan.day import DayPlan, Planner
from memarena_masim.plan.state import Choice, Fact, FactKind, Occasion, Role
from memarena_masim.world.build import build_world

from tests.support.model_script import Body, Script
from tests.support.model_server import ModelServer

from .scripted_llm import perfect, read, requests

CONFIG = WorldConfig(name="test", agents=6, days=4, density=0.25, seed=107)
DAY = 1
MARKER = "Quillfeather"


@dataclass
class Gossips:
    """A chooser that plants a fact in the first talk of ``DAY``; all who know it pass it on in every talk.

    ``leaky`` is the fault to be detected: people also pass on what they heard earlier on the same day.
    """

    planner: Planner
    inner: Callable[..., Choice | None]
    fact: Fact
    leaky: bool = False
    statements: list[tuple[int, str, tuple[str, ...]]] = field(default_factory=list)
    """(Day, speaker, listeners) of every statement of the planted fact."""

    def choose(self, occasion: Occasion, *rest: Any) -> Choice | None:
        day, speaker, listeners = occasion.day, occasion.speaker, occasion.listeners
        plants = day == DAY and not self.statements and bool(listeners)
        known = self.fact.fact_id in self.planner.knowledge.facts_heard(speaker)
        if self.leaky:
            known = known or any(speaker in hearers for _, _, hearers in self.statements)
        if plants or (known and listeners):
            role = Role.TELL if plants else Role.RETELL
            self.statements.append((day, speaker, listeners))
            return Choice(self.fact, speaker, role, self.fact.value)
        return self.inner(occasion, *rest)


@dataclass
class Trial:
    """A world with a planted fact: the plans of its days, and by day the ids of those who knew it before its commit."""

    leaky: bool = False
    plans: list[DayPlan] = field(default_factory=list)
    known: dict[int, set[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        world = build_world(CONFIG)
        facts = catalogue(CONFIG.words)
        attribute = next(
            candidate
            for candidate in facts.attributes.values()
            if candidate.kind.type == "name" and not candidate.sensitive
        )
        fact = Fact(
            fact_id="fact_planted",
            kind=FactKind.DETAIL,
            subject=world.people[0].agent_id,
            attribute=attribute.key,
            item=attribute.items[0],
            value=SpokenValue(NameValue(name=MARKER), MARKER),
            category="planted",
        )
        self.setting = Setting(CONFIG, world)
        self.planner = Planner(CONFIG, world, facts)
        chooser = self.planner._chooser
        self.gossips = Gossips(self.planner, chooser.choose, fact, self.leaky)
        # The method is replaced, not the object: the planner of a talk's facts holds the same object.
        chooser.choose = self.gossips.choose  # type: ignore[assignment]

    def days(self) -> Iterator[DayPlan]:
        """Plan and commit every day; yield its plan."""
        for day in range(CONFIG.days):
            plan = self.planner.plan(day)
            facts_by_agent = self.planner.knowledge.heard
            self.known[day] = {agent for agent, facts in facts_by_agent.items() if self.gossips.fact.fact_id in facts}
            self.plans.append(plan)
            self.planner.commit(plan)
            yield plan

    def sessions_with_marker(self, engine: Engine) -> dict[int, set[str]]:
        """Return the ids of the sessions whose text has the planted value, by day."""
        sessions: dict[int, set[str]] = {}
        for words in engine.words(self.setting, self.days()):
            rows = [json.loads(line) for text in words.lines for line in text.splitlines()]
            sessions[words.day] = {row["session_id"] for row in rows if MARKER in json.dumps(row["turns"])}
        return sessions

    def planned_sessions(self) -> dict[int, set[str]]:
        """Return the ids of the sessions in which the fact is planned, by day."""
        return {
            plan.day: {
                statement.session_id for statement in plan.stated if statement.fact.fact_id == self.gossips.fact.fact_id
            }
            for plan in self.plans
        }


def check_isolated(trial: Trial, spoken: Mapping[int, set[str]]) -> None:
    """Check that on ``DAY`` only the speaker states the fact, and no other session's text has it.

    From the next day on, those who heard it pass it on.
    """
    first, *later = trial.gossips.statements
    assert first[0] == DAY
    assert trial.known[DAY - 1] == trial.known[DAY] == set()
    assert all(day > DAY for day, _, _ in later)
    assert len(spoken[DAY]) == 1
    assert not spoken[DAY - 1]
    assert trial.known[DAY + 1] == set(first[2])
    assert {speaker for day, speaker, _ in later if day == DAY + 1} <= set(first[2])
    assert any(day == DAY + 1 for day, _, _ in later)
    assert dict(spoken) == trial.planned_sessions()


def test_a_planted_fact_spreads_from_the_next_day_on_offline() -> None:
    """With the offline engine: in no other agent's knowledge and no other session of the same day."""
    trial = Trial()
    check_isolated(trial, trial.sessions_with_marker(OfflineEngine()))


def test_the_check_detects_a_leak() -> None:
    """It fails if people pass on what they heard earlier on the same day."""
    trial = Trial(leaky=True)
    spoken = trial.sessions_with_marker(OfflineEngine())
    with pytest.raises(AssertionError):
        check_isolated(trial, spoken)


class LeakyModel:
    """A model that adds the planted value to every session once any prompt had it: a server with a memory."""

    def __init__(self) -> None:
        self.has_seen = False
        self.leaks = 0

    def __call__(self, body: Body) -> Script:
        request = read(body)
        self.has_seen = self.has_seen or MARKER in request.user
        text = perfect(body)
        if not self.has_seen or request.kind != "session":
            return Script(text)
        self.leaks += MARKER not in request.user
        reply = json.loads(text)
        for turn in reply["turns"]:
            turn["text"] += f" Did you hear, it was {MARKER} all along."
        return Script(json.dumps(reply))


def test_a_planted_fact_spreads_from_the_next_day_on_with_a_model() -> None:
    """No prompt of another session has it, and where the model adds it nevertheless, it is removed."""
    trial, model = Trial(), LeakyModel()
    with ModelServer(model) as server, LlmEngine(EndpointConfig(server.base_url, "leaky", concurrency=4)) as engine:
        check_isolated(trial, trial.sessions_with_marker(engine))
    assert model.leaks > 10
    planned = sum(len(sessions) for sessions in trial.planned_sessions().values())
    assert sum(MARKER in request.user for request in requests(server, "session")) == planned
