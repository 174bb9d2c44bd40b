"""Renders the reports that golden files hold, from the log of a run."""

from __future__ import annotations

import io
from pathlib import Path

from memarena.judge import missing_verdicts, value_judge_version
from memarena.report.as_json import to_json
from memarena.report.document import report_document, score_document
from memarena.report.failures import failures_document
from memarena.report.layout import Document
from memarena.report.markdown import to_markdown
from memarena.report.terminal import print_document
from memarena.scoring import load_facts, score_run

from .scoring import is_right

REPORTS = ("report.md", "report.json", "report.txt", "scores.txt", "failures.txt")


def render(run_dir: Path, name: str) -> str:
    """One report. The judge's version, which changes with its code, is replaced by a fixed word."""
    facts = load_facts(run_dir)
    scored = score_run(facts, missing_verdicts(run_dir), "value", is_right)
    scores = scored.scores
    if name == "report.json":
        text = to_json([scores])
    elif name == "report.md":
        text = to_markdown(report_document([scores]))
    elif name == "report.txt":
        text = plain(report_document([scores]))
    elif name == "scores.txt":
        text = plain(score_document(scores))
    else:
        text = plain(failures_document(facts, scored.questions, None, None))
    version = value_judge_version()
    return text.replace(version, "JUDGE-VERSION").replace(version[:12], "JUDGE-VERSIO")


def plain(document: Document) -> str:
    """A document as it is written to a file or pipe."""
    file = io.StringIO()
    print_document(document, file)
    return file.getvalue()
