"""Runs the extractive reader as a server: ``python -m memarena.readers.extractive_server --address-file F``."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

from aiohttp import web
from pydantic import JsonValue

from memarena.log.base import PROMPT_NOT_UNDERSTOOD
from memarena.readers import extractive, wire
from memarena.readers.extractive import DEFAULT_WINDOW_TOKENS, MODEL
from memarena.readers.prompt_reading import PromptNotUnderstoodError, read
from memarena.readers.serving import Handler, model_routes, serve_as_child

_PIECE_CHARS = 32


def reply(body: Mapping[str, JsonValue], window_tokens: int) -> tuple[str, wire.Finish, dict[str, JsonValue]]:
    """Return text, finish reason and usage for a chat request; tokens are UTF-8 bytes / 4.

    Raises ValueError, with the message for the caller, if the request is malformed or does not fit the window, and
    PromptNotUnderstoodError if no question or no context is recognised in its prompt.
    """
    messages = wire.chat_messages(body)
    limit = body.get("max_tokens", body.get("max_completion_tokens"))
    limit = limit if isinstance(limit, int) and limit > 0 else window_tokens
    prompt_tokens = wire.bytes_tokens([message.content for message in messages])
    if prompt_tokens >= window_tokens:
        raise ValueError(f"a prompt of {prompt_tokens} tokens, and a context window of {window_tokens}")
    text = extractive.answer(read(messages)).as_json()
    text_shown = text.encode("utf-8", "replace")[: 4 * limit].decode("utf-8", "ignore")
    finish: wire.Finish = "stop" if text_shown == text else "length"
    return text_shown, finish, wire.token_usage(prompt_tokens, wire.bytes_tokens([text_shown]), 0)


def handler(window_tokens: int) -> Handler:
    """Return the server's routes."""

    async def answer(request: web.BaseRequest, raw: bytes) -> web.StreamResponse:
        try:
            body: JsonValue = json.loads(raw)
            if not isinstance(body, dict):
                raise ValueError("the body is no JSON object")
            text, finish, usage = reply(body, window_tokens)
        except ValueError as error:
            code, status = (
                (PROMPT_NOT_UNDERSTOOD, 422)
                if isinstance(error, PromptNotUnderstoodError)
                else ("invalid_request", 400)
            )
            return web.json_response(wire.error(str(error), code), status=status)
        if body.get("stream") is not True:
            return web.json_response(wire.chat_completion(MODEL, {"content": text}, finish, usage))
        options = body.get("stream_options")
        with_usage = isinstance(options, dict) and options.get("include_usage") is True
        return await _stream(request, text, finish, usage if with_usage else None)

    return model_routes(MODEL, "/v1/chat/completions", answer)


async def _stream(
    request: web.BaseRequest, text: str, finish: wire.Finish, usage: dict[str, JsonValue] | None
) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    opening = wire.sse(wire.chat_chunk(MODEL, {"role": "assistant", "content": ""}))
    for start in range(0, len(text), _PIECE_CHARS):
        piece = wire.sse(wire.chat_chunk(MODEL, {"content": text[start : start + _PIECE_CHARS]}))
        await response.write(opening + piece)
        opening = b""
    closing = opening + wire.sse(wire.chat_chunk(MODEL, {}, finish))
    if usage is not None:
        closing += wire.sse(wire.usage_chunk(MODEL, usage))
    await response.write(closing + wire.DONE)
    await response.write_eof()
    return response


def main() -> None:
    """Entry of the child process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address-file", type=Path, required=True)
    parser.add_argument("--window-tokens", type=int, default=DEFAULT_WINDOW_TOKENS)
    arguments = parser.parse_args()
    asyncio.run(serve_as_child(handler(arguments.window_tokens), arguments.address_file))


if __name__ == "__main__":
    main()
