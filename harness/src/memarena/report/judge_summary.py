"""Describes the judge of a run: in lines for a report's summary, and in full for its methods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

from memarena.report.layout import Fact, Section, counted
from memarena.report.tables.judge_error import TITLE, rates_in_words
from memarena.scoring.results import Decider, JudgeModel, RunScores

_RESTS_ON: dict[Decider, str] = {
    "model": "by its model",
    "typed_values": "by typed values",
    "text": "by the rules for golds in text",
    "token_f1": "by a threshold on token-F1",
    "labels": "by the deterministic labels of D6",
}
"""What each kind of decider is called in a report."""
_fact = partial(Fact, width=9)
_MANY_IN_TEXT = 0.1
"""Share of verdicts on golds in text above which the summary states the judge's error on them."""


def judge_lines(run: RunScores) -> list[Fact]:
    """Return the lines on the judge for the summary of a report."""
    if not run.judging.decided:
        reason = "it has given no verdict yet" if run.judging.unjudged else "no question of this run needed it yet"
        return [Fact("judge", f"{run.judge}; {reason}")]
    versions = ", ".join(version[:12] for version in run.judge_versions)
    name = f"{run.judge} ({versions})"
    if not run.judging.models:
        in_text = _in_text(run)
        return [Fact("judge", name), *in_text] if in_text else [Fact("judge", f"{name}; {_by_values(run)}")]
    models = "; ".join(_model(m, digits=12) for m in run.judging.models)
    return [Fact("judge", f"{name}: {models}"), Fact("verdicts", decided_by(run))]


def judge_warnings(run: RunScores) -> list[str]:
    """Return a warning if questions lack a verdict, with the command that judges them."""
    if not run.judging.unjudged:
        return []
    causes = f" (it failed: {_causes(run)})" if run.judge_failures else ""
    return [
        f"no verdict by judge {run.judge}: {counted(run.judging.unjudged, 'question')}{causes}; such rows have a range "
        f"(all wrong … all right) and no headline until `memarena judge RUN --judge {run.judge}` has judged them"
    ]


def judge_sections(runs: Sequence[RunScores]) -> list[Section]:
    """Return a section for each run with or awaiting verdicts: full hashes, verdicts by what decided them, failures."""
    sections = []
    for number, run in enumerate(runs, 1):
        if not run.judging.decided and not run.judging.unjudged:
            continue
        lines = [_fact("judge", run.judge)]
        lines += [_fact("version", version) for version in run.judge_versions]
        for model in run.judging.models:
            lines.append(_fact("model", _settings(model)))
            lines += [_fact("prompt", f"{task}, sha256 {digest}") for task, digest in model.prompts_sha256.items()]
        if run.judging.decided:
            lines.append(_fact("verdicts", decided_by(run)))
        lines.append(_fact("failed", _failed(run)))
        sections.append(Section(f"Judge of run {number}" if len(runs) > 1 else "Judge", tuple(lines)))
    return sections


def decided_by(run: RunScores) -> str:
    """Return in words how many verdicts rest on what, and the share that the rules decided instead of the model."""
    decided = run.judging.decided
    parts = [f"{sum(decided.values()):,}: "]
    parts.append(", ".join(f"{decided[name]:,} {words}" for name, words in _RESTS_ON.items() if name in decided))
    if run.handed_over_share is not None:
        parts.append(f"; decided by the rules instead {run.judging.handed_over:,} ({100 * run.handed_over_share:.1f}%)")
    if run.judge_repeats > 1:
        parts.append(f"; up to {run.judge_repeats} verdicts per answer, of which the first counts")
    return "".join(parts)


def _in_text(run: RunScores) -> list[Fact]:
    """Return a line on the judge's error if more than a tenth of the verdicts are on golds in text; else nothing."""
    routes = sum((Counter(row.routes) for row in run.rows), Counter[str]())
    share = routes["text"] / routes.total() if routes else 0.0
    error = next((row.judge_error for row in run.rows if row.judge_error is not None), None)
    if share <= _MANY_IN_TEXT or error is None:
        return []
    return [
        Fact("in text", f"{100 * share:.0f}% of verdicts are on golds in text: {rates_in_words(error)} (table {TITLE})")
    ]


def _by_values(run: RunScores) -> str:
    if run.typed_share is None or run.typed_share == 1:
        return "every verdict rests on typed values"
    return f"{100 * (1 - run.typed_share):.0f}% of its verdicts are on golds in text (error: docs/judging.md)"


def _model(model: JudgeModel, digits: int) -> str:
    prompts = ", ".join(f"{task} {digest[:digits]}" for task, digest in model.prompts_sha256.items())
    return f"{_settings(model)}, prompts {prompts}"


def _settings(model: JudgeModel) -> str:
    temperature = "not stated" if model.temperature is None else f"{model.temperature:g}"
    seed = "no seed" if model.seed is None else f"seed {model.seed}"
    return f"{model.model}, T = {temperature}, {seed}"


def _failed(run: RunScores) -> str:
    if not run.judging.unjudged:
        return "none"
    causes = f" ({_causes(run)})" if run.judge_failures else ""
    return f"{counted(run.judging.unjudged, 'question')} without a verdict{causes}"


def _causes(run: RunScores) -> str:
    return ", ".join(f"{cause.replace('_', ' ')} {count}" for cause, count in run.judge_failures.items())
