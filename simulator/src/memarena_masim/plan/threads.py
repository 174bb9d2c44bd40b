"""The threads of a talk: a scene that is told, and before it or after it news of each other."""

from __future__ import annotations

from memarena_masim.phrases.scenes import TALK_BEATS
from memarena_masim.plan.model import NEWS, Thread
from memarena_masim.rng import Stream

_NEWS_FIRST = 0.5
"""How often the news comes before the scene; else after it."""
_FEWEST_NEWS = 4


def fewest_turns(people: int) -> int:
    """Of a talk between so many: those that tell all beats, and as much news as there is at least."""
    return TALK_BEATS * people + _FEWEST_NEWS


def threads_of(
    stream: Stream, topic: str, turns: int, people: int, assistant: bool, looks_back: bool
) -> tuple[Thread, ...]:
    """The threads of a talk of ``turns`` turns between ``people`` people, with their assistant or not.

    The scene has turns for the beats of a talk with their answers, and before them an assistant's question; what is
    left is for news. A talk that looks back at another one (``looks_back``) begins with its scene.
    """
    speakers = people + assistant
    scene_turns = TALK_BEATS * speakers + assistant
    news = max(turns - scene_turns, _FEWEST_NEWS)
    first = 0 if assistant else stream.below(people)
    if looks_back or not stream.chance(_NEWS_FIRST):
        return Thread(topic, first, turns - news), Thread(NEWS, first, news)
    teller = first if assistant else (first + turns - 2) % people  # so that the one whose turn is the last answers
    return Thread(NEWS, first, news), Thread(topic, teller, turns - news)
