"""Defines an entry of a site: the scored summary of one run, certified or not, from which all pages are generated."""

from __future__ import annotations

import hashlib
import re

from memarena.log.base import Record
from memarena.report.provenance import Provenance
from memarena.report.report_input import ReportInput, report_input
from memarena.report.rounding import rounded
from memarena.scoring.costs import RowCosts
from memarena.scoring.results import RowScores, RunScores
from memarena.scoring.run import ScoredRun
from memarena.scoring.run_facts import RunFacts
from memarena.site.certificates import Certificate
from memarena.site.ego_sums import EgoSums, ego_sums_of
from memarena.site.submissions import Submission

SUMMARY_VERSION = 1
_NAME_CHARACTERS = 80


class Entry(Record):
    """All data of a run that pages show, one file of the site.

    Numbers are rounded to nine digits, so that every machine writes the same bytes.
    """

    summary_version: int = SUMMARY_VERSION
    entry_id: str
    """Name of files, unique in a site: name of the run with a hash of its id."""
    name: str
    certificate: Certificate | None
    submission: Submission | None
    public: bool
    """Whether its data set may be published: questions, answers and the bundle, which holds the gold."""
    archive_sha256: str | None = None
    """SHA-256 of ``bundles/ENTRY.tar.gz``; None if the bundle is not in the site."""
    questions: int = 0
    """Number of traces of questions in the site."""
    questions_per_row: int = 0
    scores: RunScores
    costs: tuple[RowCosts, ...]
    ego_sums: tuple[EgoSums, ...] = ()
    """Sums of each row of a bundle that certifies scores; else empty."""
    provenance: Provenance

    @property
    def device(self) -> str:
        """Device of the run: the GPU that a certificate names, else the CPU, else the platform."""
        if self.certificate is not None and self.certificate.gpu:
            return self.certificate.gpu
        return self.provenance.versions.cpu or self.provenance.versions.platform

    def report(self, rows: tuple[RowScores, ...] | None = None) -> ReportInput:
        """Return the run as input of a report; with ``rows``, only these."""
        scores = self.scores if rows is None else self.scores.model_copy(update={"rows": rows})
        return ReportInput(scores, self.provenance, self.costs)

    def as_json(self) -> str:
        """Return the content of the entry's file."""
        return self.model_dump_json(indent=1) + "\n"


def entry_of(
    name: str,
    facts: RunFacts,
    scored: ScoredRun,
    *,
    certificate: Certificate | None = None,
    submission: Submission | None = None,
    public: bool = False,
) -> Entry:
    """Build the summary of a run, without paths of the machine on which it was scored."""
    run = report_input(facts, scored)
    dataset = facts.manifest.dataset.model_copy(update={"path": ""})
    assert run.provenance is not None
    unrounded = Entry(
        entry_id=entry_id(name, run.scores.run_id),
        name=name[:_NAME_CHARACTERS],
        certificate=certificate,
        submission=submission,
        public=public,
        scores=run.scores.model_copy(update={"dataset": dataset}),
        costs=run.costs,
        ego_sums=ego_sums_of(scored) if certificate is not None and "scores" in certificate.certifies else (),
        provenance=run.provenance.model_copy(update={"dataset": dataset}),
    )
    return Entry.model_validate(rounded(unrounded.model_dump(mode="json")))


def entry_id(name: str, run_id: str) -> str:
    """Return a readable name of files that is unique for the run."""
    return f"{slug(name)}-{hashlib.sha256(run_id.encode(errors='backslashreplace')).hexdigest()[:8]}"


def slug(text: str) -> str:
    """Return text in lower case with hyphens, at most 40 characters, safe as a file name."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower())[:40].strip("-") or "x"


def unique_slug(text: str) -> str:
    """Return a slug that is unique for the text: with a hash unless it equals the text."""
    short = slug(text)
    return (
        short if short == text else f"{short}-{hashlib.sha256(text.encode(errors='backslashreplace')).hexdigest()[:6]}"
    )
