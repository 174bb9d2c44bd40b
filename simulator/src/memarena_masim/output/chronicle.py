"""Accumulates from finished days the data for the files: who met whom, counts, sessions by person.

A plan is as large as its text. A year of plans does not fit into memory, so only this is kept of each day.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from memarena_masim.plan.day import DayPlan
from memarena_masim.plan.model import SessionPlan
from memarena_masim.world.model import World


@dataclass(slots=True)
class Chronicle:
    """The data accumulated from finished days, which are added in order."""

    world: World
    sessions_of: dict[str, list[str]] = field(default_factory=dict)
    """Session ids by speaker, including assistants, in the order of time."""
    met: dict[str, dict[str, int]] = field(default_factory=dict)
    """``met[agent][other]``: the first day on which two people talked."""
    named: dict[str, set[str]] = field(default_factory=dict)
    """Absent people who come up in a session, by session id: in small talk, or from a session looked back at."""
    kinds: Counter[str] = field(default_factory=Counter)
    """Number of sessions, by kind."""
    turns: int = 0
    mentioned: int = 0
    """Number of facts mentioned in passing."""
    events: int = 0
    days: int = 0

    @property
    def sessions(self) -> int:
        """Return the number of sessions."""
        return self.kinds.total()

    def add(self, plan: DayPlan) -> None:
        """Add the next day."""
        self.days += 1
        self.events += len(plan.events)
        for session in plan.sessions:
            self._add(session, plan.day)
        self.mentioned += len(plan.mentioned)
        for mention in plan.mentioned:
            others = {mention.fact.subject, *mention.wish.named}.difference(mention.people)
            if others:
                self.named.setdefault(mention.session_id, set()).update(others)

    def _add(self, session: SessionPlan, day: int) -> None:
        """Add a session: counts, who met whom, and the people that it names when it looks back at a talk."""
        self.kinds[session.kind.value] += 1
        self.turns += session.turn_count
        for speaker in session.speakers:
            self.sessions_of.setdefault(speaker.agent_id, []).append(session.session_id)
        people = [speaker.agent_id for speaker in session.speakers if not speaker.assistant]
        for agent in people:
            for other in people:
                if agent != other:
                    self.met.setdefault(agent, {}).setdefault(other, day)
        name = session.looks_back[0]
        for person in self.world.people if name else ():
            if name in (person.name, person.first_name):
                self.named.setdefault(session.session_id, set()).add(person.agent_id)
