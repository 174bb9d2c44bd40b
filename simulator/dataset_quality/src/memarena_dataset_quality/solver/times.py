"""Answers questions about time: the date of one event, the days between two, the order of several."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from datetime import date

from memarena_dataset_quality.solver.dates import past_day
from memarena_dataset_quality.solver.evidence import EvidenceTurn, Task, best_sentence, content, overlap
from memarena_dataset_quality.solver.lexicon import Lexicon

_LEAST_ITEMS = 3
"""Minimum number of things in a list to be ordered."""
_CHANGE = re.compile(
    r"\b(?:changed?|different now|no longer|any ?more|moved to|switched|instead|scrap|forget what"
    r"|correction|update|turns out|new plan|what I said (?:before|earlier|last time|the other day)"
    r"|not what (?:it|they) (?:was|were)|moved on|out of date|what was said before)\b",
    re.IGNORECASE,
)
"""Words of a turn that announce a new value."""
_LATE = re.compile(
    r"\b(?:latest|last|now|current(?:ly)?|(?:at )?present|today|still|newest|most recent(?:ly)?"
    r"|after (?:the|it|that)|since|leaving out|these days|in the end|finally|by now|later|updated?)\b",
    re.IGNORECASE,
)
"""Words of a question for the latest value."""
_EARLY = re.compile(
    r"\b(?:before|prior|original(?:ly)?|at first|first|earlier|earliest|initial(?:ly)?|used to|to begin with"
    r"|previous(?:ly)?|former(?:ly)?|once|no longer|until|old)\b",
    re.IGNORECASE,
)
"""Words of a question for the earlier value."""
_SURELY_EARLY = re.compile(r"\b(?:former|prior|original(?:ly)?|previous(?:ly)?|at first)\b", re.IGNORECASE)
"""Words of a question for the earlier value, also if it has a word of _LATE."""
_NEGATED = re.compile(r"\bnot (?:a|an|the|any) \w+ (?:one|answer|word|version)\b", re.IGNORECASE)
"""``not the first answer`` means the later answer: it is removed before a question is searched for the words above."""


def answer(task: Task, lexicon: Lexicon) -> str:
    """Answer a question about time, by the expected type of value; empty if the evidence gives none."""
    rules: dict[tuple[str, ...], Callable[[Task, Lexicon], str]] = {("order",): order, ("duration",): interval}
    return rules.get(task.kinds, day)(task, lexicon)


def day(task: Task, lexicon: Lexicon) -> str:
    """Return the day that most evidence turns mean; empty if none means a day."""
    days = Counter(moment for turn in task.turns if (moment := _meant(turn, content(task.query), lexicon)) is not None)
    return _written(days.most_common(1)[0][0]) if days else ""


def interval(task: Task, lexicon: Lexicon) -> str:
    """Return the days between the two days that the evidence means; empty if there are not two."""
    days = Counter(moment for turn in task.turns if (moment := _meant(turn, content(task.query), lexicon)) is not None)
    two = sorted(moment for moment, _ in days.most_common(2))
    return f"{(two[1] - two[0]).days} days" if len(two) == 2 else ""


def order(task: Task, lexicon: Lexicon) -> str:
    """Return the listed things in the order of their days; empty if one has no day."""
    items = listed(task.query)
    dates: defaultdict[int, Counter[date]] = defaultdict(Counter)
    for turn in task.turns:
        # -number: of things that fit equally, the first is chosen
        scored = [(_fit(turn, item, task.ego), -number) for number, item in enumerate(items)]
        best, number = max(scored, default=(0.0, 0))
        moment = _meant(turn, content(items[-number]), lexicon) if best else None
        if moment is not None:
            dates[-number][moment] += 1
    if len(dates) < len(items):
        return ""
    meant = {number: days.most_common(1)[0][0] for number, days in dates.items()}
    return "; ".join(items[number] for number in sorted(meant, key=lambda number: meant[number]))


def as_asked(task: Task) -> Task:
    """Return the task with only the turns before or after a change, if the evidence has one.

    Words of the evidence announce a change; words of the question say whether it asks for the earlier value. If they
    say nothing, the later one is meant.
    """
    query = _NEGATED.sub(" ", task.query)
    late = _LATE.search(query) is not None and _SURELY_EARLY.search(query) is None
    early = _EARLY.search(query) is not None and not late
    announced = [index for index, turn in enumerate(task.turns) if any(map(_CHANGE.search, turn.sentences))]
    if announced and announced[-1] > 0:
        return replace(task, turns=task.turns[: announced[-1]] if early else task.turns[announced[-1] :])
    if early or late:
        return replace(task, turns=task.turns[:1] if early else task.turns[-1:])
    return task


def listed(query: str) -> list[str]:
    """Return the things that a question lists, separated by lines, semicolons, slashes or commas."""
    _, _, tail = query.partition(":")
    items: list[str] = []
    # The first that gives a list counts: what follows a colon before the whole question, lines before commas.
    for text in (tail, query):
        for separator in ("\n", ";", " / ", ","):
            parts = [re.sub(r"^\W*(?:\d+[.)]|[a-z][.)]|and |or |- )\s*", "", part).strip(" .?!") for part in
                     text.split(separator)]  # fmt: skip
            parts = [part for part in parts if part]
            if len(parts) >= _LEAST_ITEMS and not items:
                items = parts
    return items


def _fit(turn: EvidenceTurn, item: str, ego: str) -> float:
    """Score how well a turn fits a listed thing: shared words, and whether it is about the same person."""
    words = content(item)
    best, _ = best_sentence(words, turn.sentences)
    speaks_of_self = item.startswith("I ") or " I " in item or re.search(r"\bmy\b", item) is not None
    same = turn.ego if speaks_of_self else bool(overlap(content(turn.speaker), item))
    return best + (0.4 if same else 0.0) if best else 0.0


def _meant(turn: EvidenceTurn, stems: frozenset[str], lexicon: Lexicon) -> date | None:
    """Return the day that a turn means, from a sentence that has a day and tells a happening, if there is one.

    Of several sentences, the one that shares most with ``stems``. None if no sentence has a day.
    """
    dated = [sentence for sentence in turn.sentences if past_day(sentence, turn.day) is not None]
    if not dated:
        return None
    _, sentence = best_sentence(
        stems, [candidate for candidate in dated if lexicon.tells_happening(candidate)] or dated
    )
    return past_day(sentence, turn.day)


def _written(moment: date) -> str:
    return f"{moment:%B} {moment.day}, {moment.year}"
