"""ANS: what Answer refuses, and that every call stands for itself, one after another and side by side."""

from __future__ import annotations

from collections.abc import Callable

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance import requirements
from memarena.conformance.backend_under_test import BackendUnderTest
from memarena.conformance.check import check
from memarena.conformance.checks.answer import completion, prompt_of
from memarena.conformance.contract_limits import QUERY_TEXT_BYTES
from memarena.conformance.errors import BrokenError
from memarena.conformance.expectations import mentions
from memarena.conformance.fixtures import Fact
from memarena.conformance.scripted_models import ReaderScript


@check("ans.refusals", "ANS-2", "ERR-5", "SRC-8", "TXT-1", "LIM-1", applies=requirements.answer)
def refusals(backend: BackendUnderTest) -> None:
    """What Search refuses Answer refuses too, and asks no reader."""
    ns, fact = backend.filled()
    limit = backend.described.limits.max_query_text_bytes or QUERY_TEXT_BYTES
    undeclared = "no_such_option"
    while undeclared in {option.key for option in backend.described.options}:
        undeclared += "_"
    faults: tuple[tuple[str, str, str | None, Callable[[pb.SearchRequest], object]], ...] = (
        ("a namespace that never was", "NOT_FOUND", None, lambda q: setattr(q, "namespace", backend.new_id())),
        (
            "an undeclared option",
            "INVALID_ARGUMENT",
            "search.options",
            lambda q: q.options.append(pb.Option(key=undeclared, value="1")),
        ),
        ("U+0000 in the question", "INVALID_ARGUMENT", None, lambda q: setattr(q, "text", "What\0?")),
        ("an asked_at that is no time", "INVALID_ARGUMENT", None, lambda q: setattr(q, "asked_at", "yesterday")),
        ("a question above the limit", "RESOURCE_EXHAUSTED", None, lambda q: setattr(q, "text", "x" * (limit + 1))),
        (
            "a known person without an id",
            "INVALID_ARGUMENT",
            "search.requester.participant_id",
            lambda q: q.requester.CopyFrom(
                pb.Requester(kind=pb.REQUESTER_KIND_KNOWN_PERSON, display_name="Omar Haddad")
            ),
        ),
    )
    for what, code, field, edit in faults:
        request = ns.answer_request(fact.question)
        edit(request.search)
        with backend.models.recording() as calls:
            ns.refuse(request, code, f"Answer: {what}", field=field)
        if any(each.path == "/chat/completions" for each in calls):
            raise BrokenError(f"Answer: for {what} the reader was asked before the call was refused")
    completion(ns.answer(ns.answer_request(fact.question)))


@check("ans.one-question", "ANS-8", "ANS-9", "SRC-7", applies=requirements.our_reader)
def one_question(backend: BackendUnderTest) -> None:
    """A prompt holds its own question alone, and neither questions nor replies are remembered."""
    ns, fact = backend.filled()
    asked, reported = (Fact(word, f"{word}?", word) for word in (backend.words.next(), backend.words.next()))
    ns.expect_visible(fact)
    ns.search(f"Was it {asked.value}?")
    earlier = ns.answer_request(f"{fact.question} Was it {asked.value}?")
    completion(ns.answer(earlier, ReaderScript(pieces=("It was ", reported.value, "."))))
    with backend.models.recording() as calls:
        completion(ns.answer(ns.answer_request(fact.question)))
    prompt = prompt_of(calls)
    for what, word in (("question", asked), ("reply", reported)):
        if word.value.lower() in prompt:
            raise BrokenError(f"the prompt holds {word.value!r}, which an earlier {what} held and the memory does not")
        if not backend.has(pb.CAPABILITY_STATEFUL_SEARCH) and mentions(ns.search(word.question).items, word):
            raise BrokenError(f"Search finds {word.value!r}, which an earlier {what} held and no day")
