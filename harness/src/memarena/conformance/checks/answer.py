"""ANS: an answer searches, asks the reader that is passed to it, and streams what the reader says."""

from __future__ import annotations

import threading
from itertools import product

from memarena_proto import memory_backend_pb2 as pb

from memarena.client.enums import enum_name
from memarena.conformance import requirements
from memarena.conformance.backend_under_test import BackendUnderTest
from memarena.conformance.check import check
from memarena.conformance.checks.text import dates_of_the_clock
from memarena.conformance.contract_limits import QUERY_TEXT_BYTES
from memarena.conformance.errors import BrokenError
from memarena.conformance.expectations import completion, differs, expect_refused, mentions, quoted, shows
from memarena.conformance.fixtures import Fact, edited
from memarena.conformance.scripted_models import (
    DIALECTS,
    EXTRACTOR,
    READER,
    ModelCall,
    ReaderScript,
    count_tokens,
    default_models,
)

_WINDOW_TOKENS, _REPLY_TOKENS = 1_000, 350
_FULL_LIFE_FACTS, _SMALL_FACTS = 40, 3
_FILLERS = ("and so on " * 36, "運河のそばで待っています" * 30)
"""Texts of about one length in characters, the second of three times as many bytes, and so of tokens."""
_LONG_QUESTION_BYTES = 16_000

REQUIRED = (
    "search",
    *(f"search.{name}" for name in ("namespace", "query_id", "text", "asked_at", "requester", "model_access")),
    *("reading", "reading.model", "reading.max_tokens"),
)
"""Paths of the REQUIRED fields of a request for an answer."""


def reader_call(calls: list[ModelCall]) -> ModelCall:
    """Return the call of the reader. Raises BrokenError if there is none."""
    for call in reversed(calls):
        if call.path == "/chat/completions" and call.model == READER:
            return call
    made = ", ".join(f"{call.path} for {call.model or 'no model'}" for call in calls)
    raise BrokenError(f"Answer completed without asking the reader of the call; model calls: {made or 'none'}")


def prompt_of(calls: list[ModelCall]) -> str:
    """Return the reader's messages as text in lower case."""
    return "\n".join(text for _, text in reader_call(calls).messages()).lower()


@check("ans.undeclared", "GEN-2", "ERR-4", applies=requirements.no_answer)
def undeclared(backend: BackendUnderTest) -> None:
    """Without ANSWER the RPC is UNIMPLEMENTED."""
    ns, _ = backend.filled()
    ns.refuse(ns.answer_request("What?"), "UNIMPLEMENTED", "Answer")


@check("ans.required", "ANS-5", "GEN-3", "ERR-2", applies=requirements.answer)
def required(backend: BackendUnderTest) -> None:
    """What is missing or cannot be read with is refused by its name."""
    ns, fact = backend.filled()
    faults: list[tuple[str, str | None, str]] = [(path, None, f"a request without {path}") for path in REQUIRED]
    faults += [("reading.model", EXTRACTOR, "a model that is no reader")]
    faults += [("reading.model", "another", "a model that is not offered")]
    for path, value, what in faults:
        with backend.access("Answer") as access:
            sound = ns.answer_request(fact.question)
            sound.search.model_access.CopyFrom(access)
            request = edited(sound, path, value)

            def call(request: pb.AnswerRequest = request) -> None:
                if (refused := backend.wire.answer(request).refused) is not None:
                    raise refused

            expect_refused(call, "INVALID_ARGUMENT", f"Answer: {what}", field=path)
    completion(ns.answer(ns.answer_request(fact.question)))


@check("ans.events", "ANS-1", "ANS-2", "ANS-8", "ING-7", "TXT-3", applies=requirements.answer)
def events(backend: BackendUnderTest) -> None:
    """One Retrieved with the items, the text in pieces, one Completed, of the memory as it is now."""
    (ns, earlier), fact = backend.filled(), backend.fact()
    # Asked in the same words both times, so that what was kept from the first answer shows in the second.
    question = f"{earlier.question} {fact.question}" if backend.keeps_words else fact.question
    completion(ns.answer(ns.answer_request(question)))
    ns.add(fact)
    ns.expect_visible(fact)
    with backend.models.recording() as calls:
        received = ns.answer(ns.answer_request(question))
    completion(received)
    kinds = received.kinds()
    if kinds[0] != "retrieved" or kinds[-1] != "completed" or set(kinds[1:-1]) - {"text_delta"}:
        raise BrokenError(f"expected retrieved, text_delta …, completed; got {', '.join(kinds)}")
    retrieved = received.events[0].retrieved
    if not shows(retrieved.items, fact, verbatim=backend.keeps_words):
        raise BrokenError("Retrieved lacks a fact that Search finds, ingested after the question was asked before")
    if retrieved.visible_through_day != ns.last_day:
        raise BrokenError(f"Retrieved says visible_through_day {retrieved.visible_through_day}, not {ns.last_day}")
    prompt = prompt_of(calls).replace(question.lower(), "")  # the question names the fact, too
    if fact.value.lower() not in prompt:
        raise BrokenError("the prompt does not hold the fact that was retrieved")
    if clock := sorted(date for date in dates_of_the_clock() if date in prompt):
        raise BrokenError(f"the prompt holds {clock[0]}, the real date; the question is of {ns.question('').asked_at}")


@check("ans.as-of-day", "ANS-2", "SRC-5", "SRC-6", applies=requirements.answer)
def as_of_day(backend: BackendUnderTest) -> None:
    """An answer sees the day that it is asked as of, and no later one."""
    (ns, first), second = backend.filled(), backend.fact()
    ns.add(second, day=3)
    request = ns.answer_request(f"{first.question} {second.question}" if backend.keeps_words else first.question)
    travels = backend.has(pb.CAPABILITY_TIME_TRAVEL)
    for day in (4,) if travels else (4, 0):
        request.search.as_of_day = day
        ns.refuse(request, "FAILED_PRECONDITION", f"Answer as of day {day}, the last day being 3,")
    for day in (0, 2) if travels else ():  # on day 2 nothing was committed
        request.search.as_of_day = day
        with backend.models.recording() as calls:
            received = ns.answer(request)
        completion(received, f"as_of_day {day}")
        retrieved = received.events[0].retrieved
        prompt = prompt_of(calls).replace(second.question.lower(), "")
        if mentions(retrieved.items, second) or second.value.lower() in prompt:
            where = "Retrieved" if mentions(retrieved.items, second) else "the prompt"
            raise BrokenError(f"as of day {day} {where} holds what was ingested on day 3")
        if retrieved.visible_through_day != 0:
            raise BrokenError(f"as of day {day} Retrieved says visible_through_day {retrieved.visible_through_day}")


@check("ans.retrieved-first", "ANS-2", applies=requirements.our_reader)
def retrieved_first(backend: BackendUnderTest) -> None:
    """Retrieved is sent before the reader has answered."""
    gate = threading.Event()
    _comes_while(backend, "retrieved", gate, ReaderScript(hold_reply=gate), "its reply")


@check("ans.streams", "ANS-3", applies=requirements.our_reader)
def streams(backend: BackendUnderTest) -> None:
    """A TextDelta is sent as soon as its text is there."""
    gate = threading.Event()
    script = ReaderScript(pieces=("Ye", "s, that is ", "right."), hold_rest=gate)  # neither a word nor a line ends
    _comes_while(backend, "text_delta", gate, script, "all but a first piece")


def _comes_while(
    backend: BackendUnderTest, kind: str, gate: threading.Event, script: ReaderScript, withheld: str
) -> None:
    """Expect an event while the reader withholds its reply, or the rest of it, until that event arrives."""
    ns, fact = backend.filled()
    script.hold_timeout_s = backend.patience.hold_s

    def let_go(event: pb.AnswerEvent) -> None:
        if event.WhichOneof("event") == kind:
            gate.set()

    completion(ns.answer(ns.answer_request(fact.question), script, on_event=let_go))
    if script.held_out and len(script.calls) > 1:  # what comes when cannot be decided
        raise BrokenError(
            f"the reader was asked {len(script.calls)} times for one Answer, and nothing of its first reply came"
        )
    if script.held_out:
        raise BrokenError(f"no {kind} came in the {script.hold_timeout_s:g} s in which the reader held back {withheld}")


@check("ans.unaltered", "ANS-4", applies=requirements.our_reader)
def unaltered(backend: BackendUnderTest) -> None:
    """The reader's output, its end and its token counts arrive unaltered."""
    ns, fact = backend.filled()
    scripts = {
        "white space, tags and emoji": ReaderScript(
            pieces=(" \n<think>", "hm</think>\n", '```json\n{"a": ', "1}\n```", " caf\u00e9 cafe\u0301 👩‍👧 ", "\n\n")
        ),
        "blanks between words": ReaderScript(pieces=("\n", "One.", " ", "\n\n", "Two.", "\t", "\u00a0", " ")),
        "nothing but blanks": ReaderScript(pieces=(" ", "\n")),
        "a JSON object": ReaderScript(pieces=(f'{{"answer": "{backend.words.next()}", ', '"reason": "so it was"}')),
        "several lines": ReaderScript(pieces=("One.\n", "Two.\n\ndata: [DONE]\n", "\nThree.")),
        "a reply within a code fence": ReaderScript(pieces=("```json\n", '{"answer": "so"}\n', "```")),
        "a reply in quotes": ReaderScript(pieces=('"It', ' is so."')),
        "an empty reply": ReaderScript(pieces=()),
        "a reply that was cut off": ReaderScript(finish="length", prompt_tokens=123, completion_tokens=64),
        "a reply without token counts": ReaderScript(prompt_tokens=None),
    }
    for number, dialect in enumerate(DIALECTS[1:]):
        shown = dialect.event('{"a": 1, "b": 2, "c": 3}').decode()
        scripts[f"a stream that writes {shown!r}"] = ReaderScript(pieces=("Well, ", f"{number}."), dialect=dialect)
    for what, script in scripts.items():
        completed = completion(ns.answer(ns.answer_request(fact.question), script), what)
        if completed.text != "".join(script.pieces):
            raise BrokenError(f"{what}: the reader sent {''.join(script.pieces)!r}, Completed says {completed.text!r}")
        expected = pb.FINISH_REASON_LENGTH if script.finish == "length" else pb.FINISH_REASON_STOP
        if completed.finish_reason != expected:
            reason = enum_name(pb.FinishReason.DESCRIPTOR, completed.finish_reason)
            raise BrokenError(f"{what}: the reader ended with {script.finish}, finish_reason is {reason}")
        reported = None if script.prompt_tokens is None else (script.prompt_tokens, script.completion_tokens)
        usage = completed.usage if completed.HasField("usage") else None
        if (usage and (usage.prompt_tokens, usage.completion_tokens)) != reported:
            raise BrokenError(f"{what}: the reader reported {reported or 'no'} tokens, usage is {usage or 'absent'}")


@check("ans.sampling", "ANS-5", applies=requirements.our_reader)
def sampling(backend: BackendUnderTest) -> None:
    """The reader is asked as the request says."""
    ns, fact = backend.filled()
    request = ns.answer_request(fact.question)
    for most, temperature, seed in (
        (37, 0.7, 7_001), (2_000, 0.0, 0), (1, 0.5, 2**32 + backend.seed + 1), (4_000, 1.5, 2**53 - 1),
    ):  # fmt: skip
        request.reading.max_tokens, request.reading.temperature, request.reading.seed = most, temperature, seed
        with backend.models.recording() as calls:
            completion(ns.answer(request))
        body = reader_call(calls).body
        asked = body.get("max_tokens", body.get("max_completion_tokens"))
        for name, got, expected in (
            ("max_tokens", asked, most),
            ("temperature", body.get("temperature"), temperature),
            ("seed", body.get("seed"), seed),
        ):
            if got != expected:
                raise BrokenError(f"the reader was asked with {name} {got}, the request says {expected}")
        if body.get("stop"):
            raise BrokenError(f"the reader was asked to stop at {body['stop']!r}: its output must arrive whole (ANS-4)")


@check("ans.window", "ANS-6", "MOD-5", applies=requirements.our_reader)
def window(backend: BackendUnderTest) -> None:
    """A prompt fits into the reader's window; a question alone that does not is refused."""
    ns, word = backend.namespace(), backend.words.next()
    own = [backend.words.next() for _ in range(_FULL_LIFE_FACTS)]
    # The short ones are asked for and come first: whoever counts once for each length counts too little.
    text = f"{word} {' '.join(own[:_SMALL_FACTS])}?"
    facts = [Fact(f"{word} {each} {_FILLERS[n >= _SMALL_FACTS]}", text, word) for n, each in enumerate(own)]
    if not backend.keeps_words:
        facts = [backend.fact() for _ in range(3)]
    ns.add(*facts)
    last = facts[-1]
    ns.items(last, verbatim=False)
    request = ns.answer_request(last.question, max_tokens=_REPLY_TOKENS)
    # Diagnostics aside, the longest question must be refused by name rather than cut.
    longest = edited(request, "search.text", f"{last.question} " + "why " * (_LONG_QUESTION_BYTES // 4))
    for most, counts, status in ((_WINDOW_TOKENS, True, 200), (_WINDOW_TOKENS, False, 404), (_WINDOW_TOKENS, True, 502),
                                 (0, True, 200)):  # fmt: skip
        how = f"with a window of {most}, counts_tokens {counts}, /tokenize answering {status}"
        models, script = default_models(most, counts_tokens=counts), ReaderScript(tokenize_status=status)
        with backend.models.recording() as calls:
            received = ns.answer(request, script, models)
        if status >= 500 and received.refused is not None and received.refused.code == "UNAVAILABLE":
            continue  # or it estimates (MOD-5)
        completion(received, how)
        messages = reader_call(calls).messages()
        used = sum(count_tokens(text) for _, text in messages)
        if most and used + _REPLY_TOKENS > most:
            raise BrokenError(f"{how}: the prompt has {used} tokens, max_tokens is {_REPLY_TOKENS}")
        if not any(last.value.lower() in text.lower().replace(last.question.lower(), "") for _, text in messages):
            raise BrokenError(f"{how}: the prompt holds nothing of the memory, although there is room")
        if most and status < 500:
            what = f"a question that does not fit, {how},"
            refused = ns.refuse(longest, "RESOURCE_EXHAUSTED", what, script=script, models=models)
            if "text" not in refused.message:
                raise BrokenError(f"{what}: the message does not name search.text: {refused}")


@check("ans.no-system-role", "ANS-7", applies=requirements.our_reader)
def no_system_role(backend: BackendUnderTest) -> None:
    """A model without a system role is sent no system message, and the memory is shown in every style."""
    ns, fact = backend.filled()
    ns.expect_visible(fact)
    request = ns.answer_request(fact.question)
    for style, thinking, without in product(pb.PromptStyle.values(), pb.Thinking.values(), (True, False)):
        request.reading.prompt_style, request.reading.thinking = style, thinking
        how = f"{pb.PromptStyle.Name(style)}, {pb.Thinking.Name(thinking)}, no_system_role {without}"
        with backend.models.recording() as calls:
            completion(ns.answer(request, models=default_models(no_system_role=without)), how)
        roles = [role for role, _ in reader_call(calls).messages()]
        if "user" not in roles or (without and {"system", "developer"} & {*roles}):
            raise BrokenError(f"{how}: the messages have the roles {', '.join(roles)}")
        if fact.value.lower() not in prompt_of(calls).replace(fact.question.lower(), ""):
            raise BrokenError(f"{how}: the prompt does not hold the fact that was ingested")


@check("ans.model-errors", "ANS-1", "ANS-9", "GEN-7", applies=requirements.our_reader)
def model_errors(backend: BackendUnderTest) -> None:
    """A model that fails is an error of the right code, never an answer."""
    ns, fact = backend.filled()
    before = ns.items(fact)
    for status, code in ((500, "UNAVAILABLE"), (502, "UNAVAILABLE"), (400, "INTERNAL"), (429, "INTERNAL")):
        what = f"Answer, while the gateway answers {status},"
        ns.refuse(ns.answer_request(fact.question), code, what, script=ReaderScript(status=status))
    for script, what in (
        (ReaderScript(breaks="connection"), "the model's server died amid its reply"),
        (ReaderScript(breaks="JSON"), "amid the reply an event of the stream is no JSON"),
        (ReaderScript(breaks="error"), "amid the reply the stream ends with an error of the model's server"),
        (ReaderScript(breaks="connection", once=True), "the model's server died amid its reply, and was asked again"),
    ):
        received = ns.answer(ns.answer_request(fact.question), script)
        if (ended := received.completed) is None and received.refused is not None:
            continue
        # Who asks again (MOD-7) passes one whole reply on.
        if not script.once or ended is None or completion(received, what).text != "".join(script.pieces):
            reported = "no Completed" if ended is None else f"Completed ({ended.text!r})"
            raise BrokenError(f"{what}, and Answer ended with OK and {reported}")
    completion(ns.answer(ns.answer_request(fact.question)))
    if requirements.stable_search(backend) is None and differs(before, ns.items(fact)):
        raise BrokenError("answers changed what a Search returns")
    ns.add(backend.fact())  # no failed Answer holds the namespace


@check("ans.refusals", "ANS-2", "ERR-5", "SRC-8", "TXT-1", "LIM-1", applies=requirements.answer)
def refusals(backend: BackendUnderTest) -> None:
    """What Search refuses Answer refuses too, and asks no reader."""
    ns, fact = backend.filled()
    limit = backend.described.limits.max_query_text_bytes or QUERY_TEXT_BYTES
    undeclared = "no_such_option"
    while undeclared in {option.key for option in backend.described.options}:
        undeclared += "_"
    nameless = pb.Requester(kind=pb.REQUESTER_KIND_KNOWN_PERSON, display_name="Omar Haddad")
    for what, code, field, path, value in (
        ("a namespace that never was", "NOT_FOUND", None, "namespace", backend.new_id()),
        ("an undeclared option", "INVALID_ARGUMENT", "options", "options", [pb.Option(key=undeclared, value="1")]),
        ("U+0000 in the question", "INVALID_ARGUMENT", None, "text", "What\0?"),
        ("an asked_at that is no time", "INVALID_ARGUMENT", None, "asked_at", "yesterday"),
        ("a question above the limit", "RESOURCE_EXHAUSTED", None, "text", "x" * (limit + 1)),
        ("a known person without an id", "INVALID_ARGUMENT", "requester.participant_id", "requester", nameless),
    ):
        request = edited(ns.answer_request(fact.question), f"search.{path}", value)
        with backend.models.recording() as calls:
            ns.refuse(request, code, f"Answer: {what}", field=field and f"search.{field}")
        if any(each.path == "/chat/completions" for each in calls):
            raise BrokenError(f"Answer: for {what} the reader was asked before the call was refused")
    completion(ns.answer(ns.answer_request(fact.question)))


@check("ans.one-question", "IDN-1", "ANS-8", "ANS-9", "SRC-7", applies=requirements.our_reader)
def one_question(backend: BackendUnderTest) -> None:
    """A prompt holds its own question alone, and neither questions nor replies are remembered."""
    ns, fact = backend.filled()
    questioned, replied = (Fact(word, f"{word}?", word) for word in (backend.words.next(), backend.words.next()))
    ns.expect_visible(fact)
    ns.search(f"Was it {questioned.value}?")
    earlier = ns.answer_request(f"{fact.question} Was it {questioned.value}?")
    completion(ns.answer(earlier, ReaderScript(pieces=("It was ", replied.value, "."))))
    _, foreign = backend.filled()
    question = f"{fact.question} {foreign.question}" if backend.keeps_words else fact.question
    with backend.models.recording() as calls:
        completion(received := ns.answer(ns.answer_request(question)))
    prompt = prompt_of(calls).replace(question.lower(), "")
    if foreign.value.lower() in prompt or mentions(received.events[0].retrieved.items, foreign):
        raise BrokenError(f"an Answer of {ns.namespace} holds {quoted(foreign)} of another namespace")
    for what, word in (("question", questioned), ("reply", replied)):
        if word.value.lower() in prompt:
            raise BrokenError(f"the prompt holds {word.value!r}, which an earlier {what} held and the memory does not")
        if not backend.has(pb.CAPABILITY_STATEFUL_SEARCH) and mentions(ns.search(word.question).items, word):
            raise BrokenError(f"Search finds {word.value!r}, which an earlier {what} held and no day")
