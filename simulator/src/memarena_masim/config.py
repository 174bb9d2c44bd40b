"""Defines the configuration of a world: size, seed, densities; and the presets."""

from __future__ import annotations

from datetime import date, timedelta
from typing import get_args

from memarena_dataset.model import Family
from memarena_dataset.nearest_names import nearest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from memarena_masim.errors import MasimError
from memarena_masim.pack import Half, Pack, PackHalf, public_pack

RELEASED_COUNTS: dict[Family, int] = {
    Family.CLOZE: 198,
    Family.METADATA: 169,
    Family.QA: 170,
    Family.TEMPORAL: 162,
    Family.COUNTERFACTUAL: 170,
    Family.CONFLICT: 170,
    Family.ANAPHORA: 170,
    Family.CONFABULATION: 170,
    Family.PERMISSION: 200,
}
"""Questions per family of the released data set; preset ``l`` has the same."""
RELEASED_AGENT_DAYS = 750
FACTS_PER_TALK = (1, 1, 2)
"""Numbers of facts in a talk with news between two people, each with the same chance."""
ASIDES = 0.8
"""Chance that who answers a story adds a fact of their own, in a talk between two people."""
_MOST_FACTS = 2
"""Maximum number of facts in a talk, except in small worlds."""
_MOST_ASIDES, _MOST_ASIDES_IF_SMALL = 1, 2
"""Maximum number of asides in a talk, and in a world of fewer than WEIGHTY_AGENT_DAYS."""
PLANNED = 0.5
"""Chance that a fact in a talk between people is a planned statement: others are only mentioned."""
_MOST_PLANNED = 0.85
"""Maximum of that chance, for worlds in which more talks do not hold enough statements."""
_STATEMENTS_PER_QUESTION = 0.92
"""Statements between people that a long life needs for each question; a short one needs more, as on its first day
nothing can refer to an earlier talk, and nothing can refer to its last day."""
SMALL_WORLD = 200
"""Number of statements between people below which a world is small."""
_NEWS_SHARE, _NEWS_SHARE_IF_SMALL = 0.5, 0.9
"""Share of the talks between people with news; the second in a world of fewer than WEIGHTY_AGENT_DAYS."""
_LEFT_OUT = 0.15
"""Share of the facts of talks that are not drawn: three people have fewer, and some find nothing to state."""
_MOST_TALKS = 1.9
"""Maximum factor on the number of talks between people, for worlds with many questions per agent-day."""
PP_SESSIONS_PER_AGENT_DAY = 8.9
PA_SESSIONS_PER_AGENT_DAY = 8.9
"""At density 1: 13,343 sessions for 50 agents over 15 days, people and assistants in equal parts."""
LEAST_PERMISSION, WEIGHTY_AGENT_DAYS = 172, 50
"""D6 items of a world of preset s or larger, at least: 60 to be withheld and 60 to be disclosed, and 52 controls and
items of the owner. With 14 and 14, D6 separated no two memories."""
STOCK_DAYS = 30
"""Days for which people have something new to state at the pace of the released data set; a longer life states it more
slowly, so that its last month is as full as its first."""
NEAREST_DATE_DAYS = 30
"""The nearest date in a detail: so far ahead that none is past when it is first told."""


class PackRef(BaseModel):
    """The pack of a world. ``folder`` says where it is on this machine (empty: in MaSim), and is in no file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    version: str
    sha256: str
    folder: str = Field(default="", exclude=True)

    @classmethod
    def of(cls, pack: Pack, folder: str = "") -> PackRef:
        """Return the reference to ``pack``."""
        return cls(name=pack.manifest.name, version=pack.manifest.version, sha256=pack.sha256, folder=folder)


class WorldConfig(BaseModel):
    """Everything that the bytes of a data set depend on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = "custom"
    agents: int = Field(ge=4, le=2000)
    days: int = Field(ge=2, le=365)
    density: float = Field(default=1.0, gt=0, le=4, allow_inf_nan=False)
    """Sessions per agent and day, as a share of the released data set's."""
    question_share: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    """Questions per agent-day, as a share of the released data set's."""
    seed: int = Field(ge=0)
    world: int = Field(default=0, ge=0)
    calendar_epoch: date = date(2025, 1, 1)
    pack: PackRef = Field(default_factory=lambda: PackRef.of(public_pack()))
    banks: Half = "all"
    wording: tuple[int, int, int] = (70, 20, 10)
    """Percent of the questions that call a thing by its own name, by another one, and by a description."""

    @field_validator("wording", mode="before")
    @classmethod
    def _numbers(cls, shares: object) -> object:
        return shares.split("/") if isinstance(shares, str) else shares

    @field_validator("wording")
    @classmethod
    def _whole(cls, shares: tuple[int, int, int]) -> tuple[int, int, int]:
        if min(shares) < 0 or sum(shares) != 100:
            raise ValueError("shares of 100 are expected")
        return shares

    @property
    def words(self) -> PackHalf:
        """Return the pack and the half of it from which this world's words are read."""
        return PackHalf(self.pack.folder, self.pack.sha256 if self.pack.folder else "", self.banks)

    @property
    def key(self) -> str:
        """Return the first part of the keys of this world's random streams (``rng.Stream``)."""
        return f"masim1/{self.seed}/{self.world}"

    @property
    def pace(self) -> float:
        """Statements per session, as a share of those of a short life."""
        return min(1.0, STOCK_DAYS / self.days)

    @property
    def _weighty(self) -> bool:
        """Whether the world has WEIGHTY_AGENT_DAYS or more."""
        return self.agents * self.days >= WEIGHTY_AGENT_DAYS

    @property
    def news_share(self) -> float:
        """Share of the talks between people with a thread for news; the others tell two stories."""
        return self.pace * (_NEWS_SHARE if self._weighty else _NEWS_SHARE_IF_SMALL)

    @property
    def asides(self) -> float:
        """Chance that who answers a story adds a fact of their own."""
        return self.pace * ASIDES

    def most_asides(self, facts: int) -> int:
        """Return the maximum number of asides in a talk that has ``facts`` facts in its thread for news."""
        return min(_MOST_ASIDES, _MOST_FACTS - facts) if self._weighty else _MOST_ASIDES_IF_SMALL

    @property
    def _facts_per_talk(self) -> float:
        """Mean number of facts in a talk between people."""
        one_story = [facts + self._asides(facts, 1) for facts in FACTS_PER_TALK]
        with_news = self.news_share * sum(one_story) / len(one_story)
        return (1 - _LEFT_OUT) * (with_news + (1 - self.news_share) * self._asides(0, 2))

    def _asides(self, facts: int, stories: int) -> float:
        """Return the mean number of asides in a talk with so many facts and stories."""
        most = self.most_asides(facts)
        return stories * self.asides if most >= stories else most * (1 - (1 - self.asides) ** stories)

    @property
    def _more_talks(self) -> float:
        """Factor on the number of talks with which they hold enough statements for the world's questions."""
        questions = sum(self.questions(family) for family in Family)
        statements = _STATEMENTS_PER_QUESTION * questions * (self.days / (self.days - 1)) ** 2
        talks = self.agents * self.days * self.density * PP_SESSIONS_PER_AGENT_DAY
        return statements / (PLANNED * self._facts_per_talk * talks)

    @property
    def planned(self) -> float:
        """Chance that a fact in a talk between people is a planned statement: more where more talks do not suffice."""
        return min(_MOST_PLANNED, PLANNED * max(1.0, self._more_talks / _MOST_TALKS)) if self.pace == 1 else PLANNED

    @property
    def talks_per_agent_day(self) -> float:
        """Talks between people per agent and day: more in a world with many questions for its size."""
        factor = max(1.0, min(_MOST_TALKS, self._more_talks)) if self.pace == 1 else 1.0
        return PP_SESSIONS_PER_AGENT_DAY * self.density * factor

    @property
    def scarce(self) -> bool:
        """Whether the world has hardly enough statements for its questions."""
        return self._more_talks > 1

    @property
    def statements_between_people(self) -> float:
        """Estimate the number of planned statements between people."""
        return self.agents * self.days * self.talks_per_agent_day * self.planned * self._facts_per_talk

    def dates_from(self, day: int) -> date:
        """Return the day from which dates are counted in details that first come up on ``day``."""
        return self.calendar_epoch + timedelta(days=day - day % NEAREST_DATE_DAYS)

    def questions(self, family: Family) -> int:
        """Return the number of questions of a family that is aimed at."""
        share = self.agents * self.days / RELEASED_AGENT_DAYS * self.question_share
        if family is Family.WITNESS:
            return 2 * max(2, round(50 * share))  # always in pairs
        count = max(4, round(RELEASED_COUNTS[family] * share))
        weighty = family is Family.PERMISSION and self._weighty
        return max(LEAST_PERMISSION, count) if weighty else count


_PRESETS: dict[str, tuple[int, int, float, float]] = {
    "tiny": (6, 3, 0.35, 2.0),
    "s": (10, 5, 1.0, 3.0),
    "m": (25, 10, 1.0, 1.0),
    "l": (50, 15, 1.0, 1.0),
    "year": (50, 365, 1.0, 0.1),
}
"""By name: agents, days, density and share of questions."""


_EXPECTED = {
    "agents": "4 to 2000",
    "days": "2 to 365",
    "density": "a number above 0, at most 4,",
    "question_share": "a number above 0",
    "seed": "0 or more",
    "world": "0 or more",
    "banks": f"one of {', '.join(get_args(Half))}",
    "wording": "three whole numbers that add up to 100, such as 70/20/10,",
}
"""What is expected of each flag, in the words of the line that refuses another value."""


def preset_names() -> list[str]:
    """Return the names of the presets."""
    return list(_PRESETS)


def preset(name: str, seed: int, world: int = 0) -> WorldConfig:
    """Return a preset by name. MasimError if there is no preset of that name, or the seed is negative."""
    if name not in _PRESETS:
        raise MasimError(f"--preset {name}: unknown; one of {', '.join(_PRESETS)} is expected{nearest(name, _PRESETS)}")
    agents, days, density, share = _PRESETS[name]
    return _validated(
        name=name, agents=agents, days=days, density=density, question_share=share, seed=seed, world=world
    )


def sized(config: WorldConfig, **sizes: int | float | str | PackRef | None) -> WorldConfig:
    """Return ``config`` with the settings that are not None: agents, days, density, pack, banks or wording.

    A change of size makes it a custom configuration. ``wording`` is three percentages as text (``70/20/10``).
    MasimError names the flag that is out of range.
    """
    settings = {name: value for name, value in sizes.items() if value is not None}
    if not settings:
        return config
    name = config.name if set(settings) <= {"pack", "banks", "wording"} else "custom"
    return _validated(**{**dict(config), **settings, "name": name})


def _validated(**values: object) -> WorldConfig:
    try:
        return WorldConfig.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = str(first["loc"][0])
        raise MasimError(f"--{field} {values[field]}: {_EXPECTED[field]} is expected") from error
