"""Writes the text of a planned session: each thread tells one scene, beat by beat, or news by the speakers in turn.

The values of a scene (amounts, names, times) are drawn once per teller, so that all tellings by one person agree.
"""

from __future__ import annotations

from memarena_masim.config import WorldConfig
from memarena_masim.phrases.grammar import Scope, Voice, phrase
from memarena_masim.phrases.library import Library
from memarena_masim.phrases.scenes import Beat
from memarena_masim.plan.model import SessionPlan, Statement, Thread
from memarena_masim.realization.spoken import SpokenTurn
from memarena_masim.realization.talk import SceneTelling, Talk
from memarena_masim.realization.turn import Turn
from memarena_masim.rng import Stream


def speak(config: WorldConfig, plan: SessionPlan, stream: Stream, library: Library) -> tuple[SpokenTurn, ...]:
    """Word every turn of ``plan``; a pure function of its arguments."""
    talk = Talk(config, plan, stream, library)
    assistant = plan.kind.with_assistant
    speaker = len(plan.speakers) - 1 if assistant else plan.threads[0].narrator
    before: SceneTelling | None = None
    for number, thread in enumerate(plan.threads):
        if thread.scene:
            scene = _scene_so_far(talk, thread, 0 if assistant else thread.narrator)
            talk.telling = scene
            speaker = _scene(talk, scene, before, speaker, last=number + 1 == len(plan.threads))
            before = scene
        elif assistant:
            speaker = _notes(talk, thread, before, speaker)
        else:
            speaker = _news(talk, thread, speaker)
    return tuple(talk.turns)


def _scene_so_far(talk: Talk, thread: Thread, narrator: int) -> SceneTelling:
    scene = talk.library.scenes[thread.scene]
    who = talk.plan.speakers[narrator]
    stream = Stream(talk.config.key, "scene", who.agent_id, scene.key)
    values = {name: draw(stream) for name, draw in sorted(scene.values.items())}
    anybody = phrase(stream.pick(talk.library.kin[scene.key]), Scope(stream, Voice(), {}))
    kin = values.pop("kin", anybody)
    return SceneTelling(scene, thread, {**values, **dict(thread.names)}, kin)


def _scene(talk: Talk, scene: SceneTelling, before: SceneTelling | None, speaker: int, last: bool) -> int:
    """Write a thread that tells a scene, after that of ``before``; return the index of the next speaker."""
    plan, thread = talk.plan, scene.thread
    people = len(plan.speakers)
    narrator = 0 if plan.kind.with_assistant else thread.narrator
    beat, opened = thread.first_beat, False
    answer: Beat | None = None
    for position in range(thread.turns):
        index = len(talk.turns)
        turn = Turn(talk, scene, speaker, _listener(talk, speaker))
        shifts = position == 0 and index > 0
        ends = position == thread.turns - 1
        turn.begin(index, before if shifts and speaker == narrator else None)
        statement, following = _statement(talk, index), _statement(talk, index + 1)
        if speaker == narrator:
            answer = scene.scene.beats[beat]
            if talk.stated is not None and not shifts and not plan.kind.with_assistant:
                turn.frame("back")
            if shifts and before is None and not plan.kind.with_assistant:
                turn.frame("answer.more")  # the news came first
            if shifts:
                turn.frame("shift" if before is None or plan.kind.with_assistant else "shift.story")
            if not opened and thread.first_beat:
                turn.line("resume")
            opened = True
            turn.body(turn.parts(answer.tell), question=following is None)
            beat += 1
        elif not opened:
            turn.ask(shifts, before)
            opened = True
        elif answer is None:  # another person asked, and the teller has not spoken yet
            turn.frame("ask.too")
        elif (speaker - narrator) % people == 1:
            answered = position + (narrator - speaker) % people < thread.turns
            # the chained ``is``: neither this turn nor the next states a fact
            goes_on = answered and statement is following is None and talk.stream.chance(turn.who.asking)
            turn.body(turn.answer(beat - 1), question=goes_on, brief=statement is not None)
            if statement is not None:
                turn.news(statement, lead="aside")
        else:
            turn.also()
        turn.end(index, last and ends)
        speaker = _hand_over(talk, turn, following)
    return speaker


def _news(talk: Talk, thread: Thread, speaker: int) -> int:
    """Write the turns of the thread for news between people; return the index of the next speaker.

    A fact is taken up in the turn after it; then its teller says more about it, and that is answered as well.
    """
    plan = talk.plan
    people = len(plan.speakers)
    last: Statement | None = None
    for position in range(thread.turns):
        index = len(talk.turns)
        turn = Turn(talk, None, speaker, _listener(talk, speaker))
        turn.begin(index, None)
        statement = _statement(talk, index)
        since = 0 if last is None else index - last.turn
        if since == 1 and last is not None:
            turn.ask_for_more(last)
        elif since == people and last is not None:
            turn.say_more(last)
        elif since == people + 1 and last is not None:
            if last.later and index + 1 < plan.turn_count:  # the last turn answers a goodbye
                turn.frame("answer.more")
        elif 1 < since < people:
            turn.frame("also.more")
        elif position == 0 and index and statement is None:
            turn.frame("enough")
        if statement is not None:
            turn.news(statement)
            last = statement
        turns_left = plan.turn_count - 1 - index
        if index and turns_left < 2:
            turn.leave(replies=turns_left == 0)
        speaker = _hand_over(talk, turn, _statement(talk, index + 1))
    return speaker


def _notes(talk: Talk, thread: Thread, before: SceneTelling | None, speaker: int) -> int:
    """Write the turns of the thread for news with an assistant; return the index of the next speaker."""
    for position in range(thread.turns):
        index = len(talk.turns)
        turn = Turn(talk, None, speaker, _listener(talk, speaker))
        turn.begin(index, before if position == 0 else None)
        statement = _statement(talk, index)
        if statement is not None:
            turn.news(statement)
        elif not turn.text:
            turn.frame("pa.answer.plain" if turn.who.assistant else "answer.plain")  # nothing was left to mention
        turn.end(index, last=index == talk.plan.turn_count - 1)
        speaker = _hand_over(talk, turn, _statement(talk, index + 1))
    return speaker


def _hand_over(talk: Talk, turn: Turn, following: Statement | None) -> int:
    """End a turn, if need be with the question that the next one answers; return the index of the next speaker."""
    index = len(talk.turns)
    talk.invited = None
    if following is not None and (following.invite or following.prompt or turn.who.assistant):
        turn.invite(following)
        talk.invited = following
    talk.turns.append(SpokenTurn(turn.speaker, turn.listener, turn.text))
    talk.stated = _statement(talk, index)
    return (turn.speaker + 1) % len(talk.plan.speakers)


def _statement(talk: Talk, index: int) -> Statement | None:
    """Return the statement of a turn; None if it has none."""
    return next((statement for statement in talk.plan.statements if statement.turn == index), None)


def _listener(talk: Talk, speaker: int) -> int:
    """Return the index of the listener of a turn: the last speaker; in the first turn, the next speaker."""
    return (speaker + (-1 if talk.turns else 1)) % len(talk.plan.speakers)
