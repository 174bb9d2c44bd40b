"""Counting tokens with a model server's own tokenizer, all texts of a request in one call upstream."""

from __future__ import annotations

from itertools import pairwise

import aiohttp
from memarena_answering import count_by_bytes
from memarena_answering.servers.replies import UpstreamError
from memarena_answering.servers.sessions import post
from pydantic import JsonValue

from memarena.gateway.calls import RefusedError
from memarena.gateway.types import Upstream

TIMEOUT_S = 30.0
"""Counting tokens takes milliseconds; longer means that the server hangs."""
SEPARATOR = -1
"""A token id that no tokenizer gives: llama.cpp's /tokenize takes texts and ids mixed, and hands ids back as sent."""


def tokenize_request(upstream: Upstream, texts: list[str]) -> tuple[str, dict[str, JsonValue]]:
    """URL and body of the request that counts the texts."""
    if upstream.tokenizer == "llama.cpp":
        mixed: list[JsonValue] = []
        for text in texts:
            mixed += [text, SEPARATOR]
        return f"{upstream.server_url}/tokenize", {"content": mixed, "add_special": False, "parse_special": False}
    prompt: list[JsonValue] = list(texts)
    body: dict[str, JsonValue] = {"model": upstream.upstream_model, "prompt": prompt, "add_special_tokens": False}
    return f"{upstream.server_url}/tokenize", body


def read_counts(upstream: Upstream, reply: JsonValue, expected: int) -> list[int]:
    """Counts from the server's reply. Raises :class:`UpstreamError` if it does not fit the request."""
    counts: list[int] = []
    if isinstance(reply, dict) and upstream.tokenizer == "llama.cpp" and isinstance(reply.get("tokens"), list):
        tokens = reply["tokens"]
        assert isinstance(tokens, list)
        ends = [-1, *(index for index, token in enumerate(tokens) if token == SEPARATOR)]
        counts = [end - begin - 1 for begin, end in pairwise(ends)]
    elif isinstance(reply, dict) and upstream.tokenizer == "sglang":
        reported = reply.get("count")
        counts = [count for count in reported if isinstance(count, int)] if isinstance(reported, list) else []
    if len(counts) != expected:
        raise UpstreamError(f"the server's /tokenize gave {len(counts)} counts for {expected} texts")
    return counts


async def count_tokens(session: aiohttp.ClientSession, upstream: Upstream, texts: list[str]) -> list[int]:
    """Tokens of each text. Raises :class:`RefusedError` (404) if the model's server cannot count."""
    if upstream.tokenizer == "none":
        raise RefusedError(404, "no_tokenizer", f"tokens of model {upstream.model!r} cannot be counted")
    if upstream.tokenizer == "bytes" or not texts:
        return count_by_bytes(texts)
    url, body = tokenize_request(upstream, texts)
    reply = await post(session, url, upstream.api_key, body, TIMEOUT_S)
    if reply.status != 200:
        raise UpstreamError(f"the server's /tokenize answered {reply.status}: {reply.words()}")
    return read_counts(upstream, reply.parsed(), len(texts))
