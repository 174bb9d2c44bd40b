"""Decides how often each detail comes up, so that a fact in a question has 0, 1, 4 or 16 near-duplicates.

A near-duplicate is a statement of the same attribute and item about another person or of another time: the more of them
a memory holds, the harder a question on one of them is (interference). Items fall into four classes of popularity, with
a fixed share of what is said for each class. A class has as many items as make the near-duplicates that a person hears
of one item equal to the class's aim, on average. The planner does not state a detail to the same listener twice, so
that among ten people hardly any person hears sixteen of one item.
"""

from __future__ import annotations

from memarena_masim.config import PA_SESSIONS_PER_AGENT_DAY, WorldConfig
from memarena_masim.facts.catalogue import Attribute, Catalogue
from memarena_masim.rng import Stream

Theme = frozenset[str] | None
"""Kinds of the facts that may be stated in a talk; None: any."""
AIMS = (0, 1, 4, 16)
"""Aimed number of near-duplicates that an ego hears of an item, by class."""
_CLASS_SHARES = (0.32, 0.24, 0.22, 0.22)
"""Share of the stated details that are of each class of AIMS."""
_DETAILS_PER_STATEMENT = 0.45
"""Share of the statements between people that are details, including retellings and changes."""
_DETAILS_TO_ASSISTANT = 0.4
_PEOPLE_PER_MEETING = 2.1
_VALUES_HEARD = 6
"""Minimum mean number of values of an attribute that a person hears, so that a cloze question has wrong options."""
_FEWEST_ATTRIBUTES = 3
_SHORT_LIFE_DETAILS = 60.0
"""Number of details heard in a life below which popular ones are chosen so that an abstention can ask about them."""


def interference_class(near_duplicates: int) -> int:
    """Return the aim to which a number of near-duplicates is nearest, by ratio: 1 for 2, 4 for 8, 16 for 9."""
    if near_duplicates == 0:
        return 0
    return next(aim for aim, most in ((1, 2), (4, 8), (16, near_duplicates)) if near_duplicates <= most)


class Popularity:
    """Divides the items of a world into classes of popularity, and draws from them."""

    def __init__(self, config: WorldConfig, catalogue: Catalogue) -> None:
        stream = Stream(config.key, "popularity")
        heard = _heard(config)
        open_ones = [attribute for attribute in catalogue.attributes.values() if not attribute.sensitive]
        talked_of = stream.sample(open_ones, max(_FEWEST_ATTRIBUTES, round(heard / _VALUES_HEARD)))
        pairs = stream.shuffled([(attribute, item) for attribute in talked_of for item in attribute.items])
        if heard < _SHORT_LIFE_DETAILS:
            pairs.sort(key=lambda pair: not catalogue.distinctive(pair[1]))
        self._classes: list[list[tuple[Attribute, str]]] = []
        self._by_theme: dict[Theme, list[list[tuple[Attribute, str]]]] = {}
        # from the most popular class down to the second; all items that are left are of the class 0
        for aim, share in list(zip(AIMS, _CLASS_SHARES, strict=True))[:0:-1]:
            # a person hears of each item aim + 1 times: the statement asked about, and its near-duplicates
            count = max(1, round(heard * share / (aim + 1)))
            count = min(count, len(pairs) // 2)
            self._classes.insert(0, pairs[:count])
            pairs = pairs[count:]
        self._classes.insert(0, pairs)

    @property
    def attributes(self) -> frozenset[str]:
        """Return the keys of the attributes that people talk about in this world."""
        return frozenset(attribute.key for pairs in self._classes for attribute, _ in pairs)

    def draw(self, stream: Stream, theme: Theme) -> tuple[Attribute, str] | None:
        """Draw an attribute and an item of it to talk about; None if the theme has none."""
        if theme not in self._by_theme:
            self._by_theme[theme] = [
                [pair for pair in pairs if theme is None or pair[0].key in theme] for pairs in self._classes
            ]
        pairs_of_theme = self._by_theme[theme]
        weights = [
            share * len(of_theme) / max(1, len(pairs))
            for share, of_theme, pairs in zip(_CLASS_SHARES, pairs_of_theme, self._classes, strict=True)
        ]
        return stream.pick(stream.weighted(pairs_of_theme, weights)) if any(weights) else None


def _heard(config: WorldConfig) -> float:
    """Estimate the number of details that a person says or hears in a world."""
    talks = config.statements_between_people / config.agents * _PEOPLE_PER_MEETING
    assistants = config.days * config.density * config.pace * PA_SESSIONS_PER_AGENT_DAY
    return talks * _DETAILS_PER_STATEMENT + assistants * _DETAILS_TO_ASSISTANT
