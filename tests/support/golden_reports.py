"""Renders the reports that golden files hold, from the log of a run."""

from __future__ import annotations

import io
from pathlib import Path

from memarena.cli.scores import report_run
from memarena.evaluation import load_facts
from memarena.judging import JUDGE_NAME, value_judge_version
from memarena.report.answer_list import Filter, failures_document
from memarena.report.document import report_document, score_document
from memarena.report.layout import Document
from memarena.report.render.html import to_html
from memarena.report.render.json import to_json
from memarena.report.render.latex import to_latex
from memarena.report.render.markdown import to_markdown
from memarena.report.render.terminal import print_document

REPORTS = ("report.md", "report.json", "report.txt", "report.tex", "report.html", "scores.txt", "failures.txt")

JUDGED_REPORTS = ("report.md", "report.json", "report.txt", "report.tex", "report.html", "failures.txt")


def render(run_dir: Path, name: str, judge: str = JUDGE_NAME) -> str:
    """One report. The value judge's version, which changes with its code, is replaced by a fixed word."""
    facts = load_facts(run_dir)
    run = report_run(run_dir, judge, traces=name == "report.html")
    if name == "report.json":
        text = to_json([run])
    elif name == "report.html":
        text = to_html([run])
    elif name == "scores.txt":
        text = plain(score_document(run.scores))
    elif name == "failures.txt":
        text = plain(failures_document(facts, run.questions, Filter()))
    else:
        forms = {"report.md": to_markdown, "report.tex": to_latex, "report.txt": plain}
        text = forms[name](report_document([run]))
    version = value_judge_version()
    return text.replace(version, "JUDGE-VERSION").replace(version[:12], "JUDGE-VERSIO")


def plain(document: Document) -> str:
    """A document as it is written to a file or pipe."""
    file = io.StringIO()
    print_document(document, file)
    return file.getvalue()
