"""Questions about how statements hang together: conflicts, references across sessions, who said it when and where."""

from __future__ import annotations

from datetime import timedelta

from memarena.dataset.model import Family
from memarena.dataset.values import DateValue, NameValue, PlaceValue, SetValue

from masim.facts.values import date_words
from masim.families.book import Book, Draft, typed
from masim.families.details import plain_detail
from masim.plan.state import Role, StatedFact
from masim.streams import Stream

_CONFLICTS = (
    "I was told two different things about {about}. What were the two versions?",
    "Accounts of {about} do not agree. What did each of the two people tell me?",
    "There is a contradiction in what I heard about {about}. Which two answers did I get?",
)


def conflict(book: Book, ego: str, stated: StatedFact, stream: Stream) -> Draft | None:
    """D4: both versions of a detail that two people tell differently."""
    if stated.role is not Role.VERSION or stated.speaker == ego:
        return None
    fact = stated.fact
    evidence = tuple(book.statements(ego, fact.fact_id))
    first = next((one for one in evidence if one.role is not Role.VERSION and one.speaker != ego), None)
    if first is None or first.speaker == stated.speaker:
        return None
    truth = {
        "original_detail": fact.value.text,
        "changed_detail": stated.value.text,
        "source_agent": first.speaker,
        "conflicting_agent": stated.speaker,
        "original_session": first.session_id,
        "conflicting_session": stated.session_id,
        "values": typed(fact.value.value),
        "changed_values": typed(stated.value.value),
    }
    query = stream.pick(_CONFLICTS).format(about=book.about(ego, fact, ego))
    draft = Draft(Family.CONFLICT, ego, query, truth, evidence, fact.fact_id, asker=ego)
    draft.wanted = book.wanted("conflict", ego, fact, ego)
    draft.uses, draft.last_day = (fact.fact_id,), evidence[-1].day
    span = evidence[-1].day - evidence[0].day
    draft.difficulty = "easy" if span <= 1 else "medium" if span <= 4 else "hard"
    draft.extra["interference"] = book.interference(ego, fact)
    return draft


def anaphora(book: Book, ego: str, stated: StatedFact, stream: Stream) -> Draft | None:
    """D4: what a later word refers to that does not name it."""
    if stated.role is not Role.FATE:
        return None
    fact = stated.fact
    evidence = tuple(book.statements(ego, fact.fact_id))
    first = next((one for one in evidence if one.role is Role.TELL), None)
    if first is None:
        return None
    if fact.subject == ego:
        query = f'I said of a thing from {fact.item}: "I {fact.fate}". Which thing did I mean?'
    else:
        query = f'{book.names[fact.subject]} said of a thing from {fact.item}: "I {fact.fate}". Which thing was meant?'
    truth = {
        "referent": fact.value.text,
        "antecedent_turn": first.turn_id,
        "antecedent_session": first.session_id,
        "reference_session": stated.session_id,
        "values": typed(fact.value.value),
    }
    draft = Draft(Family.ANAPHORA, ego, query, truth, evidence, fact.fact_id, asker=ego)
    draft.wanted = book.wanted("find", ego, fact, ego, did=fact.fate)
    draft.uses, draft.last_day = (fact.fact_id,), evidence[-1].day
    span = evidence[-1].day - first.day
    draft.difficulty = "easy" if span <= 1 else "medium" if span <= 4 else "hard"
    draft.extra["interference"] = book.interference(ego, fact)
    return draft


def metadata(book: Book, ego: str, stated: StatedFact, stream: Stream) -> Draft | None:
    """D2: speaker, date, place or company of a statement; every right answer is in the gold."""
    if not plain_detail(book, ego, stated):
        return None
    attribute = stream.pick(("speaker", "session", "session", "conversation location", "participants"))
    evidence = tuple(book.statements(ego, stated.fact.fact_id))
    draft = {
        "speaker": _speaker,
        "session": _date,
        "conversation location": _place,
        "participants": _company,
    }[attribute](book, ego, evidence)
    if draft is None:
        return None
    query, value, values = draft
    fact = stated.fact
    truth = {
        "entity": fact.about,
        "attribute": attribute,
        "value": value,
        "values": values,
        "source_session": evidence[0].session_id,
        "source_turn": evidence[0].turn_id,
    }
    found = Draft(Family.METADATA, ego, query, truth, evidence, fact.fact_id, asker=ego)
    found.uses, found.last_day = (fact.fact_id,), evidence[-1].day
    teller = "" if evidence[0].speaker == ego else book.names[evidence[0].speaker]
    kind = attribute.removeprefix("conversation ") + ("" if attribute == "speaker" else ".told" if teller else ".own")
    found.wanted = book.wanted(kind, ego, fact, ego, teller=teller)
    found.difficulty = "easy" if len(evidence) == 1 else "medium" if len(evidence) == 2 else "hard"
    found.extra["interference"] = book.interference(ego, fact)
    return found


_Answer = tuple[str, object, list[dict[str, object]]]


def _speaker(book: Book, ego: str, evidence: tuple[StatedFact, ...]) -> _Answer | None:
    fact = evidence[0].fact
    speakers = sorted({one.speaker for one in evidence})
    if ego in speakers or fact.subject in speakers:
        return None
    names = [NameValue(name=book.names[speaker]) for speaker in speakers]
    values = typed(names[0]) if len(names) == 1 else typed(SetValue(members=tuple(names)))
    shown = names[0].name if len(names) == 1 else [name.name for name in names]
    return f"From whom did I hear {book.about(ego, fact, ego)}?", shown, values


def _date(book: Book, ego: str, evidence: tuple[StatedFact, ...]) -> _Answer | None:
    if len(evidence) != 1:
        return None
    one, fact = evidence[0], evidence[0].fact
    moment = book.config.calendar_epoch + timedelta(days=one.day)
    teller = "did I mention" if one.speaker == ego else f"did {book.names[one.speaker]} tell me"
    values = typed(DateValue(date=moment.isoformat()))
    return f"On which date {teller} {book.about(ego, fact, ego)}?", f"{date_words(moment)}, {moment.year}", values


def _place(book: Book, ego: str, evidence: tuple[StatedFact, ...]) -> _Answer | None:
    one = evidence[0]
    if len(evidence) != 1 or one.place_id is None or len(one.people) < 2:
        return None
    place = book.world.places[one.place_id]
    if place.privacy == "private":
        return None
    teller = "I mentioned" if one.speaker == ego else f"{book.names[one.speaker]} told me"
    query = f"Where were we when {teller} {book.about(ego, one.fact, ego)}?"
    return query, place.name, typed(PlaceValue(name=place.name))


def _company(book: Book, ego: str, evidence: tuple[StatedFact, ...]) -> _Answer | None:
    one = evidence[0]
    others = [person for person in one.people if person not in (ego, one.speaker)]
    if len(evidence) != 1 or not others or one.fact.subject in others:
        return None
    teller = "I mentioned" if one.speaker == ego else f"{book.names[one.speaker]} told me"
    who = "Who was there" if one.speaker == ego else "Who else was there"
    names = [NameValue(name=book.names[other]) for other in others]
    values = typed(names[0]) if len(names) == 1 else typed(SetValue(members=tuple(names)))
    shown: object = names[0].name if len(names) == 1 else [name.name for name in names]
    return f"{who} when {teller} {book.about(ego, one.fact, ego)}?", shown, values
