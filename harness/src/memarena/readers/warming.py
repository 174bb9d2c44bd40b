"""Sends warm-up requests to a reader, with prompts over the range of lengths that will be timed.

A server's first requests are slower than later ones, and no question is to be timed with them.
"""

from __future__ import annotations

from memarena_answering import Completion, Message, Prompt, ReaderCallError, ReaderClient, ReadingPlan

from memarena.gateway import CallContext, Gateway
from memarena.readers.types import ReaderError, RunningReader

WARM_UP_TIMEOUT_S = 600.0
_SHORTEST_TOKENS = 64
_BYTES_PER_TOKEN = 4  # an estimate for English
_WORDS = "lamp river stone paper cloud engine garden winter bottle pencil window ladder"


def warm_up(reader: RunningReader, gateway: Gateway, requests: int, longest_tokens: int) -> None:
    """Send ``requests`` prompts whose lengths grow geometrically from 64 to about ``longest_tokens`` tokens.

    Each asks for two tokens; phase ``probe`` in the log. Raises :class:`ReaderError` if one of them fails.
    """
    client = ReaderClient(gateway.base_url)
    try:
        for number, tokens in enumerate(lengths(requests, longest_tokens)):
            token = gateway.grant(CallContext("probe"))
            plan = ReadingPlan(reader.upstream.model, 2)
            try:
                events = list(client.stream(_prompt(number, tokens), plan, token, WARM_UP_TIMEOUT_S))
            except ReaderCallError as error:
                raise ReaderError(f"reader {reader.ref.name}: warm-up of about {tokens} tokens: {error}") from error
            finally:
                gateway.revoke(token)
            if not any(isinstance(event, Completion) for event in events):
                raise ReaderError(f"reader {reader.ref.name}: warm-up of about {tokens} tokens did not complete")
    finally:
        client.close()


def lengths(requests: int, longest_tokens: int) -> list[int]:
    """Return lengths in tokens, shortest first; for a single request the longest."""
    shortest = min(_SHORTEST_TOKENS, longest_tokens)
    if requests == 1:
        return [longest_tokens]
    ratio = longest_tokens / shortest
    return [round(shortest * ratio ** (step / (requests - 1))) for step in range(requests)]


def filler_prompt(title: str, tokens: int, number: int = 0) -> str:
    """Return about ``tokens`` tokens of words that no data set asks about, in another order for each ``number``."""
    stock = _WORDS.split()
    frame = (f"{title}.\nContext:\n", "\n\nQuestion: Which word is long?")
    words: list[str] = []
    size = sum(map(len, frame))
    while size < tokens * _BYTES_PER_TOKEN:
        word = stock[((len(words) + 1) * (number + 3)) % len(stock)]
        words.append(word)
        size += len(word) + 1
    return " ".join(words).join(frame)


def _prompt(number: int, tokens: int) -> Prompt:
    """Return a prompt that shares no prefix with that of another ``number``."""
    return Prompt((Message("user", filler_prompt(f"Warm-up {number}", tokens, number)),), 0, 0, 0, 0, 0)
