"""Puts one question to a judge until a usable reply comes or patience ends, counting what it costs."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from memarena_answering.servers.asking import CallFailedError, ChatServer, asking_again
from memarena_answering.servers.chat import ChatReply
from pydantic import JsonValue

from memarena.judging.llm.budget import Ledger
from memarena.judging.llm.identity import ModelJudge
from memarena.judging.llm.prompts import PromptFile, fill
from memarena.judging.llm.replies import QuoteError, Reply, ReplyError, read_reply, reply_schema
from memarena.log.records import JudgeTask, JudgeUsage

PROVOCABLE = frozenset({"malformed", "refused", "timeout"})
"""Failures that an answer can bring about."""
_KEPT_REPLY = 1000
BYTES_PER_TOKEN = 3
"""Tokens of a text that a server has not counted, taken on the high side."""
_MAYBE_BILLED = frozenset({"timeout", "refused", "malformed"})
"""Calls that brought nothing and that a server may have worked on all the same: they are charged their worst case,
unless the server replied in full and told of an error alone."""


@dataclass(frozen=True)
class Patience:
    """How long and how often a judge is asked before it is given up. Seconds."""

    tries: int = 5
    timeout_s: float = 60.0
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0


@dataclass
class Meter:
    """What the calls behind one verdict took."""

    started_ns: int = field(default_factory=time.monotonic_ns)
    calls: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None

    def add(self, completion: ChatReply) -> None:
        """Count a reply's tokens, as far as the server stated them."""
        if completion.prompt_tokens is not None:
            self.prompt_tokens = (self.prompt_tokens or 0) + completion.prompt_tokens
        if completion.completion_tokens is not None:
            self.completion_tokens = (self.completion_tokens or 0) + completion.completion_tokens

    def usage(self, ledger: Ledger) -> JudgeUsage:
        """As it goes into the log. Calls whose tokens no server told have no price."""
        untold = self.calls > 0 and self.prompt_tokens is None and self.completion_tokens is None
        return JudgeUsage(
            calls=self.calls,
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.completion_tokens,
            usd=None if untold else ledger.cost(self.prompt_tokens or 0, self.completion_tokens or 0),
            duration_ns=time.monotonic_ns() - self.started_ns,
        )


class TalkFailedError(Exception):
    """Patience ended without a usable reply. ``reply`` is the last that could not be read, empty if none came.

    ``by_quote``: that reply was in order but for its quote. ``forbidden``: the request met HTTP 403.
    """

    def __init__(self, failure: CallFailedError, reply: str) -> None:
        super().__init__(str(failure))
        self.cause = failure.cause
        self.reply = reply[:_KEPT_REPLY]
        self.by_quote = isinstance(failure.__cause__, QuoteError)
        self.forbidden = failure.forbidden


class Talk:
    """How a judge is talked to in one judging."""

    def __init__(self, judge: ModelJudge, server: ChatServer, patience: Patience, ledger: Ledger) -> None:
        self._judge = judge
        self._server = server
        self._patience = patience
        self._ledger = ledger

    async def ask(
        self,
        task: JudgeTask,
        prompt: PromptFile,
        values: Mapping[str, str],
        answer: str,
        meter: Meter,
        *,
        once: bool = False,
        sentences: int = 0,
    ) -> Reply:
        """Ask until the reply can be used.

        Args:
            task: what is asked.
            prompt: the task's prompt.
            values: for its names, apart from answer, fence and check.
            answer: the answer as the judge shall see it.
            meter: counts every call.
            once: whether the first call decides that shows what the judge does with this answer; faults that no answer
                brings about are tried again all the same.
            sentences: how many the rubric has; 0 for a question without one.

        Raises:
            TalkFailedError: no usable reply within the tries, or the request is refused.
            BudgetSpentError: the next call does not fit into the budget.
            JudgeError: the server can never answer (key, model, address).
        """
        fault = ""
        last_reply = ""
        try:
            async for attempt in asking_again(
                self._patience.tries,
                self._patience.longest_wait_s,
                self._patience.first_wait_s,
                lambda failure: failure.may_pass and not (once and failure.cause in PROVOCABLE),
            ):
                with attempt:
                    # A new mark and fence for every call: nothing that was ever seen can be replayed.
                    check, fence = secrets.token_hex(4), f"-----{secrets.token_hex(8)}-----"
                    filled = {"answer": answer, "check": check, "fence": fence, **values}
                    # One message of the user, whatever was wrong before: many chat templates take no second in a row.
                    user_message = fill(prompt.user, filled) + (f"\n{fill(fault, filled)}\n" if fault else "")
                    schema = reply_schema(task, check, sentences)
                    completion = await self._call(prompt, fill(prompt.system, filled), user_message, schema, meter)
                    last_reply = completion.text
                    try:
                        return _read(task, completion, check, answer, sentences)
                    except ReplyError as error:
                        fault = prompt.again.replace("{fault}", str(error).replace("{", "("))
                        raise CallFailedError("malformed", f"no usable reply: {error}") from error
        except CallFailedError as failure:
            raise TalkFailedError(failure, last_reply) from failure
        raise AssertionError("tenacity returns or raises")

    def key_refused(self, failure: TalkFailedError) -> Exception:
        """The JudgeError that a refused key ends a judging with."""
        return self._server.key_refused(str(failure))

    async def _call(
        self, prompt: PromptFile, system: str, user: str, schema: Mapping[str, JsonValue], meter: Meter
    ) -> ChatReply:
        guess = (len(system.encode()) + len(user.encode())) // BYTES_PER_TOKEN + 1
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        body: dict[str, object] = {"model": self._judge.model, "messages": messages}
        body["temperature"] = self._judge.temperature
        if self._judge.seed is not None:
            body["seed"] = self._judge.seed
        async with self._ledger.set_aside(guess, prompt.max_reply_tokens):
            meter.calls += 1
            try:
                completion = await self._server.complete(body, prompt.max_reply_tokens, "verdict", schema)
            except CallFailedError as failure:
                if failure.cause in _MAYBE_BILLED and not failure.in_reply:
                    self._ledger.spend(guess, prompt.max_reply_tokens)
                raise
            meter.add(completion)
            # A server that does not count is charged what was set aside.
            self._ledger.spend(
                guess if completion.prompt_tokens is None else completion.prompt_tokens,
                prompt.max_reply_tokens if completion.completion_tokens is None else completion.completion_tokens,
            )
        return completion


def _read(task: JudgeTask, completion: ChatReply, check: str, answer: str, sentences: int) -> Reply:
    if completion.finish_reason == "length":
        raise ReplyError("it was cut off at the length limit")
    if completion.finish_reason == "content_filter":
        raise ReplyError("the server's content filter held it back")
    return read_reply(task, completion.text, check, answer, sentences)
