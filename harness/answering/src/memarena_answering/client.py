"""Asking a reader through the harness's gateway: streaming replies, counting tokens, each call with its own token."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from memarena_answering.model import Completion, Prompt, ReaderCallError, ReadingPlan, TextDelta, TokenCounter

if TYPE_CHECKING:
    from openai import OpenAI

COUNT_TIMEOUT_S = 30.0
"""Counting tokens takes milliseconds; longer means that the server hangs."""

_UNUSED_KEY = "set-per-call"


def preload() -> None:
    """Import the openai package now (about half a second), so that no timed call pays for it."""
    import openai  # noqa: F401, PLC0415  (late on purpose)


def _request(prompt: Prompt, plan: ReadingPlan) -> dict[str, object]:
    body: dict[str, object] = {
        "model": plan.model,
        "messages": [{"role": message.role, "content": message.content} for message in prompt.messages],
        "max_tokens": plan.max_tokens,
        "temperature": plan.temperature,
        "seed": plan.seed,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if plan.thinking != "default":
        body["chat_template_kwargs"] = {"enable_thinking": plan.thinking == "on"}
    return body


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
                    http_client=openai.DefaultHttpxClient(trust_env=False, follow_redirects=False),
                )
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
        except openai.APITimeoutError as error:
            raise ReaderCallError(None, f"tokenize: no reply within {COUNT_TIMEOUT_S:g} s") from error
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
            # The typed front of the SDK checks every field of every message against its type hints, which costs more
            # than a millisecond before the first token. Its transport underneath does not.
            with self._openai().post(
                "/chat/completions",
                cast_to=object,
                body=_request(prompt, plan),
                options={"headers": _bearer(token), "timeout": timeout_s},
                stream=True,
                stream_cls=openai.Stream[object],
            ) as chunks:
                yield from _read(chunks, deadline, timeout_s)
        except (openai.APITimeoutError, httpx2.TimeoutException) as error:
            raise ReaderCallError(None, f"no further text within {timeout_s:g} s") from error
        except openai.OpenAIError as error:
            raise _call_error(error) from error
        except (httpx2.HTTPError, ValueError) as error:
            # The SDK lets transport errors and undecodable chunks in mid-stream through as they are.
            raise ReaderCallError(None, f"the stream broke: {error}") from error


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


_FINISH: dict[str, Literal["stop", "length"]] = {"stop": "stop", "length": "length"}


def _read(chunks: Iterable[object], deadline: float, timeout_s: float) -> Iterator[TextDelta | Completion]:
    texts: list[str] = []
    finish: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    for chunk in chunks:
        if not isinstance(chunk, Mapping):
            raise ReaderCallError(None, f"the stream holds something that is no chunk: {str(chunk)[:80]}")
        if isinstance(usage := chunk.get("usage"), Mapping):
            prompt_tokens, completion_tokens = _tokens(usage, "prompt_tokens"), _tokens(usage, "completion_tokens")
        for choice in chunk.get("choices") or ():
            if not isinstance(choice, Mapping):
                raise ReaderCallError(None, f"the stream holds a choice that is no object: {str(choice)[:80]}")
            delta = choice.get("delta")
            if isinstance(delta, Mapping) and (text := delta.get("content")):
                if not isinstance(text, str):
                    raise ReaderCallError(None, f"the stream holds content that is no text: {str(text)[:80]}")
                texts.append(text)
                yield TextDelta(text)
            finish = str(choice.get("finish_reason") or finish or "") or None
        if time.monotonic() > deadline:
            raise ReaderCallError(None, f"the reply was not complete within {timeout_s:g} s")
    if finish is None:
        raise ReaderCallError(None, "the stream ended before the reply was complete")
    yield Completion("".join(texts), _FINISH.get(finish, "unknown"), prompt_tokens, completion_tokens)


def _tokens(usage: Mapping[str, object], key: str) -> int | None:
    count = usage.get(key)
    return count if isinstance(count, int) and 0 <= count < 1 << 32 else None


def _call_error(error: Exception) -> ReaderCallError:
    status = getattr(error, "status_code", None)
    body = getattr(error, "body", None)
    message = body.get("message") if isinstance(body, Mapping) else None
    cause = error.__cause__
    text = message or (f"{error} {cause}" if cause else str(error))
    return ReaderCallError(status if isinstance(status, int) else None, " ".join(str(text).split()) or repr(error))
