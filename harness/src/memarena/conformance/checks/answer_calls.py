"""ANS: what Answer refuses, and that every call stands for itself, one after another and side by side."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance import requirements
from memarena.conformance.backend_under_test import BackendUnderTest, NamespaceFixture
from memarena.conformance.check import check
from memarena.conformance.checks.answer import completion, reader_call, told_life
from memarena.conformance.contract_limits import QUERY_TEXT_BYTES
from memarena.conformance.errors import BrokenError
from memarena.conformance.expectations import expect_refused, mentions, quoted, shows
from memarena.conformance.fixtures import Fact
from memarena.conformance.scripted_models import ReaderScript

_SIDE_BY_SIDE = 4
_ROUNDS = 3


def side_by_side(backend: BackendUnderTest) -> str | None:
    """Answers that the suite can tell apart may be asked for at the same time."""
    return requirements.our_reader(backend) or requirements.concurrent_calls(backend)


@check(
    "ans.refusals",
    "ANS-2",
    "ERR-5",
    "SRC-8",
    "TXT-1",
    "LIM-1",
    title="what Search refuses Answer refuses too, and asks no reader",
    applies=requirements.answer,
)
def refusals(backend: BackendUnderTest) -> None:
    ns, fact = told_life(backend)
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

        def call(request: pb.AnswerRequest = request) -> None:
            if (refused := ns.answer(request).refused) is not None:
                raise refused

        with backend.models.recording() as calls:
            expect_refused(call, code, f"Answer: {what}", field=field)
        if any(each.path == "/chat/completions" for each in calls):
            raise BrokenError(f"Answer: for {what} the reader was asked before the call was refused")
    completion(ns.answer(ns.answer_request(fact.question)))


@check(
    "ans.one-question",
    "ANS-8",
    "ANS-9",
    "SRC-7",
    title="a prompt holds its own question alone, and neither questions nor replies are remembered",
    applies=requirements.our_reader,
)
def one_question(backend: BackendUnderTest) -> None:
    ns, fact = told_life(backend)
    asked, said = (Fact(word, f"{word}?", word) for word in (backend.words.next(), backend.words.next()))
    ns.expect_visible(fact)
    ns.search(f"Was it {asked.value}?")
    earlier = ns.answer_request(f"{fact.question} Was it {asked.value}?")
    completion(ns.answer(earlier, ReaderScript(pieces=("It was ", said.value, "."))))
    with backend.models.recording() as calls:
        completion(ns.answer(ns.answer_request(fact.question)))
    prompt = "\n".join(text for _, text in reader_call(calls).messages()).lower()
    for what, word in (("question", asked), ("reply", said)):
        if word.value.lower() in prompt:
            raise BrokenError(f"the prompt holds {word.value!r}, which an earlier {what} held and the memory does not")
        if not backend.has(pb.CAPABILITY_STATEFUL_SEARCH) and mentions(ns.search(word.question).items, word):
            raise BrokenError(f"Search finds {word.value!r}, which an earlier {what} held and no day")


@check(
    "ans.concurrent",
    "GEN-6",
    "ANS-3",
    "IDN-1",
    title="answers at the same time, of one namespace and of several, do not mix",
    applies=side_by_side,
)
def concurrent(backend: BackendUnderTest) -> None:
    count = min(_SIDE_BY_SIDE, backend.described.limits.max_concurrent_namespaces or _SIDE_BY_SIDE)
    lives = [told_life(backend) for _ in range(count)]
    for ns, fact in lives:
        ns.expect_visible(fact)

    def asks(ns: NamespaceFixture, fact: Fact, words: list[str]) -> None:
        for word in words:
            pieces = [f"{word}{number}." for number in range(20)]
            received = ns.answer(ns.answer_request(fact.question), ReaderScript(pieces=pieces))
            reply = completion(received, "an answer beside others").text
            if reply != "".join(pieces):
                raise BrokenError(f"beside others, the reader said {''.join(pieces)[:60]!r} and Answer {reply[:60]!r}")
            items = received.events[0].retrieved.items
            if not shows(items, fact, verbatim=backend.keeps_words):
                raise BrokenError(f"beside others, Retrieved does not hold {quoted(fact)}")
            for other, foreign in lives:
                if other is not ns and mentions(items, foreign):
                    raise BrokenError(f"beside others, Retrieved holds {quoted(foreign)} of another namespace")

    with ThreadPoolExecutor(2 * count) as pool:  # each namespace twice
        said = [[backend.words.next() for _ in range(_ROUNDS)] for _ in range(2 * count)]
        asked = [pool.submit(asks, *life, words) for life, words in zip((*lives, *lives), said, strict=True)]
        for done in asked:
            done.result()
