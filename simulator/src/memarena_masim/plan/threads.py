"""Divides a talk into threads: scenes that are told, and a thread for news in which facts are stated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from memarena_masim.phrases.scenes import TALK_BEATS
from memarena_masim.plan.model import NEWS, Thread
from memarena_masim.rng import Stream

_NEWS_FIRST = 0.5
"""Chance that the thread for news comes before the scene, in a session with an assistant."""
_FEWEST_NEWS = 4
"""Minimum number of turns of the thread for news with an assistant."""
_ASKED_FOR_STORY = 0.5
"""Chance that the teller of the first story asks for the second one; else the second teller begins unasked."""
_ASKED_OPENLY = 0.45
"""Chance that the turn before a fact asks openly what is new; else its speaker brings it up."""
_NEWS_AT_ONCE = 0.5
"""Chance that the one fact of a talk between two people comes before the story: the first turn asks what is new."""
_SECOND_STORY_BEATS = {2: TALK_BEATS, 3: 2}
"""Beats of the second story, by the number of people."""


class Slot(NamedTuple):
    """A turn that may state a fact."""

    turn: int
    after_question: bool
    """Whether the turn before asks what is new."""


def threads_with_assistant(stream: Stream, topic: str, turns: int, looks_back: bool) -> tuple[Thread, ...]:
    """Return the two threads of a session of ``turns`` turns between a person and their assistant.

    The scene gets the turns for TALK_BEATS beats with their answers, and for the assistant's question before them; the
    others are for news. A session that looks back at an earlier talk (``looks_back``) begins with its scene.
    """
    news = max(turns - 2 * TALK_BEATS - 1, _FEWEST_NEWS)
    if looks_back or not stream.chance(_NEWS_FIRST):
        return Thread(topic, 0, turns - news), Thread(NEWS, 0, news)
    return Thread(NEWS, 0, news), Thread(topic, 0, turns - news)


def first_story(stream: Stream, topic: str, people: int) -> Thread:
    """Return the thread with which a talk between people begins: half a scene, with the answers to it."""
    return Thread(topic, stream.below(people), TALK_BEATS * people)


def two_stories(stream: Stream, first: Thread, topic: str, people: int) -> tuple[Thread, Thread]:
    """Return two threads that tell scenes: the second teller is who answers the first one.

    The first teller asks for the second story, or the second teller goes on with it when answering the last beat.
    """
    teller, beats = (first.narrator + 1) % people, second_story_beats(people)
    if stream.chance(_ASKED_FOR_STORY):
        return first, Thread(topic, teller, 1 + beats * people)
    return replace(first, turns=first.turns - people + 1), Thread(topic, teller, beats * people)


def second_story_beats(people: int) -> int:
    """Return how many beats of the second story a talk tells."""
    return _SECOND_STORY_BEATS[people]


def first_slot(stream: Stream, story: Thread, facts: int, people: int) -> Slot:
    """Return the first turn that may state a fact, after the story, or if there is one fact perhaps before it."""
    if facts == 1 and people == 2 and stream.chance(_NEWS_AT_ONCE):
        return Slot(1, after_question=True)
    after_question = stream.chance(_ASKED_OPENLY)
    return Slot(story.turns + after_question, after_question)


def next_slot(stream: Stream, slot: Slot, people: int) -> Slot:
    """Return the next turn that may state a fact, after its listener took up the first and its teller said more."""
    after_question = stream.chance(_ASKED_OPENLY)
    # all others answer and the teller says more (``people`` turns), then the next speaker answers and states the fact
    return Slot(slot.turn + people + 1 + after_question, after_question)


def asides(threads: Sequence[Thread], people: int) -> list[tuple[Thread, list[int]]]:
    """Return each story of a talk with the turns that answer one of its beats and are not the last before news.

    The last answer counts if the teller then asks for the second story: that turn takes up the aside.
    """
    stories: list[tuple[Thread, list[int]]] = []
    first = 0
    for thread, following in zip(threads, (*threads[1:], None), strict=True):
        if thread.scene:
            asks_next = following is not None and following.scene and _is_asked_for(following, people)
            end = first + thread.turns - (0 if asks_next else people - 1)
            begin = first + 1 + (first > 0 and _is_asked_for(thread, people))
            stories.append((thread, list(range(begin, end, people))))
        first += thread.turns
    return [(thread, turns) for thread, turns in stories if turns]


def _is_asked_for(story: Thread, people: int) -> bool:
    """Whether a second story begins with a question of the first one's teller."""
    return story.turns % people == 1


def with_news(story: Thread, last: Slot, people: int) -> tuple[Thread, Thread]:
    """Return a talk's threads: the story, and news up to the turn in which the last fact's teller says more.

    That is answered in another turn, or if the news comes first by the turn that begins the story.
    """
    if last.turn < story.turns:
        return Thread(NEWS, story.narrator, last.turn + people + 1), story
    return story, Thread(NEWS, story.narrator, last.turn + people + 2 - story.turns)
