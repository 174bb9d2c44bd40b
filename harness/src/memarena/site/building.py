"""Builds a site: reads each run or bundle once, writes its summary, and generates the pages from the summaries.

Pages depend on nothing but the summaries, so that :mod:`memarena.site.checking` can generate and compare them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from memarena.forked_worker import can_fork, forked_each
from memarena.report.question_view.records import QuestionView
from memarena.report.question_view.sample import sample_questions
from memarena.scoring.results import QuestionScore
from memarena.scoring.run import ScoredRun
from memarena.scoring.run_facts import RunFacts
from memarena.site.archives import pack
from memarena.site.certificates import LOG_FOLDER, BundleChecker, Certificate
from memarena.site.entries import Entry, entry_of
from memarena.site.errors import SiteError
from memarena.site.rendering import INDEX, questions_file, read_index, site_files
from memarena.site.submissions import Submission

Views = Callable[[Path, RunFacts, Sequence[QuestionScore], str], Iterable[QuestionView]]
"""Returns traces of questions, each the way from asking to verdict.

Its arguments are the folder of the log, the facts of the run, the scores of the questions, and the judge.
"""


@dataclass(frozen=True)
class Loaded:
    """A run that was read and scored, with its path or bundle."""

    path: Path
    name: str
    facts: RunFacts
    scored: ScoredRun
    logs: Mapping[str, Path]
    """By cell id: folder of its log."""
    certificate: Certificate | None = None
    submission: Submission | None = None


Reading = Callable[[], Loaded]
"""Reads and scores a run, or raises MemArenaError."""
PROCESSES = 2
"""Processes that read and score runs in parallel; each holds a run in memory."""
FORK_FROM = 4
"""Number of runs from which parallel processes are worth their start."""


@dataclass(frozen=True)
class Shown:
    """Settings of what a site publishes beyond figures."""

    views: Views
    questions: int = 0
    """Traces of each row, if its data set is public."""
    public: frozenset[str] = frozenset()
    """Names or SHA-256 of data sets whose questions, answers and bundles may be published."""


def load_bundle(
    bundle: Path, name: str, check: BundleChecker, allowed: Path | None, submission: Submission | None
) -> Loaded:
    """Load a bundle that verifies. Raises SiteError with the first fault of a bundle that does not."""
    checked_bundle = check(bundle, allowed)
    if checked_bundle.faults:
        file, message = checked_bundle.faults[0]
        more_faults = (
            f" (and {len(checked_bundle.faults) - 1} more: `memarena-spark verify`)"
            if len(checked_bundle.faults) > 1
            else ""
        )
        raise SiteError(f"{bundle}: {file}: {message}{more_faults}")
    assert (
        checked_bundle.facts is not None
        and checked_bundle.scored is not None
        and checked_bundle.certificate is not None
    )
    if submission is not None and submission.key != checked_bundle.certificate.key:
        raise SiteError(
            f"{bundle.parent}/submission.toml: key: states {submission.key}; expected that of the signature, "
            f"{checked_bundle.certificate.key or 'unsigned'}"
        )
    logs = {cell.cell_id: bundle / LOG_FOLDER for cell in checked_bundle.facts.manifest.cells}
    entry_name = submission.name if submission is not None else name
    return Loaded(
        bundle, entry_name, checked_bundle.facts, checked_bundle.scored, logs, checked_bundle.certificate, submission
    )


def build(runs: Iterable[Reading], out: Path, shown: Shown) -> list[Entry]:
    """Write the site to ``out``, a new folder or an existing site, and return its entries.

    Raises SiteError for a run that is given twice, or if ``out`` is another folder.
    """
    readings = list(runs)
    entries: dict[str, Entry] = {}
    paths: dict[str, Path] = {}
    with _replaced(out) as folder:
        for path, entry in _read(readings, folder, shown):
            if entry.scores.run_id in paths:
                first = paths[entry.scores.run_id]
                raise SiteError(f"{path}: run {entry.scores.run_id}: is in {first} too; expected each run once")
            paths[entry.scores.run_id] = path
            entries[entry.entry_id] = entry
        if not entries:
            raise SiteError("site: expected at least one run or bundle")
        for file, content in site_files(list(entries.values())):
            _write(folder, file, content)
    return list(entries.values())


def _read(readings: Sequence[Reading], folder: Path, shown: Shown) -> Iterator[tuple[Path, Entry]]:
    """Yield path and entry of each run; its bundle and the page of its questions are written to ``folder``."""

    def read(number: int) -> tuple[Path, Entry]:
        run = readings[number]()
        return run.path, _written(run, folder, shown)

    if len(readings) < FORK_FROM or not can_fork():
        yield from map(read, range(len(readings)))
        return
    yield read(0)  # before forking, so that caches which runs of one data set share are filled once
    with forked_each(lambda number: read(number + 1), len(readings) - 1, PROCESSES) as others:
        yield from others


def _written(run: Loaded, folder: Path, shown: Shown) -> Entry:
    entry, traces = _entry(run, shown)
    if entry.certificate is not None and entry.public:
        digest = pack(run.path, entry.entry_id, folder / "bundles" / f"{entry.entry_id}.tar.gz")
        entry = entry.model_copy(update={"archive_sha256": digest})
    if traces:
        _write(folder, *questions_file(entry, traces))
    return entry


def _entry(run: Loaded, shown: Shown) -> tuple[Entry, list[QuestionView]]:
    dataset = run.facts.manifest.dataset
    public = bool(run.submission and run.submission.public_dataset) or bool(
        shown.public & {dataset.name, dataset.sha256}
    )
    entry = entry_of(
        run.name, run.facts, run.scored, certificate=run.certificate, submission=run.submission, public=public
    )
    traces = traces_of(run, shown.views, shown.questions) if public and shown.questions else []
    per_row = shown.questions if traces else 0
    return entry.model_copy(update={"questions": len(traces), "questions_per_row": per_row}), traces


def traces_of(run: Loaded, views: Views, per_row: int) -> list[QuestionView]:
    """Return the traces of a sample of questions of a run, ``per_row`` of each row."""
    sample = sample_questions(run.scored.scores.rows, run.scored.questions, quota=per_row)
    traces: dict[tuple[str, str], QuestionView] = {}
    for log in dict.fromkeys(run.logs.values()):
        log_sample = [score for score in sample if run.logs[score.cell_id] == log]
        for view in views(log, run.facts, log_sample, run.scored.scores.judge):
            traces[view.answers[0].cell_id, view.instance_id] = view
    return [traces[score.cell_id, score.instance_id] for score in sample]


# ------------------------------------------------------------------ files


@contextmanager
def _replaced(out: Path) -> Iterator[Path]:
    """Yield a temporary folder next to ``out`` that replaces it at the end, or is removed after an error."""
    if out.exists() and not (out / INDEX).is_file() and (not out.is_dir() or any(out.iterdir())):
        raise SiteError(f"--out {out}: expected a new folder, or a site, which has {INDEX}")
    if (out / INDEX).is_file():
        read_index((out / INDEX).read_bytes(), f"--out {out}: {INDEX}")
    folder = out.absolute().with_name(f".{out.absolute().name}.partial-{os.getpid()}")
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise SiteError(f"--out {out}: cannot be made: {error.strerror}") from error
    try:
        yield folder
        previous = folder.with_name(f".{out.absolute().name}.before-{os.getpid()}")
        if out.exists():
            out.rename(previous)
        folder.rename(out)
        shutil.rmtree(previous, ignore_errors=True)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _write(folder: Path, path: str, content: str) -> None:
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(content, encoding="utf-8", newline="\n")
