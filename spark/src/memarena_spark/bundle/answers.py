"""Checks that the answers of a log follow from its model calls: text, times, tokens and items of each answer.

Certifying and verifying both use it. An answer that none of its logged model calls produced, or that came before them,
was not made by the reader that the gateway measured.
"""

from __future__ import annotations

import hashlib
import json
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from memarena.execution.audit.prompt_attribution import plain, shown_items
from memarena.execution.cells.context import generating
from memarena.log.records import AnswerSpan, GatewayCall, QuestionAsked, RetrievedItem
from memarena.log.store import read_records
from memarena_answering import parse_answer

HELD_BACK_MS = 100.0
"""Limit of a cell's median time from the first content at the gateway to the first TextDelta: longer is held back."""
BYTES_PER_TOKEN = 32
"""Limit of bytes of text per token: tokenizers have 3 to 5 bytes per token in English, and 1 in the worst scripts."""
_TEMPLATE_TOKENS = 1024
"""Limit of the tokens that a chat template may add to a prompt."""
_SERVER_CLOCK_NS = 5_000_000
"""Tolerance by which a server's own times, which it rounds, may exceed those at the gateway."""
_ANSWERING = ("answer", "central")
"""Phases of the model calls that answer a question: made by the backend, or by the harness (central reading)."""

_Check = Callable[[QuestionAsked, AnswerSpan, Sequence[GatewayCall]], Iterator[str]]


@dataclass
class AnswerChecks:
    """The result of the checks of a log's answers."""

    contradictions: list[str] = field(default_factory=list)
    """The first contradiction of each kind."""
    without_prompt: int = 0
    """Number of answered questions without stored prompts, whose shown items are not checked."""


def check_answers(log_folder: Path) -> AnswerChecks:
    """Compare each answered question with its model calls, and each model call with its texts."""
    result, calls = AnswerChecks(), dict[str, GatewayCall]()
    first: dict[object, str] = {}
    for call in read_records(log_folder, "gateway_call"):
        if not isinstance(call, GatewayCall):
            continue
        for line in _call(call):
            first.setdefault(_call, line)
        if call.phase in (*_ANSWERING, "refused"):
            calls[call.call_id] = call
    held_ms: dict[str, list[float]] = defaultdict(list)
    of_an_answer: tuple[_Check, ...] = (_text, _times, _items)
    for attempt in read_records(log_folder, "asked"):
        if not isinstance(attempt, QuestionAsked) or attempt.status != "answered":
            continue
        answer, attempt_calls = _span(attempt), generating([calls[n] for n in attempt.gateway_call_ids if n in calls])
        result.without_prompt += any(not call.prompt for call in attempt_calls)
        for check in of_an_answer:
            for line in check(attempt, answer, attempt_calls):
                first.setdefault(check, f"{attempt.cell_id}: {attempt.instance_id}: {line}")
        held_ms[attempt.cell_id] += _held_back_ms(attempt, answer, attempt_calls)
    result.contradictions += [*first.values(), *_held_back(held_ms)]
    return result


def _span(attempt: QuestionAsked) -> AnswerSpan:
    if attempt.answer is None or attempt.answer.code != "OK":
        raise ValueError(f"{attempt.cell_id}: {attempt.instance_id}: is answered without an answer")
    return attempt.answer


def _text(_: QuestionAsked, answer: AnswerSpan, own: Sequence[GatewayCall]) -> Iterator[str]:
    """Check that the answer follows from its text, and its text is the output of one of its calls (SPEC.md ANS-4)."""
    reading = parse_answer(answer.raw)
    if (answer.answer, answer.reason, answer.parse) != (reading.answer, reading.reason, reading.parse):
        yield "the answer does not follow from the text that was read"
    if _sha256(answer.raw) not in {_output_sha256(call) for call in own}:
        yield "its text is the output of none of its model calls"
    turned_down = sum(call.phase == "refused" for call in own)  # in Search or in Answer: the log does not say which
    if not len(own) - turned_down <= answer.model_calls <= len(own):
        yield f"states {answer.model_calls} model calls, the log holds {len(own)}"


def _times(_: QuestionAsked, answer: AnswerSpan, own: Sequence[GatewayCall]) -> Iterator[str]:
    """Check that no text reached the harness before the gateway."""
    first = _call_of_first_delta(answer, own)
    if first is not None and answer.first_delta_ns is not None and answer.first_delta_ns < _arrived(first):
        yield "its first TextDelta came before the first content of its model call"
    for call in own:
        end_ns = (call.received_to_forwarded_ns or 0) + (call.last_content_ns or 0)
        is_whole_output = _output_sha256(call) == _sha256(answer.raw)
        if is_whole_output and len(own) == 1 and answer.completed_ns is not None and answer.completed_ns < end_ns:
            yield "was complete before the last content of its model call"


def _held_back_ms(attempt: QuestionAsked, answer: AnswerSpan, own: Sequence[GatewayCall]) -> list[float]:
    """Return the least time in ms that the first token took from the gateway to the harness; empty if unknown."""
    first = _call_of_first_delta(answer, own)
    searched_ns = attempt.search.t_search_ns if attempt.search is not None else None
    if first is None or searched_ns is None or answer.first_delta_ns is None:
        return []
    # Answer was sent after Search had returned, so that the first TextDelta came at this moment or later.
    earliest = attempt.asked_mono_ns + searched_ns + answer.first_delta_ns
    return [(earliest - first.started_mono_ns - _arrived(first)) / 1e6]


def _held_back(held_ms: Mapping[str, Sequence[float]]) -> Iterator[str]:
    """Check that first tokens are passed on at once (ANS-3), since a TTFT at the gateway would be too short if not."""
    for cell_id, each_ms in held_ms.items():
        if each_ms and (median_ms := statistics.median(each_ms)) > HELD_BACK_MS:
            yield f"{cell_id}: first tokens came {median_ms:.0f} ms after the time to the first token says (median)"


def _call_of_first_delta(answer: AnswerSpan, own: Sequence[GatewayCall]) -> GatewayCall | None:
    if answer.ttft_ns is None:
        return None
    return next((call for call in reversed(own) if call.first_content_ns == answer.ttft_ns), None)


def _arrived(call: GatewayCall) -> int:
    """Return the time of the first content at the gateway, in ns since the call's beginning."""
    return (call.received_to_forwarded_ns or 0) + (call.first_content_ns or 0)


def _items(attempt: QuestionAsked, answer: AnswerSpan, own: Sequence[GatewayCall]) -> Iterator[str]:
    """Check that the items stated as shown are those in the prompt."""
    search_items = attempt.search.items if attempt.search is not None else ()
    items = search_items if answer.searched_items else answer.items
    if answer.searched_items and answer.items:
        yield "states other items where it was read from those of Search"
    if answer.shown_items is not None and not set(answer.shown_items) <= set(range(len(items))):
        yield "the prompt holds items that there are not"
        return
    if not all(call.prompt for call in own):
        return
    in_prompt = shown_items(items, own)
    if in_prompt is None and answer.route == "central":  # a layout that does not show where an item ends
        return
    if _texts(items, in_prompt) != _texts(items, answer.shown_items):
        yield "the items stated as shown are not those in the prompt of its model call"


def _texts(items: Sequence[RetrievedItem], indices: Sequence[int] | None) -> list[str] | None:
    """Return the sorted texts of the items, since two items may have the same text; None if ``indices`` is None."""
    return None if indices is None else sorted(plain(items[index].text) for index in indices)


def _call(call: GatewayCall) -> Iterator[str]:
    """Check a call: texts against hashes, the server's times against the gateway's, tokens against text lengths."""
    name = f"model call {call.call_id}"
    for kind, text, sha256 in (
        ("prompt", call.prompt, call.prompt_sha256),
        ("output", call.output, call.output_sha256),
    ):
        if text and "\ufffd" not in text and _sha256(text) != sha256:  # a lone surrogate is kept as U+FFFD
            yield f"{name}: its {kind} is not the text of its SHA-256"
    prompt_ns = (call.server_prompt_ms or 0.0) * 1e6
    if call.first_content_ns is not None and call.first_content_ns + _SERVER_CLOCK_NS < prompt_ns:
        yield f"{name}: its first content came before its server had read the prompt"
    if call not in generating([call]) or call.status != 200 or call.from_cache:
        return
    prompt_bytes, reply_bytes = _text_bytes(call.prompt), len((call.output + call.reasoning).encode())
    if (
        call.prompt_tokens is not None
        and prompt_bytes
        and not (
            prompt_bytes <= BYTES_PER_TOKEN * call.prompt_tokens
            and call.prompt_tokens <= prompt_bytes + _TEMPLATE_TOKENS
        )
    ):
        yield f"{name}: {call.prompt_tokens} tokens for a prompt of {prompt_bytes} bytes"
    if call.completion_tokens is not None and reply_bytes > BYTES_PER_TOKEN * call.completion_tokens:
        yield f"{name}: {call.completion_tokens} tokens for a reply of {reply_bytes} bytes"


def _text_bytes(prompt: str) -> int:
    """Return the bytes of text in a logged prompt: a list of messages, or a text."""
    if not prompt:
        return 0
    content = json.loads(prompt)
    texts = (
        [message.get("content") if isinstance(message, dict) else message for message in content]
        if isinstance(content, list)
        else [content]
    )
    return sum(len(text.encode()) for text in texts if isinstance(text, str))


def _output_sha256(call: GatewayCall) -> str:
    return _sha256(call.output) if call.output else call.output_sha256 or _sha256("")


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
