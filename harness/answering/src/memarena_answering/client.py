"""Asking a reader through the harness's gateway: streaming replies, counting tokens, each call with its own token."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from memarena_answering.model import Completion, Prompt, ReaderCallError, ReadingPlan, TextDelta, TokenCounter

if TYPE_CHECKING:
    from openai import OpenAI
    from openai.types.chat import ChatCompletionChunk

COUNT_TIMEOUT_S = 30.0
"""Counting tokens takes milliseconds; longer means that the server hangs."""

_UNUSED_KEY = "set-per-call"


def preload() -> None:
    """Import the openai package now (about half a second), so that no timed call pays for it."""
    import openai.resources.chat.completions  # noqa: F401, PLC0415  (late on purpose)


def _extra_body(plan: ReadingPlan) -> dict[str, object] | None:
    if plan.thinking == "default":
        return None
    return {"chat_template_kwargs": {"enable_thinking": plan.thinking == "on"}}


class ReaderClient:
    """A client of one gateway, safe to share between threads; connections are kept and reused.

    Nothing is retried: a retry would hide a failure inside somebody's latency.
    """

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self._lock = threading.Lock()
        self._client: OpenAI | None = None

    def _openai(self) -> OpenAI:
        with self._lock:
            if self._client is None:
                import openai  # noqa: PLC0415  (half a second that only those who read pay)

                self._client = openai.OpenAI(
                    base_url=self.base_url,
                    api_key=_UNUSED_KEY,
                    max_retries=0,
                    http_client=openai.DefaultHttpxClient(trust_env=False),
                )
                # Parts of the client are made on first use; make them here, before anything is timed.
                _ = self._client.chat.completions
            return self._client

    def warm_up(self) -> None:
        """Build the underlying client now. Opens no connection."""
        self._openai()

    def close(self) -> None:
        """Close kept connections. A later call opens new ones."""
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    def counter(self, token: str, model: str) -> TokenCounter:
        """A counter by the reader's own tokenizer, at POST {base_url}/tokenize. It raises :class:`ReaderCallError`."""

        def count(texts: Sequence[str]) -> Sequence[int]:
            return self._count(token, model, texts) if texts else []

        return count

    def _count(self, token: str, model: str, texts: Sequence[str]) -> list[int]:
        import openai  # noqa: PLC0415

        try:
            reply = self._openai().post(
                "/tokenize",
                cast_to=object,
                body={"model": model, "texts": list(texts)},
                options={"headers": _bearer(token), "timeout": COUNT_TIMEOUT_S},
            )
        except openai.OpenAIError as error:
            raise _call_error(error) from error
        counts = reply.get("counts") if isinstance(reply, Mapping) else None
        if not isinstance(counts, list) or len(counts) != len(texts) or not all(isinstance(n, int) for n in counts):
            raise ReaderCallError(None, f"tokenize: expected a list of {len(texts)} counts, got {str(reply)[:80]}")
        return counts

    def stream(
        self, prompt: Prompt, plan: ReadingPlan, token: str, timeout_s: float
    ) -> Iterator[TextDelta | Completion]:
        """Ask the reader: deltas as they come, then one completion.

        ``timeout_s`` bounds the whole reply. Raises :class:`ReaderCallError` when the call fails, the stream breaks
        or it ends without saying that it is complete. Closing the iterator early ends the call.
        """
        import httpx2  # noqa: PLC0415
        import openai  # noqa: PLC0415

        deadline = time.monotonic() + timeout_s
        try:
            messages: Any = [{"role": message.role, "content": message.content} for message in prompt.messages]
            with self._openai().chat.completions.create(
                model=plan.model,
                messages=messages,
                max_tokens=plan.max_tokens,
                temperature=plan.temperature,
                seed=plan.seed,
                stream=True,
                stream_options={"include_usage": True},
                extra_headers=_bearer(token),
                extra_body=_extra_body(plan),
                timeout=timeout_s,
            ) as chunks:
                yield from _read(chunks, deadline, timeout_s)
        except openai.OpenAIError as error:
            raise _call_error(error) from error
        except httpx2.TimeoutException as error:
            raise ReaderCallError(None, f"no further text within {timeout_s:g} s") from error
        except (httpx2.HTTPError, ValueError) as error:
            # The SDK lets transport errors and undecodable chunks in mid-stream through as they are.
            raise ReaderCallError(None, f"the stream broke: {error}") from error


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


_FINISH: dict[str, Literal["stop", "length"]] = {"stop": "stop", "length": "length"}


def _read(chunks: Iterator[ChatCompletionChunk], deadline: float, timeout_s: float) -> Iterator[TextDelta | Completion]:
    texts: list[str] = []
    finish: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    for chunk in chunks:
        if chunk.usage is not None:
            prompt_tokens, completion_tokens = chunk.usage.prompt_tokens, chunk.usage.completion_tokens
        for choice in chunk.choices or ():
            if choice.delta is not None and choice.delta.content:
                texts.append(choice.delta.content)
                yield TextDelta(choice.delta.content)
            finish = choice.finish_reason or finish
        if time.monotonic() > deadline:
            raise ReaderCallError(None, f"the reply was not complete within {timeout_s:g} s")
    if finish is None:
        raise ReaderCallError(None, "the stream ended before the reply was complete")
    yield Completion("".join(texts), _FINISH.get(finish, "unknown"), prompt_tokens, completion_tokens)


def _call_error(error: Exception) -> ReaderCallError:
    status = getattr(error, "status_code", None)
    body = getattr(error, "body", None)
    message = body.get("message") if isinstance(body, Mapping) else None
    cause = error.__cause__
    text = message or (f"{error} {cause}" if cause else str(error))
    return ReaderCallError(status if isinstance(status, int) else None, " ".join(str(text).split()) or repr(error))
