"""Validates a data set folder: runs all checks of a profile and collects their findings.

``structural`` applies to any data set: files, ids, times, projections, evidence. ``full`` is for worlds with typed
gold: every question must also have exactly one right answer, which follows from the evidence alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from memarena_dataset.checks import cloze, evidence, overlap, permission, structural, uniqueness, wording
from memarena_dataset.checks.findings import Finding
from memarena_dataset.checks.world import World
from memarena_dataset.errors import DatasetError
from memarena_dataset.io.files import FACTS, Folder
from memarena_dataset.io.reading import Dataset, open_dataset

Check = Callable[[World], Iterator[Finding]]


class Profile(str, Enum):
    """The set of checks that a data set must pass."""

    STRUCTURAL = "structural"
    FULL = "full"


STRUCTURAL: tuple[Check, ...] = (
    structural.readable,
    structural.sessions,
    structural.small_files,
    structural.text_golds,
    structural.references,
    structural.schedules_and_edges,
    structural.ego_map,
    structural.questions,
    evidence.outside_projection,
    evidence.after_question,
)
FULL: tuple[Check, ...] = (
    structural.facts_readable,
    evidence.without_evidence,
    evidence.without_types,
    evidence.gold_outside_evidence,
    evidence.insufficient_turns,
    uniqueness.abstain_claim_occurs,
    uniqueness.asked_twice,
    uniqueness.rival_value,
    uniqueness.query_holds_gold,
    cloze.not_one_right,
    cloze.different_types,
    cloze.never_heard,
    cloze.gives_itself_away,
    permission.against_rules,
    permission.friendship_not_shown,
    permission.level_outdated,
    permission.unnamed_person,
    permission.blind_policy_wins,
    overlap.repeats_evidence,
    wording.unknown_wording,
)


@dataclass(frozen=True, slots=True)
class Validation:
    """The findings of a validation. A data set is valid if there are no errors."""

    profile: Profile
    errors: tuple[Finding, ...]
    warnings: tuple[Finding, ...]
    not_checked: tuple[str, ...]
    """Checks that could not be made, with the missing file or key."""

    @property
    def valid(self) -> bool:
        """Whether there are no errors; warnings do not count."""
        return not self.errors


def validate(path: Path, profile: Profile = Profile.STRUCTURAL) -> Validation:
    """Check a data set folder.

    Raises:
        DatasetError: there is nothing to check, as the folder or the corpus is missing or a gzip file is broken.
    """
    with open_dataset(path, strict=False) as dataset:
        world = World(dataset)
        checks = STRUCTURAL if profile is Profile.STRUCTURAL else STRUCTURAL + FULL
        findings = [finding for check in checks for finding in check(world)]
        not_checked = tuple(_not_checked(world, profile))
    return Validation(
        profile=profile,
        errors=tuple(finding for finding in findings if finding.severity == "error"),
        warnings=tuple(finding for finding in findings if finding.severity == "warning"),
        not_checked=not_checked,
    )


def refuse_invalid(dataset: Dataset) -> None:
    """Raise DatasetError for an open data set in which ``validate`` finds an error, with the first and their number.

    Backends would be blamed for wrong answers to the questions of an invalid data set.
    """
    world = World(dataset)
    errors = [finding for check in STRUCTURAL for finding in check(world) if finding.severity == "error"]
    if errors:
        more = f" (and {len(errors) - 1} more; memarena dataset validate {dataset.path} lists them)"
        raise DatasetError(f"{errors[0].problem}{more if len(errors) > 1 else ''}")


def _not_checked(world: World, profile: Profile) -> Iterator[str]:
    if profile is Profile.STRUCTURAL:
        return
    if Folder(world.dataset.path).find(FACTS) is None:
        yield "second values and latest sharing levels: facts.jsonl is missing"
    without = sum(1 for instance in world.by_ego if not instance.metadata.get("fact_id"))
    if without:
        yield f"questions asked twice, siblings, second values for {without} questions: metadata.fact_id is missing"
