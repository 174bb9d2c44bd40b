"""What judges said of one question, record by record: verdicts, repeats, causes, failures."""

from __future__ import annotations

from collections.abc import Sequence

from memarena.log.records import BucketNamed, JudgingFailed, Verdict
from memarena.report.layout import Section

JudgeRecord = Verdict | BucketNamed | JudgingFailed


def judge_sections(judged: Sequence[JudgeRecord]) -> list[Section]:
    """One section per judge and version, in the order of their first record."""
    voices: dict[tuple[str, str], list[JudgeRecord]] = {}
    for record in judged:
        voices.setdefault((record.judge, record.judge_version), []).append(record)
    return [
        Section(f"Judge {name} ({version[:12]})", tuple(line for record in said for line in _lines(record)))
        for (name, version), said in voices.items()
    ]


def _lines(record: JudgeRecord) -> list[str]:
    place = f"attempt {record.attempt + 1}" + (f", repeat {record.repeat}" if record.repeat else "")
    if record.kind == "judging_failed":
        return [
            f"{place}: failed ({record.task}): {record.cause.replace('_', ' ')}: {record.message}",
            *([f"  its reply: {_one_line(record.reply)}"] if record.reply else []),
        ]
    if record.kind == "bucket":
        lines = [f"{place}: withheld because: {record.bucket.replace('_', ' ')}: {_one_line(record.reason)}"]
    else:
        label = f", behaviour {record.label.replace('_', ' ')}" if record.label else ""
        lines = [
            f"{place}: {'right' if record.correct else 'wrong'} by {record.route}{label}, score {record.score:.2f}: "
            f"{_one_line(record.reason)}"
        ]
    if record.handed_over:
        lines.append(f"  decided instead by the {_one_line(record.handed_over)}")
    if record.model:
        lines.append(f"  model {_model(record)}")
    return lines


def _model(record: Verdict | BucketNamed) -> str:
    parts = [record.model]
    if record.kind == "verdict":
        if record.temperature is not None:
            parts.append(f"T = {record.temperature:g}")
        if record.seed is not None:
            parts.append(f"seed {record.seed}")
    if record.usage is not None:
        calls = "call" if record.usage.calls == 1 else "calls"
        parts.append(f"{record.usage.calls} {calls}")
        if record.usage.prompt_tokens is not None:
            parts.append(f"{record.usage.prompt_tokens:,} + {record.usage.completion_tokens or 0:,} tokens")
        if record.usage.usd is not None:
            parts.append(f"${record.usage.usd:.5f}")
    return ", ".join(parts)


def _one_line(text: str) -> str:
    return " ".join(text.split())
