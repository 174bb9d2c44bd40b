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
    """A limit of days is declared that a few seconds are enough to fill."""
    most = backend.described.limits.max_day_bytes
    if not most:
        return "no limit of a day's bytes is declared"
    return None if most <= _FILLED_DAY_BYTES else f"max_day_bytes is {most}: a day above it takes too long to send"


def exhausted(
    ns: NamespaceFixture, sent: list[pb.IngestRequest] | pb.SearchRequest, what: str, name: str, limit: int
) -> None:
    """It is refused, and the message names field and limit."""
    refused = ns.refuse(sent, "RESOURCE_EXHAUSTED", what)
    message = " ".join((refused.message, *refused.fields, *refused.details))
    if not names_field(message, name) or limit not in sizes_in(message):
        raise BrokenError(f"{what}: no message, QuotaFailure or ErrorInfo names {name} and {limit}: {refused}")


def _padded(text: str, size: int) -> str:
    """The text, filled up to ``size`` bytes of UTF-8 with one long run of a two-byte character."""
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


@check("lim.ids", "LIM-1", "LIM-2", "IDN-2", "IDN-4")
def ids(backend: BackendUnderTest) -> None:
    """An id of 128 bytes, every printable character of ASCII among them, is accepted, one byte more is not."""
    printable = "".join(chr(code) for code in range(0x21, 0x7F))

    def long(stem: str) -> str:
        return f"{stem}{printable}-{backend.new_id()}".ljust(ID_BYTES, "x")

    ns, fact = backend.namespace(long("n")), backend.fact()
    session = ns.session(fact.statement)
    session.session_id, session.turns[0].turn_id = long("s"), long("t")
    session.participants[1].participant_id = long("p")
    event = fixtures.event(long("e"), "It rained.")
    sound = ns.frames(session, events=[event], batch_id=long("b"))
    sound[0].header.owner.participant_id = long("o")
    sound = fixtures.sealed(sound[:-1])
    for path in ("header.namespace", "header.batch_id", "session.session_id", "session.participants.participant_id",
                 "session.turns.turn_id", "event.event_id"):  # fmt: skip
        name = path.rpartition(".")[2]
        frames = edited_day(sound, path, lambda value: f"{value}x")
        exhausted(ns, frames, f"a {name} of {ID_BYTES + 1} bytes", name, ID_BYTES)
    ns.commit(sound)
    ns.expect_visible(fact)
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
    ns.commit(ns.frames(*sessions, ns.session(f"{common}.")))
    question = ns.question(fact.question)
    question.max_items = backend.described.limits.max_items
    returned = ns.expect_ok(partial(backend.search, question), "a question that finds six megabytes")
    if returned.ByteSize() > RESPONSE_BYTES:
        raise BrokenError(f"the response has {returned.ByteSize()} bytes, above {RESPONSE_BYTES}")
    ns.items(fact, verbatim=False)
    if requirements.ranking(backend) is None and (most := len(returned.items)):
        question.max_items = most
        bounded = ns.expect_ok(partial(backend.search, question), f"max_items {most}").items
        mean, expected = (sum(i.score for i in items) / max(len(items), 1) for items in (returned.items, bounded))
        if mean < expected - abs(expected) * 1e-4:
            raise BrokenError(
                f"the mean score of the {most} items that are returned is {mean:g}, with max_items {most} it is "
                f"{expected:g}: a response is filled in order and ends at the first item that does not fit (LIM-5)"
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
