"""ING: all of a day is found by the next call, whoever said it and however it came."""

from __future__ import annotations

from memarena.conformance import fixtures, requirements
from memarena.conformance.backend_under_test import BackendUnderTest
from memarena.conformance.check import check
from memarena.conformance.errors import BrokenError
from memarena.conformance.expectations import quoted, shows
from memarena.conformance.fixtures import Fact

_READY_DAYS = 5
_MODALITIES = ("face_to_face", "voice_message", "text_message", "")
_CATEGORIES = ("global", "community", "dyadic", "private", "")


@check("ing.ready", "ING-7", title="what was ingested is found by the very next call")
def ready(backend: BackendUnderTest) -> None:
    ns = backend.namespace()
    for _ in range(_READY_DAYS):
        first, last = backend.fact(), backend.fact()
        # Where facts are extracted, a second one may take the place of the first.
        morning = first.statement if backend.keeps_words else "Good morning."
        ns.commit(ns.frames(ns.session(morning), ns.session("Good day."), ns.session(last.statement)))
        # The last session first: it is the one that is still missing where a day is worked on after the call.
        if not shows(ns.search(last.question).items, last, verbatim=backend.keeps_words):
            raise BrokenError(
                f"day {ns.last_day} was answered with OK, but the next Search does not find {quoted(last)} of the last "
                "of its three sessions"
            )
        if backend.keeps_words and not shows(ns.search(first.question).items, first, verbatim=True):
            raise BrokenError(
                f"day {ns.last_day} was answered with OK, but {quoted(first)} of the first of its three sessions is "
                "not found"
            )


@check(
    "ing.everybody",
    "ING-7",
    "TXT-2",
    title="what was said is found, whoever said it, and however and where people talked",
    applies=requirements.words,
)
def everybody(backend: BackendUnderTest) -> None:
    ns = backend.namespace()
    facts = {who: backend.fact() for who in ("the owner", "another person", "an assistant")}
    talk = ns.session("Good morning.", *(fact.statement for fact in facts.values()), "Good night.")
    talk.participants.append(fixtures.AIDE)
    for place, speaker in enumerate((fixtures.OWNER, fixtures.FRIEND, fixtures.AIDE), start=1):
        talk.turns[place].speaker_id = speaker.participant_id
    told = {f"by {who}": fact for who, fact in facts.items()}
    sessions = [talk]
    for number, modality in enumerate(_MODALITIES):
        fact = told[f"in a session of modality {modality!r}"] = backend.fact()
        session = ns.session(fact.statement)
        session.modality = modality
        # The owner may only listen.
        session.turns[0].speaker_id = (fixtures.OWNER, fixtures.FRIEND)[number % 2].participant_id
        session.place, session.group = ("Harbour", "") if number % 2 else ("", "Rowing club")
        sessions.append(session)
    ns.commit(ns.frames(*sessions))
    lost = [how for how, fact in told.items() if not shows(ns.search(fact.question).items, fact, verbatim=True)]
    if lost:
        raise BrokenError(
            f"of {len(told)} things said on day {ns.last_day}, {len(lost)} are not found: what was said "
            f"{', '.join(lost)}"
        )


@check(
    "ing.events",
    "ING-7",
    "TXT-2",
    title="a memory that finds one event finds every event, of any category, beside sessions or without",
    applies=requirements.recall,
)
def events(backend: BackendUnderTest) -> None:
    ns, said = backend.namespace(), backend.fact()
    told: dict[str, Fact] = {}
    for sessions in ([ns.session(said.statement)], []):
        day, happened = ns.last_day + 1, []
        for category in _CATEGORIES if sessions else _CATEGORIES[-2:]:
            word = backend.words.next()
            event = fixtures.event(backend.new_id(), f"A storm named {word} passed over the harbour.", day)
            event.category = category
            happened.append(event)
            beside = "beside a session" if sessions else "without sessions"
            told[f"event {len(happened)} of day {day}, {beside}, category {category!r}"] = Fact(
                event.text, f"{word}?", word
            )
        ns.commit(ns.frames(*sessions, events=happened))
    lost = [how for how, fact in told.items() if not shows(ns.search(fact.question).items, fact, verbatim=True)]
    # Not to keep events at all is for src.events to tell.
    if 0 < len(lost) < len(told):
        raise BrokenError(f"of {len(told)} events {len(lost)} are not found, the others are: {'; '.join(lost)}")
