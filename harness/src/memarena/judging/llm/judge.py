"""Asks a judge with a model one question until a usable reply comes or the tries are used up, and counts the cost.

The answer under test may speak to its judge: it may pretend to end, give instructions, or hold a ready reply. Each call
therefore has two random texts that no answer can know. The *fence* is a line before and after the answer, so that the
prompt can say where the answer ends. The *check* is a mark that the judge has to repeat: ``replies.py`` uses no reply
without it, so that a reply copied from the answer does not count. Which questions are asked, and when the rules decide
instead, is in ``request.py``.
"""

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
"""Failures that an answer can cause: its text may derail the model or be refused by the server's filter."""
_KEPT_REPLY = 1000
"""Characters of an unusable reply that the log keeps."""
BYTES_PER_TOKEN = 3
"""Bytes for each token of a text that the server has not counted: few, so that the estimate is rather too high."""
_MAYBE_BILLED = frozenset({"timeout", "refused", "malformed"})
"""Failures of calls that a server may have billed anyway: they are charged their worst case, unless the server replied
in full with an error and nothing else. The members are those of ``PROVOCABLE`` for another reason: cost, not cause."""


@dataclass(frozen=True)
class Patience:
    """How often a judge is asked before it counts as failed, and how many seconds each try and wait may take."""

    tries: int = 5
    timeout_s: float = 60.0
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0


@dataclass
class Meter:
    """The calls and tokens of one verdict."""

    started_ns: int = field(default_factory=time.monotonic_ns)
    calls: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None

    def add(self, completion: ChatReply) -> None:
        """Count a reply's tokens, if the server stated them."""
        if completion.prompt_tokens is not None:
            self.prompt_tokens = (self.prompt_tokens or 0) + completion.prompt_tokens
        if completion.completion_tokens is not None:
            self.completion_tokens = (self.completion_tokens or 0) + completion.completion_tokens

    def usage(self, ledger: Ledger) -> JudgeUsage:
        """Return the usage as a log record. Without stated tokens it has no price."""
        # A server that was called and stated no tokens: the price is unknown, not 0.
        untold = self.calls > 0 and self.prompt_tokens is None and self.completion_tokens is None
        return JudgeUsage(
            calls=self.calls,
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.completion_tokens,
            usd=None if untold else ledger.cost(self.prompt_tokens or 0, self.completion_tokens or 0),
            duration_ns=time.monotonic_ns() - self.started_ns,
        )


class TalkFailedError(Exception):
    """The tries ended without a usable reply. ``reply`` is the last unusable reply, empty if none came.

    ``by_quote``: only the quote of that reply was wrong. ``forbidden``: the request met HTTP 403.
    """

    def __init__(self, failure: CallFailedError, reply: str) -> None:
        super().__init__(str(failure))
        self.cause = failure.cause
        self.reply = reply[:_KEPT_REPLY]
        self.by_quote = isinstance(failure.__cause__, QuoteError)
        self.forbidden = failure.forbidden


class Talk:
    """Makes the calls of a judging to the judge's server, within its budget."""

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
            task: the task of the question.
            prompt: the task's prompt.
            values: for the prompt's names, except answer, fence and check.
            answer: the answer as the judge is to see it.
            meter: counts every call.
            once: if True, a failure that the answer may have caused (``PROVOCABLE``) ends the tries, so that one call
                shows how the judge reacts to this answer. Other failures are tried again as usual.
            sentences: number of the rubric's sentences; 0 for a question without a rubric.

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
                    # A new check and fence for every call, so that no earlier text can be replayed.
                    check, fence = secrets.token_hex(4), f"-----{secrets.token_hex(8)}-----"
                    filled = {**values, "answer": answer, "check": check, "fence": fence}
                    # A single user message, even after a faulty reply: many chat templates refuse two in a row.
                    user_message = fill(prompt.user, filled) + (f"\n{fill(fault, filled)}\n" if fault else "")
                    schema = reply_schema(task, check, sentences)
                    completion = await self._call(prompt, fill(prompt.system, filled), user_message, schema, meter)
                    last_reply = completion.text
                    try:
                        return _read(task, completion, check, answer, sentences)
                    except ReplyError as error:
                        # fill() reads "{name}" as a field, and the message can quote text of the judge.
                        fault = prompt.again.replace("{fault}", str(error).replace("{", "("))
                        raise CallFailedError("malformed", f"no usable reply: {error}") from error
        except CallFailedError as failure:
            raise TalkFailedError(failure, last_reply) from failure
        # asking_again() ends with a return above or with the last error.
        raise AssertionError("asking_again ends with a return or an exception")

    def key_refused(self, failure: TalkFailedError) -> Exception:
        """Return the JudgeError with which a refused key ends a judging."""
        return self._server.key_refused(str(failure))

    async def _call(
        self, prompt: PromptFile, system: str, user: str, schema: Mapping[str, JsonValue], meter: Meter
    ) -> ChatReply:
        """Make a single call within the budget, and charge its tokens."""
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
            # A server that does not count tokens is charged the reserved amount.
            self._ledger.spend(
                guess if completion.prompt_tokens is None else completion.prompt_tokens,
                prompt.max_reply_tokens if completion.completion_tokens is None else completion.completion_tokens,
            )
        return completion


def _read(task: JudgeTask, completion: ChatReply, check: str, answer: str, sentences: int) -> Reply:
    """Return the parsed reply. Raises ReplyError if it is cut off or unusable."""
    if completion.finish_reason == "length":
        raise ReplyError("it was cut off at the length limit")
    if completion.finish_reason == "content_filter":
        raise ReplyError("the server's content filter held it back")
    return read_reply(task, completion.text, check, answer, sentences)
