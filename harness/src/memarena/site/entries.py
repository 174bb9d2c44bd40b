"""An entry of a site: one run, certified or not, as the scored summary from which every page is made."""

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
    """Everything that pages show of a run. Two machines give the same bytes: figures have nine digits."""

    summary_version: int = SUMMARY_VERSION
    entry_id: str
    """Unique in a site, a file's name: what the run is called and a hash of its id."""
    name: str
    certificate: Certificate | None
    submission: Submission | None
    public: bool
    """Whether its data set may be published: questions, answers and the bundle, which holds the gold."""
    archive_sha256: str | None = None
    """Of ``bundles/ENTRY.tar.gz``; None where the site does not carry the bundle."""
    questions: int = 0
    """Traces of questions that the site carries."""
    questions_per_row: int = 0
    scores: RunScores
    costs: tuple[RowCosts, ...]
    ego_sums: tuple[EgoSums, ...] = ()
    """Of each row of a bundle that certifies scores."""
    provenance: Provenance

    @property
    def device(self) -> str:
        """What it ran on: the GPU that a certificate names, else the processors, else the platform."""
        if self.certificate is not None and self.certificate.gpu:
            return self.certificate.gpu
        return self.provenance.versions.cpu or self.provenance.versions.platform

    def report(self, rows: tuple[RowScores, ...] | None = None) -> ReportInput:
        """The run as reports take it; with ``rows`` those alone."""
        scores = self.scores if rows is None else self.scores.model_copy(update={"rows": rows})
        return ReportInput(scores, self.provenance, self.costs)

    def as_json(self) -> str:
        """The file of the entry."""
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
    """The summary of a run. Paths of the machine that it was scored on are left out."""
    run = report_input(facts, scored)
    dataset = facts.manifest.dataset.model_copy(update={"path": ""})
    assert run.provenance is not None
    whole = Entry(
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
    return Entry.model_validate(rounded(whole.model_dump(mode="json")))


def entry_id(name: str, run_id: str) -> str:
    """A file's name: readable, and unique for the run."""
    return f"{slug(name)}-{hashlib.sha256(run_id.encode(errors='backslashreplace')).hexdigest()[:8]}"


def slug(text: str) -> str:
    """Lower case and hyphens, at most 40 characters: never a path."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower())[:40].strip("-") or "x"


def unique_slug(text: str) -> str:
    """A slug that other texts do not have."""
    short = slug(text)
    return (
        short if short == text else f"{short}-{hashlib.sha256(text.encode(errors='backslashreplace')).hexdigest()[:6]}"
    )
