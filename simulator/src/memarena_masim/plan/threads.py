"""Divides a talk into two threads: one that tells a scene, and before or after it one in which facts are stated."""

from __future__ import annotations

from memarena_masim.phrases.scenes import TALK_BEATS
from memarena_masim.plan.model import NEWS, Thread
from memarena_masim.rng import Stream

_NEWS_FIRST = 0.5
"""Chance that the thread for news comes before the scene."""
_FEWEST_NEWS = 4
"""Minimum number of turns of the thread for news."""


def fewest_turns(people: int) -> int:
    """Return the minimum number of turns of a talk: those that tell half a scene, and the minimum for news."""
    return TALK_BEATS * people + _FEWEST_NEWS


def threads_of(
    stream: Stream, topic: str, turns: int, people: int, assistant: bool, looks_back: bool
) -> tuple[Thread, ...]:
    """Return the two threads of a talk of ``turns`` turns between ``people`` people, with their assistant or not.

    The scene gets the turns for TALK_BEATS beats with their answers, and for an assistant's question before them; the
    others are for news. A talk that looks back at an earlier one (``looks_back``) begins with its scene.
    """
    speakers = people + assistant
    scene_turns = TALK_BEATS * speakers + assistant
    news = max(turns - scene_turns, _FEWEST_NEWS)
    first = 0 if assistant else stream.below(people)
    if looks_back or not stream.chance(_NEWS_FIRST):
        return Thread(topic, first, turns - news), Thread(NEWS, first, news)
    teller = first if assistant else (first + turns - 2) % people  # so that the one whose turn is the last answers
    return Thread(NEWS, first, news), Thread(topic, teller, turns - news)
