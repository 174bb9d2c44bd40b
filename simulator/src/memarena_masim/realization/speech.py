"""Writes the text of a planned session from scenes: each thread goes on with one scene, beat by beat.

What a teller's scene holds (amounts, names, times) is drawn once per teller, so that every telling agrees with every
other.
"""

from __future__ import annotations

from memarena_masim.config import WorldConfig
from memarena_masim.phrases.grammar import Scope, Voice, phrase
from memarena_masim.phrases.library import Library
from memarena_masim.phrases.scenes import Beat
from memarena_masim.plan.model import SessionPlan, Statement, Thread
from memarena_masim.realization.spoken import SpokenTurn
from memarena_masim.realization.talk import Talk, Told
from memarena_masim.realization.turn import Turn
from memarena_masim.rng import Stream

INVITED = 0.75
"""Share of the facts between people that answer a question of the turn before, where there may be one."""


def speak(config: WorldConfig, plan: SessionPlan, stream: Stream, library: Library) -> tuple[SpokenTurn, ...]:
    """Word every turn of ``plan``; a pure function of its arguments."""
    talk = Talk(config, plan, stream, library)
    assistant = plan.kind.with_assistant
    speaker = len(plan.speakers) - 1 if assistant else plan.threads[0].narrator
    before: Told | None = None
    for number, thread in enumerate(plan.threads):
        told = _told(talk, thread, 0 if assistant else thread.narrator)
        following = plan.threads[number + 1] if number + 1 < len(plan.threads) else None
        speaker = _thread(talk, told, before, speaker, last_thread=following is None)
        before = told
    return tuple(talk.turns)


def _told(talk: Talk, thread: Thread, narrator: int) -> Told:
    scene = talk.library.scenes[thread.scene]
    who = talk.plan.speakers[narrator]
    stream = Stream(talk.config.key, "scene", who.agent_id, scene.key)
    values = {name: draw(stream) for name, draw in sorted(scene.values.items())}
    anybody = phrase(stream.pick(talk.library.kin[scene.key]), Scope(stream, Voice(), {}))
    kin = values.pop("kin", anybody)
    return Told(scene, thread, {**values, **dict(thread.names)}, kin)


def _thread(talk: Talk, told: Told, before: Told | None, speaker: int, last_thread: bool) -> int:
    """Say a thread's turns; returns who speaks next."""
    plan, thread = talk.plan, told.thread
    people = len(plan.speakers)
    narrator = 0 if plan.kind.with_assistant else thread.narrator
    beat, opened = thread.first_beat, False
    answer: Beat | None = None
    for place in range(thread.turns):
        index = len(talk.turns)
        turn = Turn(talk, told, speaker, (speaker - 1) % people if index else (speaker + 1) % people)
        ends = place == thread.turns - 1
        asked = [one for one in plan.statements if one.turn == index + 1 and one.prompt]
        asks = speaker != narrator and not opened
        turn.begin(index, before if place == 0 else None)
        talk.invited = None if asks else _to_invite(talk, index, speaker)
        leaves = speaker == narrator and index == plan.turn_count - 2  # a fact beside a farewell is not heard
        turn.aside(
            always=asks or leaves,
            goes_back=place > 0 and answer is not None,
            asked=opened and answer is None,
        )
        if speaker == narrator:
            answer = told.scene.beats[beat]
            if place == 0 and before is not None:
                turn.frame("shift")
            if not opened and thread.first_beat:
                turn.line("resume")
            opened = True
            turn.body(turn.parts(answer.tell), question=True)
            beat += 1
        elif asks:
            turn.ask(shifts=place == 0 and before is not None, prompts=bool(asked))
            opened = True
            turn.body((), question=False)
        elif answer is None:  # somebody else asked, and the teller has not spoken yet
            turn.frame("ask.too")
            turn.body((), question=False)
        elif (speaker - narrator) % people == 1:
            answered = place + (narrator - speaker) % people < thread.turns
            goes_on = answered and not (turn.states or asked or talk.invited) and talk.stream.chance(turn.who.asking)
            turn.body(turn.answer(beat - 1), question=goes_on)
        else:
            turn.also()
            turn.body((), question=False)
        turn.end(index, last_thread and ends, asked)
        if talk.invited:
            turn.invite(talk.invited, last=ends)
        talk.turns.append(SpokenTurn(speaker, turn.listener, turn.text))
        talk.stated = tuple(one for one in plan.statements if one.turn == index)
        speaker = (speaker + 1) % people
    return speaker


def _to_invite(talk: Talk, index: int, speaker: int) -> Statement | None:
    """The fact of the next turn that this one asks for; never beside a farewell or another question."""
    plan = talk.plan
    if (index == 0 and plan.kind.with_assistant) or index >= plan.turn_count - len(plan.speakers):
        return None
    asker = plan.speakers[speaker]
    for one in plan.statements:
        if one.turn == index + 1 and not one.prompt and dict(one.slots).get("subject") != asker.first_name:
            return one if Stream(talk.config.key, "invited", one.statement_id).chance(INVITED) else None
    return None
