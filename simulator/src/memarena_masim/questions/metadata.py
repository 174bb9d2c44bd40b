"""Builds D2 questions: who said what to whom, when, where and how; homes, workplaces, groups. Golds are complete."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from memarena_dataset.model import Family
from memarena_dataset.values import DateValue, NameValue, PlaceValue, SetValue, TermValue

from memarena_masim.facts.values import date_words
from memarena_masim.plan.state import FactKind, StatedFact
from memarena_masim.questions.book import Book, Draft, appearance_difficulty, typed
from memarena_masim.questions.details import plain_detail
from memarena_masim.rng import Stream

Rows = list[dict[str, object]]


@dataclass(frozen=True, slots=True)
class Answer:
    """A question's words and its gold: as text (a list holds members of a set), and typed."""

    query: str
    value: object
    values: Rows
    evidence: tuple[StatedFact, ...]


OF_STATEMENTS = ("speaker", "participants", "session", "context", "conversation_location")
OF_COMMUNITY = {
    "home_location": "home_location",
    "work_location": "work_location",
    "group_membership": "group_membership",
    "group_role": "group_role",
    "group_place": "group_meeting_place",
    "group_members": "group_members",
}
"""Attribute of the fact, and its name in the gold."""
ATTRIBUTES = (*OF_STATEMENTS, *OF_COMMUNITY.values())
FEW_VALUES = ("session", "context")
"""Attributes with a handful of values, about which a guess without any memory is often right."""
FEW_SHARE = 0.02
"""Share of the questions that is after each of them; more only where the others do not suffice."""
_NO_POST = "member"
"""What a person is in a group who holds no post in it."""
_MODALITIES = {
    "face_to_face": TermValue(text="face to face", aliases=("in person", "face-to-face")),
    "voice_message": TermValue(text="voice message", aliases=("voice note", "by voice")),
    "text_message": TermValue(text="text message", aliases=("in writing", "by text")),
}


def metadata(book: Book, ego: str, stated: StatedFact, stream: Stream, attribute: str) -> Draft | None:
    """Return a D2 question about ``attribute`` of a statement; None if it does not fit or has no single gold."""
    if attribute in OF_STATEMENTS:
        if not plain_detail(book, ego, stated):
            return None
        answer = _BUILDERS[attribute](book, ego, tuple(book.statements(ego, stated.fact.fact_id)))
    else:
        if stated.fact.kind is not FactKind.COMMUNITY or OF_COMMUNITY[stated.fact.attribute] != attribute:
            return None
        answer = _of_community(book, ego, stated, stream)
    return None if answer is None else _draft(book, ego, stated, attribute, answer)


def attribute_of(stated: StatedFact) -> tuple[str, ...]:
    """Return the attributes of a statement about which there are questions."""
    if stated.fact.kind is FactKind.COMMUNITY:
        return (OF_COMMUNITY[stated.fact.attribute],)
    return OF_STATEMENTS if stated.fact.kind is FactKind.DETAIL else ()


def _draft(book: Book, ego: str, stated: StatedFact, attribute: str, answer: Answer) -> Draft:
    """Return a D2 question with its answer and evidence."""
    evidence, fact = answer.evidence, stated.fact
    truth = {
        "entity": fact.about,
        "attribute": attribute,
        "value": answer.value,
        "values": answer.values,
        "source_session": evidence[0].session_id,
        "source_turn": evidence[0].turn_id,
    }
    draft = Draft(Family.METADATA, ego, answer.query, truth, evidence, fact.fact_id, asker=ego)
    draft.uses = tuple(dict.fromkeys(stated_fact.fact.fact_id for stated_fact in evidence))
    draft.last_day = evidence[-1].day
    draft.difficulty = appearance_difficulty(len(evidence))
    draft.extra["interference"] = book.interference(ego, fact)
    if attribute in OF_STATEMENTS:
        teller = "" if evidence[0].speaker == ego else book.names[evidence[0].speaker]
        kind = attribute.removeprefix("conversation_") + (
            "" if attribute == "speaker" else ".told" if teller else ".own"
        )
        draft.wanted = book.wanted(kind, ego, fact, ego, teller=teller)
    return draft


# ------------------------------------------------------------------ of a statement


def _speaker(book: Book, ego: str, evidence: tuple[StatedFact, ...]) -> Answer | None:
    fact = evidence[0].fact
    speakers = sorted({stated.speaker for stated in evidence})
    if ego in speakers or fact.subject in speakers:
        return None
    names, values = _names(book, speakers)
    return Answer(f"From whom did I hear {book.about(ego, fact, ego)}?", names, values, evidence)


def _date(book: Book, ego: str, evidence: tuple[StatedFact, ...]) -> Answer | None:
    if len(evidence) != 1:
        return None
    stated, fact = evidence[0], evidence[0].fact
    moment = book.config.calendar_epoch + timedelta(days=stated.day)
    teller = "did I mention" if stated.speaker == ego else f"did {book.names[stated.speaker]} tell me"
    values = typed(DateValue(date=moment.isoformat()))
    query = f"On which date {teller} {book.about(ego, fact, ego)}?"
    return Answer(query, f"{date_words(moment)}, {moment.year}", values, evidence)


def _location(book: Book, ego: str, evidence: tuple[StatedFact, ...]) -> Answer | None:
    stated = evidence[0]
    if len(evidence) != 1 or stated.place_id is None or len(stated.people) < 2:
        return None
    location = book.world.places[stated.place_id]
    if location.privacy == "private":
        return None
    query = f"Where were we when {_teller(book, ego, stated)} {book.about(ego, stated.fact, ego)}?"
    return Answer(query, location.name, typed(PlaceValue(name=location.name)), evidence)


def _company(book: Book, ego: str, evidence: tuple[StatedFact, ...]) -> Answer | None:
    stated = evidence[0]
    others = [person for person in stated.people if person not in (ego, stated.speaker)]
    if len(evidence) != 1 or not others or stated.fact.subject in others:
        return None
    opening = "Who was there" if stated.speaker == ego else "Who else was there"
    shown, values = _names(book, others)
    query = f"{opening} when {_teller(book, ego, stated)} {book.about(ego, stated.fact, ego)}?"
    return Answer(query, shown, values, evidence)


def _context(book: Book, ego: str, evidence: tuple[StatedFact, ...]) -> Answer | None:
    stated = evidence[0]
    if len(evidence) != 1 or len(stated.people) < 2:
        return None
    value = _MODALITIES[stated.modality]
    query = f"By what means was it that {_teller(book, ego, stated)} {book.about(ego, stated.fact, ego)}?"
    return Answer(query, value.text, typed(value), evidence)


def _teller(book: Book, ego: str, stated: StatedFact) -> str:
    return "I mentioned" if stated.speaker == ego else f"{book.names[stated.speaker]} told me"


def _names(book: Book, people: Sequence[str]) -> tuple[object, Rows]:
    names = [NameValue(name=book.names[person]) for person in people]
    if len(names) == 1:
        return names[0].name, typed(names[0])
    return [name.name for name in names], typed(SetValue(members=tuple(names)))


_BUILDERS: dict[str, Callable[[Book, str, tuple[StatedFact, ...]], Answer | None]] = {
    "speaker": _speaker,
    "participants": _company,
    "session": _date,
    "context": _context,
    "conversation_location": _location,
}


# ------------------------------------------------------------------ of the community


def _of_community(book: Book, ego: str, stated: StatedFact, stream: Stream) -> Answer | None:
    """Return the answer on a home, workplace or group of others; None if it can be guessed or is not complete."""
    fact = stated.fact
    if fact.subject == ego or ego in _members(book, fact.item):
        return None
    kind = book.catalogue.community[fact.attribute]
    name = book.names.get(fact.subject, "")
    query = kind.fill(stream.pick(kind.ask), "told", book.called.get(name, name), fact.item)
    evidence = tuple(book.statements(ego, fact.fact_id))
    if fact.attribute == "group_membership":
        return _memberships(book, ego, fact.subject, query)
    value = fact.value.value
    if fact.attribute == "group_role" and fact.value.text == _NO_POST:
        return None  # it could be guessed
    if isinstance(value, SetValue):
        return Answer(query, [member.name for member in value.members if member.type == "name"], typed(value), evidence)
    return Answer(query, fact.value.text, typed(value), evidence)


def _memberships(book: Book, ego: str, subject: str, query: str) -> Answer | None:
    """Return all clubs of a person if the ego heard of every one; else None, since a right answer would be missing."""
    clubs = [group.name for group in book.world.groups if group.kind == "club" and subject in group.members]
    evidence = tuple(_membership_statements(book, ego, subject))
    if {stated.fact.item for stated in evidence} != set(clubs):
        return None
    values = [TermValue(text=club) for club in clubs]
    if len(values) == 1:
        return Answer(query, clubs[0], typed(values[0]), evidence)
    return Answer(query, clubs, typed(SetValue(members=tuple(values))), evidence)


def _membership_statements(book: Book, ego: str, subject: str) -> Iterator[StatedFact]:
    for stated in book.by_attribute[ego, "group_membership"]:
        if stated.fact.subject == subject:
            yield stated


def _members(book: Book, name: str) -> tuple[str, ...]:
    return next((group.members for group in book.world.groups if group.name == name), ())
