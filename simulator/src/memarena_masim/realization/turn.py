"""Writes one turn of a talk: it answers the turn before, continues the scene or states a fact, and hands over."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memarena_masim.facts.catalogue import Catalogue, catalogue
from memarena_masim.phrases.grammar import Rule, Scope, Sequence_, Voice, phrase, sentences_of, tidy, wordings_of
from memarena_masim.phrases.references import Heard
from memarena_masim.phrases.scenes import Sentence
from memarena_masim.plan.frames import kind_of, more_rule, opinion_rule
from memarena_masim.plan.model import Invite, Kind, Statement
from memarena_masim.realization.talk import SceneTelling, Talk

TIE_SHOWS = 0.4
"""Share of the openings that show the relation between the speakers."""
PAUSES = 0.3
"""Factor on a speaker's share of fillers: the chance that a turn begins with a pause."""
_ASKS_FOR_MORE = 0.6
"""Chance that a speaker who asks as much as most encourages the teller of a fact."""
_TIES = ("friends", "not_friends")
_DRAWS = 8
"""Maximum draws of a line that was said before, or that refers to what was not said."""
_LEAD_IN = re.compile(r"^(?:so|well|and|oh|oh, and),? ", re.IGNORECASE)
"""First words of a statement that are dropped after a link, which leads to it already."""
_SENTENCE_START = re.compile(r"(^\"?|[.?!] \"?)([a-z])")
_OFFER = re.compile(r"(?:Shall I|(?:Do you want|Would you like) (?:me to|an?)) (?![^?]* or )[^?]*\?$")
"""An assistant's offer at the end of its turn (``Shall I …?``), without a choice (``or``): the next turn accepts it."""
_LED_UP = re.compile(
    r"^(?:have I told you|did I tell you|do you remember|don't laugh|you won't believe it|I don't know whether)",
    re.IGNORECASE,
)
"""Beginnings of statements that lead up to their fact themselves, and get no link."""


@dataclass(frozen=True, slots=True)
class Part:
    """A sentence of a turn with its slots filled; the flags are those of ``Sentence``."""

    text: str
    optional: bool
    question: bool


class Turn:
    """Collects the sentences of one turn."""

    def __init__(self, talk: Talk, scene: SceneTelling | None, speaker: int, listener: int) -> None:
        self._talk, self._scene, self.speaker, self.listener = talk, scene, speaker, listener
        plan = talk.plan
        self.who = plan.speakers[speaker]
        self._teller = scene is not None and speaker == (0 if plan.kind.with_assistant else scene.thread.narrator)
        self._slots = {
            "you": plan.speakers[listener].first_name,
            "weekday": plan.weekday,
            "daypart": plan.daypart,
            "weather": plan.weather,
            "place": plan.place_name,
            "other": plan.looks_back[0],
            "lastday": plan.looks_back[1],
            "owner": plan.speakers[0].first_name,
            "thing": scene.thing(self._teller) if scene is not None else "",
            **self._matter(),
        }
        self._sentences: list[str] = []
        self._words = 0
        self._invited = talk.invited
        """The statement for which the turn before asked; None if it asked for none."""
        self._marked = False
        """Whether a line was said that leads to the scene's sentences."""

    @property
    def _told(self) -> SceneTelling:
        """Return the scene of the turn, which must have one."""
        assert self._scene is not None
        return self._scene

    @property
    def text(self) -> str:
        """Return the text of the turn."""
        return " ".join(self._sentences)

    # ------------------------------------------------------------ parts

    def say(self, text: str) -> None:
        """Add a sentence."""
        self._sentences.append(finish(text))
        self._words += text.count(" ") + 1

    def frame(self, rule: str, **slots: str) -> None:
        """Say a line of the frame bank."""
        self.say(self._framed(rule, **slots))

    def _framed(self, rule: str, **slots: str) -> str:
        """Draw a line of the frame bank, if possible one that was not said in this talk."""
        return self._unsaid(self._talk.library.frame.rules[rule], slots)

    def _unsaid(self, rule: Rule, slots: Mapping[str, str], before: str = "") -> str:
        """Draw a line of a rule, if possible one that was not said in this talk, nor begins as ``before`` does."""
        talk = self._talk
        for _ in range(_DRAWS):
            line = rule.draw(talk.stream)
            text = self._phrase(line, {**self._slots, **slots})
            new = id(line) not in talk.drawn and talk.said.isdisjoint(sentences_of(text))
            if new and _openings(text).isdisjoint(_openings(before)):
                break
        talk.drawn.add(id(line))
        talk.said.update(sentences_of(text))
        return text

    def ask(self, shifts: bool, before: SceneTelling | None) -> None:
        """Ask about the scene. ``shifts``: after another subject, if ``before`` is given the speaker's own story."""
        first = not self._talk.turns
        if self.who.assistant and not self._told.thread.first_beat:
            self.frame("pa.ask.first" if first else "pa.ask")  # a scene's own questions are those of a person with eyes
            return
        if shifts and self.who.assistant:
            self.frame("pa.shift.ask")
        elif shifts:
            if before is not None:
                self.frame("enough", matter=before.thing(teller=True))
            self.frame("shift.ask")
        self.line("again" if self._told.thread.first_beat else "ask")

    def also(self) -> None:
        """Say a line of a third person, each at most once in a talk."""
        talk = self._talk
        for words in talk.stream.shuffled(self._told.scene.lines["also"]):
            text = self._of_scene(words)
            if talk.said.isdisjoint(sentences_of(text)):
                talk.said.update(sentences_of(text))
                self.say(text)
                return
        self.frame("also.more")

    def line(self, name: str) -> None:
        """Say one of the scene's single lines."""
        text = self._of_scene(self._talk.stream.pick(self._told.scene.lines[name]))
        if self.who.assistant and "?" in text:  # what a friend adds to a question speaks of the friend
            text = f"{text.split('?')[0]}?"
        self.say(text)

    def _of_scene(self, words: Sequence_, again: int = 0) -> str:
        """Return a line of the scene, in other words for people who met it before; ``again`` selects further ones."""
        slots = {"you": self._slots["you"], **self._told.slots(self._teller)}
        voice = Voice(self.who.leaning, self._told.thread.met + again)
        return phrase(words, Scope(self._talk.stream, voice, slots))

    def _phrase(self, words: Sequence_, slots: Mapping[str, str]) -> str:
        return phrase(words, Scope(self._talk.stream, Voice(self.who.leaning), slots))

    def _matter(self) -> dict[str, str]:
        """Return the slot for the scene's thing as the speaker names it; empty unless speaker or listener told it."""
        telling = self._talk.telling
        narrator = -1 if telling is None else 0 if self._talk.plan.kind.with_assistant else telling.thread.narrator
        if telling is None or narrator not in (self.speaker, self.listener):
            return {}
        return {"matter": telling.thing(teller=narrator == self.speaker)}

    # ------------------------------------------------------------ course

    def begin(self, index: int, before: SceneTelling | None) -> None:
        """Greet, answer the greeting, or react to the last turn."""
        plan = self._talk.plan
        if index == 0:
            self._greet()
            return
        if index == 1 and not plan.kind.with_assistant:
            self.frame("reply" if plan.place_id is not None else "reply.remote")
            if plan.event is not None:
                rule = "ours.reply" if plan.event.ours else "event.reply"
                self.frame(rule, k=_taken_up(plan.event.clauses[self.speaker]))
        if self._talk.stated is not None:
            self._react_to(self._talk.stated)
        elif self._talk.turns[-1].speaker != self.speaker and self._teller:
            self._accept()
        if before is not None:
            self._answer_last(before)

    def _accept(self) -> None:
        """Answer an assistant's offer."""
        last = self._talk.turns[-1]
        if self._talk.plan.speakers[last.speaker].assistant and _OFFER.search(last.text):
            self.frame("pa.accept")
            self._marked = True

    def _greet(self) -> None:
        plan, stream = self._talk.plan, self._talk.stream
        if self.who.assistant:
            names = {Kind.NARRATION: "narrate", Kind.REFLECTION: "reflect", Kind.PROBE: "probe"}
            self.frame(f"pa.{names[plan.kind]}")
            return
        self.frame("open.encounter" if plan.kind is Kind.ENCOUNTER else f"open.{plan.modality}")
        if plan.names_place:
            self.frame("open.place")
        if plan.relation and stream.chance(TIE_SHOWS):
            self.frame(f"open.{plan.relation}")
        if plan.event is not None:
            rule = "ours" if plan.event.ours else "event"
            self.frame(rule, e=plan.event.clauses[self.speaker].replace("*", ""))

    def _answer_last(self, before: SceneTelling) -> None:
        """At a change of subject, answer the last beat of the earlier scene, if its teller spoke last."""
        plan = self._talk.plan
        people = len(plan.speakers)
        narrator = 0 if plan.kind.with_assistant else before.thread.narrator
        spoken = [turn for turn in self._talk.turns[-before.thread.turns :] if turn.speaker == narrator]
        if self._talk.turns[-1].speaker != narrator or (self.speaker - narrator) % people != 1:
            return
        beat = before.thread.first_beat + len(spoken) - 1
        now, self._scene, teller, self._teller = self._scene, before, self._teller, False
        for part in self.answer(beat):
            if not part.optional and not part.question:
                self.say(part.text)
        self._scene, self._teller = now, teller

    def parts(self, sentences: Sequence[Sentence]) -> tuple[Part, ...]:
        """Fill the slots of sentences."""
        return tuple(
            Part(self._of_scene(sentence.words), sentence.optional, sentence.question) for sentence in sentences
        )

    def answer(self, beat: int) -> tuple[Part, ...]:
        """Return the answer to a beat, without sentences that refer to words the teller did not say in this talk."""
        scene, references = self._told, self._talk.library.references
        beat_lines = scene.scene.beats[beat]
        heard = Heard(f"{self._talk.heard} {scene.scene.thing}", (*scene.values.values(), scene.kin.split()[-1]))
        parts = []
        for sentence in beat_lines.assistant if self.who.assistant else beat_lines.friend:
            for again in range(_DRAWS):
                text = self._of_scene(sentence.words, again)
                if not references.unsaid(text, scene.scene.key, beat, heard):
                    parts.append(Part(text, sentence.optional, sentence.question))
                    break
        if all(part.question for part in parts):
            plain = self._framed("pa.answer.plain" if self.who.assistant else "answer.plain")
            parts.insert(0, Part(plain, optional=False, question=False))
        return tuple(parts)

    def body(self, sentences: Sequence[Part], question: bool, brief: bool = False) -> None:
        """Say the sentences of a beat; optional ones as the turn's length allows, or if ``brief`` none."""
        talk = self._talk
        if sentences and not self._marked and not self.who.assistant and talk.stream.chance(PAUSES * self.who.fillers):
            self.frame("pause" if self._teller else "pause.answer")
        aim = 0.0 if brief else self._aim()
        texts = [sentence.text for sentence in sentences]
        candidates = [n for n, sentence in enumerate(sentences) if question or not sentence.question]
        chosen = {n for n in candidates if not sentences[n].optional} or set(candidates[:1])
        words = self._words + sum(texts[n].count(" ") + 1 for n in chosen)
        for n in talk.stream.shuffled([n for n in candidates if n not in chosen]):
            length = texts[n].count(" ") + 1
            if words + length / 2 <= aim:
                chosen.add(n)
                words += length
        for n in sorted(chosen):
            self.say(texts[n])

    def _aim(self) -> float:
        """Draw the aimed number of words. The pace is cubed, since it only adds or omits optional sentences."""
        stream = self._talk.stream
        return self._talk.plan.words_per_turn * self.who.pace**3 * math.exp(0.15 * stream.bell() - 0.01)

    def end(self, index: int, last: bool) -> None:
        """Say goodbye in the last turns, by position and role of the speaker."""
        plan = self._talk.plan
        people, left = len(plan.speakers), plan.turn_count - 1 - index
        if plan.kind.with_assistant:
            if last:
                self.frame("pa.close" if self.who.assistant else "pa.user.close")
        elif last:
            self.leave(replies=not self._teller)
        elif self._teller and left < people and (self.speaker + left) % people != self.speaker:
            self.leave(replies=False)

    def leave(self, replies: bool) -> None:
        """Say goodbye, or reply to a goodbye; with a word on the scene if speaker or listener told it."""
        telling = self._talk.telling
        if telling is None or "matter" not in self._slots:
            role = "other"
        else:
            role = "teller" if telling.thread.narrator == self.speaker else "listener"
        self.frame(f"close.reply.{role}" if replies else f"close.{role}")

    def invite(self, statement: Statement) -> None:
        """Ask for the statement of the next turn: openly, unless its thing is known to the speaker."""
        if statement.prompt:
            self.say(self._fact(statement.prompt, statement))
            return
        first = len(self._talk.turns) == 0
        if self.who.assistant:
            self.frame("pa.invited.first" if first else "pa.invited")
            return
        if statement.invite is not Invite.THING:
            if statement.frame_parts.person == "own":
                self.frame("invited.open.first" if first else "invited.open")
            else:
                self.frame("invited.others.first" if first else "invited.others")
            return
        self.frame("invited", q=self._fact(f"invite.{statement.frame_parts.attribute}", statement))

    # ------------------------------------------------------------ facts

    def news(self, statement: Statement, lead: str = "link") -> None:
        """State a fact with the lines around it: as an answer, or unprompted, after a line of the rule ``lead``."""
        text = self._fact(statement.frame, statement)
        leads_up = _LED_UP.match(text) is not None
        occasion = "" if leads_up else self._occasion(statement)
        opening = occasion or text
        if self._invited is not statement and not leads_up:
            own_link = lead if statement.is_new else "link.again"
            link = self._framed("link.told" if statement.frame_parts.person == "told" else own_link)
            opening = f"{link.rstrip(',:')}: {occasion}" if occasion else f"{link} {_LEAD_IN.sub('', text)}"
        self.say(opening)
        if occasion:
            self.say(text)
        if not statement.prompt and (statement.more or lead == "link"):
            self._more(statement, statement.more)
        if statement.level:
            self.say(self._fact(f"level.{statement.level}", statement))

    def _occasion(self, statement: Statement) -> str:
        """Return what made the speaker think of a new fact; empty to an assistant, and if the pack has no lines."""
        listed = catalogue(self._talk.library.pack)
        rule = listed.bank.rules.get(f"why.{_kind_of(statement, listed)}")
        fits = statement.is_new and not self._talk.plan.kind.with_assistant
        return self._unsaid(rule, dict(statement.slots)) if rule is not None and fits else ""

    def ask_for_more(self, statement: Statement) -> None:
        """Encourage the teller of a fact who has more to say, as often as the speaker asks questions."""
        if statement.later and not statement.level and self._talk.stream.chance(_ASKS_FOR_MORE * self.who.asking):
            self.frame("ask.more")

    def say_more(self, statement: Statement) -> None:
        """Say more about the speaker's fact, after it was taken up."""
        if statement.later:
            self._more(statement, statement.later)
        else:
            self.frame("no.more")

    def _more(self, statement: Statement, numbers: Sequence[int]) -> None:
        """Say lines about a fact; if there are none, a comment on a fact of the speaker's own."""
        listed, slots = catalogue(self._talk.library.pack), dict(statement.slots)
        lines = listed.bank.rules[more_rule(statement, listed)].alternatives
        for number in numbers:
            self.say(self._phrase(lines[number], {**self._slots, **slots}))
        comment = f"comment.{kind_of(statement, listed)}"
        if not numbers and comment in self._talk.library.frame.rules and statement.frame.endswith(".own"):
            self.frame(comment, **slots)

    def _react_to(self, statement: Statement) -> None:
        """React to a fact without its value, and to the wish that went with it."""
        listed = catalogue(self._talk.library.pack)
        form, attribute, person = statement.frame_parts
        slots = dict(statement.slots)
        rule = opinion_rule(statement, listed)
        kind = _kind_of(statement, listed)
        of_frame = attribute not in listed.topics
        bank = self._talk.library.frame if of_frame else listed.bank
        opinion = ""
        if statement.opinion is not None and rule is not None:
            opinion = tidy(wordings_of(listed.bank.rules[rule])[statement.opinion])
        if self.who.assistant and person == "told":
            self.frame("pa.react.told", **slots)
        elif self.who.assistant:
            self.say(self._unsaid(bank.rules[f"pa.react.{kind}" if of_frame else f"noted.{kind}"], slots))
        elif form == "change":
            self.frame("react.change", **slots)
        else:
            heard = f"react.{kind}" if of_frame else f"heard.{kind}.{person}"
            self.say(self._unsaid(bank.rules[heard], slots, before=opinion))
        if opinion:
            self.say(opinion)
        if statement.level and statement.level != "public":
            self.frame("pa.react.level" if self.who.assistant else "react.level", **slots)

    def _fact(self, rule: str, statement: Statement) -> str:
        slots = {**self._slots, **dict(statement.slots)}
        line = catalogue(self._talk.library.pack).bank.rules[rule].draw(self._talk.stream)
        return self._phrase(line, slots)


def _kind_of(statement: Statement, listed: Catalogue) -> str:
    """Return the kind of a fact, for rules that do not tell friends from people who are not friends."""
    return "tie" if statement.frame_parts.attribute in _TIES else kind_of(statement, listed)


def _openings(text: str) -> set[str]:
    """Return the first two words of each sentence of a text."""
    return {" ".join(sentence.split()[:2]).lower() for sentence in sentences_of(text)}


def _taken_up(clause: str) -> str:
    """Return the words between asterisks in an event's clause, which the answer takes up."""
    return clause.split("*")[1]


def finish(text: str) -> str:
    """Return ``text`` with a capital at the start of each sentence, and a full stop if it has no final mark."""
    text = text.rstrip(",;: ")
    if text[-1] not in ".?!" and not text.endswith(('."', '?"', '!"')):
        text += "."
    return _SENTENCE_START.sub(lambda match: match.group(1) + match.group(2).upper(), text)
