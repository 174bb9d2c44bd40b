"""Probes a reader before anything is timed, with single requests like those of a run.

It sends a short question and, to a server not started by the harness, a prompt as long as the budget allows, with a
system message, streamed and sampled like all questions. Reported prompt tokens show whether the server cuts prompts.
"""

from __future__ import annotations

from dataclasses import dataclass

from memarena_answering import Completion, Message, Prompt, ReaderCallError, ReaderClient, ReadingPlan

from memarena.gateway import CallContext, Gateway
from memarena.log.records import LEAST_TOKENS_PER_WORD, GatewayCall, ReaderProbed
from memarena.readers.types import RunningReader
from memarena.readers.warming import filler_prompt

PROBE_TIMEOUT_S = 120.0
LONG_PROBE_TIMEOUT_S = 600.0
PROBE_SYSTEM = "Answer from the context alone."
PROBE_PROMPT = "Context:\n- Hello is a short word of greeting.\n\nQuestion: What is a short word of greeting?"
"""It has a context and a question, which the extractive reader requires."""
PROBE_TOKENS = 16

_SPECIAL_TOKENS = ("[INST]", "[/INST]", "<s>", "</s>", "<unk>", "<|im_start|>", "<|begin_of_text|>", "\ufffd")
"""Tokens that appear in replies, often alone, if a server's chat template does not fit its model."""


@dataclass(frozen=True, slots=True)
class Probed:
    """The result of a probe. ``failure`` is empty if the reader passed."""

    failure: str
    prompt_tokens: int | None = None
    words: int = 0
    """Number of words of the prompt."""
    reasons: str = ""
    """Where reasoning was returned: ``a separate field``, ``marks in the text``; empty: there was none."""
    finish_reason: str = ""


def probe(reader: RunningReader, gateway: Gateway, sampling: ReadingPlan | None = None) -> ReaderProbed:
    """Send one short chat completion through the gateway. It fails if the reply is malformed or empty."""
    reply = ask_once(reader, gateway, PROBE_PROMPT, sampling, PROBE_TIMEOUT_S)
    return ReaderProbed(reader=reader.ref.name, ok=not reply.failure, message=reply.failure)


def probe_longest(reader: RunningReader, gateway: Gateway, tokens: int, sampling: ReadingPlan | None = None) -> Probed:
    """Send a prompt of about ``tokens`` tokens. It fails if the server refuses it, or reads less than was sent."""
    reply = ask_once(reader, gateway, filler_prompt("Probe", tokens), sampling, LONG_PROBE_TIMEOUT_S)
    if reply.failure or reply.prompt_tokens is None or reply.prompt_tokens >= LEAST_TOKENS_PER_WORD * reply.words:
        return reply
    return Probed(
        f"the server read {reply.prompt_tokens:,} tokens of a prompt of {reply.words:,} words: it cuts what is too "
        f"long (state the window with --reader-window {reply.prompt_tokens}, or serve the model with a longer one)",
        reply.prompt_tokens,
        reply.words,
    )


def ask_once(
    reader: RunningReader, gateway: Gateway, text: str, sampling: ReadingPlan | None, timeout_s: float
) -> Probed:
    """Send one chat completion like those of a run. ``sampling``: temperature, seed and thinking of the run."""
    upstream = reader.upstream
    reading = sampling or ReadingPlan(upstream.model, PROBE_TOKENS)
    plan = ReadingPlan(upstream.model, PROBE_TOKENS, reading.temperature, reading.seed, thinking=reading.thinking)
    system = () if upstream.no_system_role else (Message("system", PROBE_SYSTEM),)
    prompt = Prompt((*system, Message("user", text)), 0, 0, 0, 0, 0)
    token = gateway.grant(CallContext("probe"))
    client = ReaderClient(gateway.base_url)
    failure = ""
    completion: Completion | None = None
    try:
        for event in client.stream(prompt, plan, token, timeout_s):
            if isinstance(event, Completion):
                completion = event
    except ReaderCallError as error:
        failure = error.message
    finally:
        client.close()
        calls = gateway.revoke(token)
    call = calls[-1] if calls else None
    if call is not None and call.error:
        failure = call.error
    if not failure and completion is not None:
        failure = _fault(completion.text, call)
    return Probed(
        failure,
        call.prompt_tokens if call is not None else None,
        sum(len(message.content.split()) for message in prompt.messages),
        _reasons(call),
        call.finish_reason if call is not None else "",
    )


def _fault(text: str, call: GatewayCall | None) -> str:
    """Return what is wrong with a reply, such as special tokens in its text; empty if nothing is."""
    if not text.strip():
        return "" if call is not None and call.reasoning else "the probe's reply is empty"
    if not any(character.isalnum() for character in text):
        return f"the probe's reply holds no word: {text.strip()[:40]!r}"
    special = next((mark for mark in _SPECIAL_TOKENS if mark in text), None)
    return f"the probe's reply holds the special token {special}: {text.strip()[:60]!r}" if special else ""


def _reasons(call: GatewayCall | None) -> str:
    if call is None or call.first_reasoning_ns is None:
        return ""
    return "a separate field" if call.reasoning else "marks in the text"
