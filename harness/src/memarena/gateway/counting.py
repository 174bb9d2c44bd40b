"""Counts tokens with a model server's own tokenizer, in one upstream call for all texts of a request."""

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
"""Counting tokens takes milliseconds; after this time the server is taken to hang."""
SEPARATOR = -1
"""A token id that no tokenizer returns: llama.cpp's /tokenize accepts texts mixed with ids, and returns ids as sent."""


def tokenize_request(upstream: Upstream, texts: list[str]) -> tuple[str, dict[str, JsonValue]]:
    """Return URL and body of the request that counts the texts."""
    if upstream.tokenizer == "llama.cpp":
        mixed: list[JsonValue] = []
        for text in texts:
            mixed += [text, SEPARATOR]
        return f"{upstream.server_url}/tokenize", {"content": mixed, "add_special": False, "parse_special": False}
    prompt: list[JsonValue] = list(texts)
    body: dict[str, JsonValue] = {"model": upstream.upstream_model, "prompt": prompt, "add_special_tokens": False}
    return f"{upstream.server_url}/tokenize", body


def read_counts(upstream: Upstream, reply: JsonValue, expected: int) -> list[int]:
    """Return the counts in the server's reply. Raises :class:`UpstreamError` if it does not match the request."""
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
    """Return the tokens of each text. Raises :class:`RefusedError` (404) if the model's server cannot count."""
    if upstream.tokenizer == "none":
        raise RefusedError(404, "no_tokenizer", f"tokens of model {upstream.model!r} cannot be counted")
    if upstream.tokenizer == "bytes" or not texts:
        return count_by_bytes(texts)
    url, body = tokenize_request(upstream, texts)
    reply = await post(session, url, upstream.api_key, body, TIMEOUT_S)
    if reply.status != 200:
        raise UpstreamError(f"the server's /tokenize answered {reply.status}: {reply.error_line()}")
    return read_counts(upstream, reply.parsed(), len(texts))
