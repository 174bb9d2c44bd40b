"""Renders reports from a run's log, and cuts out of each the parts that its golden file holds."""

from __future__ import annotations

import io
import re
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

JUDGED_REPORTS = ("report.json", "report.txt", "failures.txt")
"""Reports checked for a second judge too: figures and texts change, and other formats come from the same document."""

PARTS = {
    "report.md": ("# MemArena.*?(?=## Where the spread)",),
    "report.tex": ("% MemArena.*?% end table main-grid\n", r"\\end{document}\n"),
    "report.html": (
        '<section class="summary".*?</figure>\n',
        '<section class="run".*?</section>\n',
        '<section class="part" aria-labelledby="main-grid">.*?</section>\n',
        '<details class="question-trace">.*?\n</details>\n',
    ),
}
"""Patterns of the parts that a golden file holds: the first run, table, figure and question.

The other formats lay out what the files of JSON and terminal text hold in full."""


def render(run_dir: Path, name: str, judge: str = JUDGE_NAME) -> str:
    """Return one report, with a fixed word for the value judge's version, which changes with its code."""
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


def golden(name: str, text: str) -> str:
    """Return what the golden file of a report holds: all of it, or the parts named in ``PARTS``."""
    if name not in PARTS:
        return text
    parts = [(pattern, re.search(pattern, text, re.DOTALL)) for pattern in PARTS[name]]
    missing = [pattern for pattern, part in parts if part is None]
    assert not missing, f"{name} holds nothing like {missing[0]}"
    return "".join(part[0] for _, part in parts if part)


def plain(document: Document) -> str:
    """Return a document as it is written to a file or pipe."""
    file = io.StringIO()
    print_document(document, file)
    return file.getvalue()
