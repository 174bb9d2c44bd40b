"""LIM: at a limit everything works, above it the call is refused by name, and a response keeps its own."""

from __future__ import annotations

from functools import partial

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance import fixtures, requirements
from memarena.conformance.backend_under_test import BackendUnderTest, NamespaceFixture
from memarena.conformance.check import check
from memarena.conformance.contract_limits import (
    FRAME_BYTES,
    ID_BYTES,
    QUERY_TEXT_BYTES,
    RESPONSE_BYTES,
    TURN_TEXT_BYTES,
)
from memarena.conformance.errors import BrokenError
from memarena.conformance.fixtures import Fact, edited, edited_day
from memarena.conformance.spelled_limits import names_field, sizes_in

_BIG_SESSIONS, _BIG_TURNS, _BIG_TURN_BYTES = 6, 4, 250_000
"""Six megabytes of text: more than a response may hold."""
_BEST_REPEATS = 8
_FILLED_DAY_BYTES = 64 << 20
_TURN_ENVELOPE_BYTES = 256


def _small_days(backend: BackendUnderTest) -> str | None:
    """Return why no check can fill a day; None if a limit is declared that a few seconds are enough to fill."""
    most = backend.described.limits.max_day_bytes
    if not most:
        return "no limit of a day's bytes is declared"
    return None if most <= _FILLED_DAY_BYTES else f"max_day_bytes is {most}: a day above it takes too long to send"


def exhausted(
    ns: NamespaceFixture, sent: list[pb.IngestRequest] | pb.SearchRequest, what: str, name: str, limit: int
) -> None:
    """Raise BrokenError unless ``sent`` is refused by a message that names field and limit."""
    refused = ns.refuse(sent, "RESOURCE_EXHAUSTED", what)
    message = " ".join((refused.message, *refused.fields, *refused.details))
    if not names_field(message, name) or limit not in sizes_in(message):
        raise BrokenError(f"{what}: no message, QuotaFailure or ErrorInfo names {name} and {limit}: {refused}")


def _padded(text: str, size: int) -> str:
    """Return the text, filled up to ``size`` bytes of UTF-8 with one long run of a two-byte character."""
    missing = size - len(text.encode())
    return text + "." * (missing % 2) + "é" * (missing // 2)


@check("lim.turn-text", "LIM-1", "LIM-2", "LIM-3")
def turn_text(backend: BackendUnderTest) -> None:
    """The text of a turn or event at its limit is accepted, one byte more is not."""
    ns, fact = backend.namespace(), backend.fact()
    limit = backend.described.limits.max_turn_text_bytes or TURN_TEXT_BYTES
    whole = ns.frames(
        ns.session(_padded(f"{fact.statement} ", limit)),
        events=[fixtures.event(backend.new_id(), _padded("It rained ", limit))],
    )
    for what, path in (("a turn", "session.turns.text"), ("an event", "event.text")):
        frames = edited_day(whole, path, lambda text: f"{text}.")
        exhausted(ns, frames, f"{what} of {limit + 1} bytes", "text", limit)
    ns.commit(whole)
    after = backend.fact()
    ns.add(after)
    ns.expect_visible(after)


@check("lim.query-text", "LIM-1", "LIM-2", "LIM-3")
def query_text(backend: BackendUnderTest) -> None:
    """The text of a question at its limit is accepted, one byte more is not."""
    ns, fact = backend.filled()
    limit = backend.described.limits.max_query_text_bytes or QUERY_TEXT_BYTES
    question = ns.question(_padded(f"{fact.question} ", limit))
    ns.expect_ok(partial(backend.search, question), f"a question of {limit} bytes")
    question.text += "."
    exhausted(ns, question, f"a question of {limit + 1} bytes", "text", limit)


@check("lim.ids", "LIM-1", "LIM-2", "IDN-1", "IDN-2", "IDN-3", "IDN-4", "GEN-4")
def ids(backend: BackendUnderTest) -> None:
    """An id of 128 bytes, all printable ASCII among them, is another one by its last byte; a byte more is refused."""
    printable, number = "".join(chr(code) for code in range(0x21, 0x7F)), backend.new_id()

    def long(stem: str, last: str = "x") -> str:
        return f"{stem}{printable}-{number}".ljust(ID_BYTES - 1, "x") + last

    ns = backend.namespace(long("n"))
    for last in "xy":
        facts = [backend.fact() for _ in range(2 if backend.keeps_words else 1)]
        session = ns.session("", *(fact.statement for fact in facts))
        session.session_id = long("s", last)
        for turn, end in zip(session.turns[1:], "xy", strict=False):
            turn.turn_id = long(f"t{last}", end)
        for person, end in zip(session.participants, "xy", strict=True):
            person.participant_id = long("p", end)
        for turn in session.turns:
            turn.speaker_id = long("p")
        events = [fixtures.event(long(f"e{last}", end), "It rained.", ns.last_day + 1) for end in "xy"]
        sound = ns.frames(session, events=events, batch_id=long("b", last))
        sound[0].header.owner.participant_id = long("o")
        sound = fixtures.sealed(sound[:-1])
        for path in ("header.namespace", "header.batch_id", "session.session_id", "event.event_id",
                     "session.participants.participant_id", "session.turns.turn_id"):  # fmt: skip
            name = path.rpartition(".")[2]
            frames = edited_day(sound, path, lambda value: f"{value}x")
            exhausted(ns, frames, f"a {name} of {ID_BYTES + 1} bytes", name, ID_BYTES)
        if ns.commit(sound).replayed:
            raise BrokenError("a batch id that differs in its last byte from a committed one counts as replayed")
        ns.expect_visible(*facts)
    question = ns.question("What?")
    question.query_id = long("q")
    ns.expect_ok(partial(backend.search, question), "a query_id of 128 bytes")
    question.query_id += "x"
    exhausted(ns, question, "a query_id of 129 bytes", "query_id", ID_BYTES)


@check("lim.frame", "LIM-1", "LIM-2")
def frame(backend: BackendUnderTest) -> None:
    """A frame of 1 MiB is accepted, one byte more is not; so for any request."""
    ns = backend.namespace()
    limit = backend.described.limits.max_turn_text_bytes or TURN_TEXT_BYTES
    turns = FRAME_BYTES // limit + 1
    session = ns.session(*("x" * (FRAME_BYTES // turns - 200) for _ in range(turns)))
    whole = pb.IngestRequest(session=session)
    session.turns[-1].text += "x" * (FRAME_BYTES - whole.ByteSize())
    at_limit = ns.frames(session)
    if at_limit[1].ByteSize() != FRAME_BYTES:
        session.turns[-1].text += "x" * (FRAME_BYTES - at_limit[1].ByteSize())
        at_limit = ns.frames(session)
    above = edited_day(at_limit, "session.turns.text", lambda text: f"{text}x")
    what = f"a frame of {above[1].ByteSize()} bytes"
    ns.refuse(above, "RESOURCE_EXHAUSTED", what)
    ns.commit(at_limit)
    name = "x" * (FRAME_BYTES + 1)
    stranger = pb.Requester(kind=pb.REQUESTER_KIND_KNOWN_PERSON, participant_id="p1", display_name=name)
    question = edited(ns.question("What?"), "requester", stranger)
    ns.refuse(question, "RESOURCE_EXHAUSTED", "a question of more than 1 MiB")
    ns.search("What?")


@check("lim.response", "LIM-5", "LIM-1")
def response(backend: BackendUnderTest) -> None:
    """A response leaves out items rather than grow above 4 MiB or fail."""
    ns = backend.namespace()
    word = backend.words.next()
    limit = min(_BIG_TURN_BYTES, backend.described.limits.max_turn_text_bytes or _BIG_TURN_BYTES)
    common = backend.words.next()
    fact = Fact(f"{word} {common}: ", f"{word} {common}?", word) if backend.keeps_words else backend.fact()
    text = _padded(f"{fact.statement} ", limit)
    best = _padded(f"{fact.statement} {' '.join([fact.value] * _BEST_REPEATS)} ", limit)  # said more often
    # One turn amid them is another, and a small one that has half of the question's words comes last.
    sessions = [ns.session(*([text] * _BIG_TURNS)) for _ in range(_BIG_SESSIONS)]
    sessions[_BIG_SESSIONS // 2].turns[0].text = best
    ns.commit(ns.frames(*sessions, ns.session(small := f"{common}.")))
    question = ns.question(fact.question)
    question.max_items = backend.described.limits.max_items
    returned = ns.expect_ok(partial(backend.search, question), "a question that finds six megabytes")
    if returned.ByteSize() > RESPONSE_BYTES:
        raise BrokenError(f"the response has {returned.ByteSize()} bytes, above {RESPONSE_BYTES}")
    ns.items(fact, verbatim=False)
    if requirements.ranking(backend) is None:
        # Of turns of one text and score some are left out, and what scores lower is not.
        equal = [item.score for item in returned.items if item.text == text]
        lower = [item for item in returned.items if equal and item.text == small and item.score < min(equal)]
        full = returned.ByteSize() > RESPONSE_BYTES - 2 * limit
        if full and lower and min(equal) == max(equal) and len(equal) < _BIG_SESSIONS * _BIG_TURNS - 1:
            what = f"{len(equal)} items of {limit} bytes, and {small!r} of a lower score than those that are left out"
            raise BrokenError(f"the response holds {what}: it ends at the first item that does not fit (LIM-5)")
        question.max_items = 1
        first = ns.expect_ok(partial(backend.search, question), "max_items 1").items[:1]
        # What the backend itself puts first: the turn that says the word more often, or none that can be distinguished.
        if any(best in item.text and not any(best in other.text for other in returned.items) for item in first):
            raise BrokenError(
                f"the item that comes first with max_items 1 is not among the {len(returned.items)} that fit"
            )


@check("lim.day-bytes", "LIM-6", applies=_small_days)
def day_bytes(backend: BackendUnderTest) -> None:
    """A day of more than the declared max_day_bytes is refused."""
    ns, fact, late = backend.namespace(), backend.fact(), backend.fact()
    ns.add(fact)
    most = backend.described.limits.max_day_bytes
    size = min(_BIG_TURN_BYTES, backend.described.limits.max_turn_text_bytes or _BIG_TURN_BYTES)
    text, turns = "x" * size, FRAME_BYTES // (size + _TURN_ENVELOPE_BYTES)
    sessions = [ns.session(*([text] * turns)) for _ in range(most // (size * turns) + 1)]
    what = f"a day above max_day_bytes ({most})"
    ns.refuse(ns.frames(ns.session(late.statement), *sessions), "RESOURCE_EXHAUSTED", what)
    ns.expect_visible(fact)
    ns.expect_hidden(late, f"it was ingested on {what}")
    ns.add(late)
    ns.expect_visible(late)
