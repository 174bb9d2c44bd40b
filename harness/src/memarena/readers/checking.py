"""Checks a reader before its first question: its server, its window, the requests it accepts, its thinking."""

from __future__ import annotations

from memarena_answering import ReadingPlan

from memarena.gateway import Gateway
from memarena.log.records import ReaderProbed
from memarena.readers.probing import PROBE_PROMPT, PROBE_TIMEOUT_S, ask_once, probe_longest
from memarena.readers.types import RunningReader


def check_reader(
    reader: RunningReader, gateway: Gateway, longest_tokens: int, sampling: ReadingPlan | None = None
) -> ReaderProbed:
    """Send a reader requests like those of a run, and return what it did; ``ok`` is False if it cannot do the work.

    Servers not started by the harness also get a prompt of about ``longest_tokens`` tokens. ``sampling``: temperature,
    seed and thinking of the run.
    """
    ref = reader.ref
    source = {"given": "as stated", "server": "by the server", "default": "assumed: the server does not state it"}
    result = {
        "server": ref.details.get("server", ref.kind),
        "model": ref.model,
        "window": f"{ref.context_window_tokens:,} tokens, {source.get(ref.details.get('window_from', ''), 'ours')}",
        "tokens counted by": ref.details.get("tokenizer", "the server") if ref.counts_tokens else "estimate",
    }
    short = ask_once(reader, gateway, PROBE_PROMPT, sampling, PROBE_TIMEOUT_S)
    system = "put into the user's message" if reader.upstream.no_system_role else "accepted"
    result |= {"system message": system if not short.failure else "-", "streamed, sampled": short.failure or "works"}
    failure = short.failure
    if not failure:
        result["reasoning"] = f"in {short.reasons}" if short.reasons else "none seen"
        result["prompt tokens"] = (
            "reported" if short.prompt_tokens is not None else "not reported: cut prompts stay unseen"
        )
        if ref.kind == "url":
            long = probe_longest(reader, gateway, longest_tokens, sampling)
            tokens_read = f"{long.prompt_tokens:,} tokens" if long.prompt_tokens is not None else "unknown"
            result["longest prompt"] = long.failure or f"about {longest_tokens:,} tokens sent, {tokens_read} read"
            failure = long.failure
    return ReaderProbed(reader=ref.name, ok=not failure, message=failure, found=result)
