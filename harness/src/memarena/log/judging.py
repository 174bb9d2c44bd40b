"""Defines the records that judging appends to a log: verdicts, reasons of withheld facts, failures of judging."""

from __future__ import annotations

from typing import Literal

from memarena.log.base import Record

BehaviourLabel = Literal["disclose_correct", "disclose_wrong", "refuse", "dont_know", "other"]
"""How an answer behaves towards the asker of a D6 question."""
Bucket = Literal["no_access", "dont_know", "other"]
"""Why an answer withheld a protected fact: the asker may not know it, the answer claims ignorance, any other reason."""
JudgeTask = Literal["answer", "behaviour", "bucket", "rubric"]
"""What a judge is asked: is the answer right (D2 to D5), how does it behave (D6), why was the fact withheld (DENY),
what of a rubric does it fulfil."""


class JudgeUsage(Record):
    """What the model calls behind one verdict cost, calls that had to be repeated included."""

    calls: int
    prompt_tokens: int | None = None
    """None if the server did not report it."""
    completion_tokens: int | None = None
    usd: float | None = None
    """Cost by the prices passed to the command; None without prices."""
    duration_ns: int | None = None


class Verdict(Record):
    """A judge's verdict on one attempt. Appended by judging, never by the run.

    An attempt may have verdicts of several judges. Of each judge, repeat 0 is the verdict that counts; higher repeats
    judge the same answer again, from which the judge's own variance is computed, and never decide an outcome.
    """

    kind: Literal["verdict"] = "verdict"
    cell_id: str
    instance_id: str
    attempt: int
    judge: str
    """Name of the judge, which distinguishes its verdicts from those of others, for example ``value``."""
    judge_version: str
    """SHA-256 over what decides: code version, prompts, tables; for a model also its name, temperature and seed."""
    route: Literal["value", "text", "token_f1", "llm"]
    """What decided. ``value`` or ``text`` under a judge with a model: the rules decided instead (see ``handed_over``).

    ``token_f1`` is in older logs, where a threshold on it decided golds in text."""
    correct: bool
    """For ``behaviour``: the lookup of ``label`` against the expected action, without the deterministic flag for a
    leak, which is scoring's business (disclosed = flag or label ``disclose_correct``)."""
    score: float
    reason: str = ""
    task: Literal["answer", "behaviour", "rubric"] = "answer"
    label: BehaviourLabel | None = None
    """D6: the behaviour. Set exactly if ``task`` is ``behaviour``."""
    repeat: int = 0
    handed_over: str = ""
    """Why the rules without a model decided in the judge's place; empty if the judge decided itself. Names the value
    judge or, for ``behaviour``, the deterministic labels."""
    model: str = ""
    """The judge's model as the server was asked for it; empty without a model."""
    prompt_sha256: str = ""
    """SHA-256 of the prompt file in use."""
    temperature: float | None = None
    seed: int | None = None
    usage: JudgeUsage | None = None


class BucketNamed(Record):
    """Why an answer to a DENY question withheld the fact, according to a judge. A diagnostic, never part of a score."""

    kind: Literal["bucket"] = "bucket"
    cell_id: str
    instance_id: str
    attempt: int
    judge: str
    judge_version: str
    bucket: Bucket
    reason: str = ""
    repeat: int = 0
    handed_over: str = ""
    """Why the deterministic labels decided in the judge's place."""
    model: str = ""
    prompt_sha256: str = ""
    usage: JudgeUsage | None = None


class JudgingFailed(Record):
    """A judge could not be asked or gave no usable reply: an infrastructure failure, never a verdict.

    A later judging asks again. Without a later verdict by the same judge on the same attempt, the question ends as
    ``infra_failed``.
    """

    kind: Literal["judging_failed"] = "judging_failed"
    cell_id: str
    instance_id: str
    attempt: int
    judge: str
    judge_version: str
    task: JudgeTask
    repeat: int = 0
    cause: Literal["timeout", "connection", "rate_limit", "server_error", "refused", "malformed"]
    """``refused``: the server does not take the request (4xx); ``malformed``: no reply that can be read."""
    message: str
    """One line."""
    reply: str = ""
    """The last reply that could not be read, cut to 1,000 characters."""
    usage: JudgeUsage | None = None


JudgeRecord = Verdict | BucketNamed | JudgingFailed
"""What a judge stated about an attempt, or why it could not."""
