"""Manages a campaign of blind labelling: draws the sample once, records labels, imports and exports ``labels.json``.

People label answers without seeing a verdict; their agreement with a judge shows how far its verdicts can be relied on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from memarena.evaluation import draw_sample_of, judges_of, labels_of_judge
from memarena.judging.errors import JudgeError
from memarena.judging.human.agreement import majority
from memarena.judging.human.labels import Labels, PairAgreement, TrackAgreement, agreements, read_labels, read_sample
from memarena.judging.human.sampling import Sample, SampleItem
from memarena.log.line_file import NAME_EXPECTED, is_name, utc_now
from memarena.viewer.annotation.label_log import CANNOT_SAY, SAMPLE_NAME, LabelEntry, LabelLog

SIZE = 500
"""Default number of items of a sample."""
BINARY_SHARE = 0.6
"""Share of a sample's items labelled right or wrong; the others are labelled by behaviour in D6."""
LONGEST_NOTE = 4000


@dataclass(frozen=True)
class Disagreement:
    """An item to which annotators gave different labels."""

    item: SampleItem
    labels: tuple[tuple[str, str], ...]
    """(annotator, label)."""
    majority: str | None
    """Label of the majority; None if there is none."""
    judges: tuple[tuple[str, str | None], ...]
    """(judge, its label); None: the judge has no verdict."""


@dataclass(frozen=True)
class AgreementShown:
    """Agreement on one track (right or wrong, or behaviour): between annotators, and of annotators with each judge."""

    track: TrackAgreement
    people: tuple[PairAgreement, ...]
    judges: tuple[tuple[PairAgreement, ...], ...]
    """For each judge its pair with each annotator, and last with the majority if there is one."""


class Campaign:
    """A sample of a run's answers and its labels, stored in one folder."""

    def __init__(self, run: Path, folder: Path, judge: str) -> None:
        self.run = run
        self.folder = folder
        self.judge = judge
        path = folder / SAMPLE_NAME
        self.sample: Sample = read_sample(path)
        self.sample.check_run(run, str(path))
        self.items = self.sample.items
        self.places = {item.item: index for index, item in enumerate(self.items)}
        self.log = LabelLog(folder, self.sample.sha256())

    @cached_property
    def labels_by_judge(self) -> dict[str, dict[str, str]]:
        """Labels of judges, by judge and item: the judge that the sample was drawn with first."""
        names = dict.fromkeys((self.judge, *judges_of(self.run)))
        return {name: labels_of_judge(self.run, self.sample, name) for name in names}

    def choices(self, item: SampleItem) -> tuple[str, ...]:
        """Return the labels that an annotator may choose for an item."""
        return (*item.choices, CANNOT_SAY) if item.track == "binary" else item.choices

    def next_open(self, annotator: str, after: int = -1) -> SampleItem | None:
        """Return the next item without a label after index ``after``, then from the start; None if all have one."""
        done = self.log.current(annotator)
        in_order = [*self.items[after + 1 :], *self.items[: after + 1]]
        return next((item for item in in_order if item.item not in done), None)

    def give(self, annotator: str, item: str, label: str | None, form: str, **more: str | float | None) -> None:
        """Record a label. Raises JudgeError for an item or label that the sample does not have.

        Args:
            annotator: name.
            item: id in the sample.
            label: None withdraws the last label.
            form: id of the page's form; the same form sent again records nothing.
            more: ``note``, ``reason`` and ``seconds`` of the label.
        """
        index = self.places.get(item)
        if index is None:
            raise JudgeError(f"{item}: the sample has no such item")
        choices = self.choices(self.items[index])
        if label is not None and label not in choices:
            raise JudgeError(f"{item}: {label!r}: expected one of {', '.join(choices)}")
        self.log.append(
            [
                LabelEntry.model_validate(
                    {
                        "id": form, "at": utc_now(), "annotator": annotator, "item": item, "label": label,
                        "sample_sha256": self.sample.sha256(), **more,
                    }
                )
            ]
        )  # fmt: skip

    def agreement(self) -> list[AgreementShown]:
        """Compute agreement for each track: between annotators, and of each and of their majority with each judge."""
        people = self.log.people()
        annotator_pairs = len(people) * (len(people) - 1) // 2
        by_judge = [agreements(self.sample, people, judge, labels) for judge, labels in self.labels_by_judge.items()]
        return [
            AgreementShown(
                by_judge_of_track[0],
                by_judge_of_track[0].pairs[:annotator_pairs],
                tuple((*track.pairs[annotator_pairs:], *_majority(track)) for track in by_judge_of_track),
            )
            for by_judge_of_track in zip(*by_judge, strict=True)
        ]

    def disagreements(self) -> list[Disagreement]:
        """Return the items on which annotators differ, in the order of the sample."""
        people = self.log.people()
        result = []
        for item in self.items:
            labels = tuple((name, by_item[item.item]) for name, by_item in people.items() if item.item in by_item)
            if len({label for _, label in labels}) > 1:
                majority_label = majority([label for _, label in labels])
                judges = tuple(
                    (judge, judge_labels.get(item.item)) for judge, judge_labels in self.labels_by_judge.items()
                )
                result.append(Disagreement(item, labels, majority_label, judges))
        return result

    def as_labels(self) -> Labels:
        """Return all labels in the format that ``memarena judge --labels`` reads; items without a label are null.

        Raises JudgeError if there is no label at all.
        """
        people = self.log.people()
        if not people:
            raise JudgeError(f"{self.folder}: no item has a label yet")
        names = [item.item for item in self.items]
        annotators: dict[str, dict[str, str | None]] = {
            name: {item: by_item.get(item) for item in names} for name, by_item in people.items()
        }
        return Labels(sample_sha256=self.sample.sha256(), annotators=annotators)

    def write_labels(self, path: Path) -> int:
        """Write ``labels.json`` and return the number of its labels. Raises JudgeError if the file exists."""
        labels = self.as_labels()
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(labels.model_dump_json(indent=2) + "\n")
        except FileExistsError as error:
            raise JudgeError(f"--export {path}: this file exists already; expected a new one") from error
        except OSError as error:
            raise JudgeError(f"--export {path}: cannot be written: {error.strerror}") from error
        return sum(label is not None for by_item in labels.annotators.values() for label in by_item.values())

    def take_labels(self, paths: Sequence[Path]) -> int:
        """Append the labels of files that differ from the present ones; return how many.

        Ids are derived from the labels, so the same file appended twice adds nothing.
        """
        new = []
        for annotator, by_item in read_labels(paths, self.sample).items():
            checked_name(annotator)
            current = self.log.current(annotator)
            for item, label in by_item.items():
                if item in current and current[item].label == label:
                    continue
                earlier_lines = len(self.log.history(annotator, item))
                key = json.dumps([annotator, item, label, earlier_lines])
                new.append(
                    LabelEntry(
                        id=hashlib.sha256(key.encode()).hexdigest()[:32],
                        at=utc_now(),
                        annotator=annotator,
                        item=item,
                        label=label,
                        reason="imported from a file",
                        sample_sha256=self.sample.sha256(),
                    )
                )
        return self.log.append(new)


def open_campaign(
    run: Path,
    folder: Path,
    judge: str,
    *,
    size: int | None = None,
    seed: int = 0,
    draw: bool = True,
) -> Campaign:
    """Open the campaign in a folder; draw its sample if there is none yet.

    Args:
        run: folder of the run.
        folder: folder of sample and labels.
        judge: name of the judge whose verdicts make the strata of the sample.
        size: items to draw; None: :data:`SIZE`, or the size of the existing sample.
        seed: the same seed draws the same sample.
        draw: False: raise JudgeError if there is no sample yet.

    Raises:
        JudgeError: the existing sample is larger than ``size``, or of another seed or run; there is no sample and
            ``draw`` is False; or the run has no verdict by this judge.
    """
    path, judges = folder / SAMPLE_NAME, judges_of(run)
    if judge not in judges:
        raise JudgeError(f"--judge {judge}: no verdict by this judge in {run}; there are: {', '.join(judges)}")
    if not draw and not path.exists():
        raise JudgeError(f"{path}: there is no sample yet; memarena annotate RUN --annotator NAME draws one")
    if not path.exists():
        binary = round(BINARY_SHARE * (size or SIZE))
        sample = draw_sample_of(
            run,
            judge,
            seed,
            binary_items=binary,
            behaviour_items=(size or SIZE) - binary,
        )
        _write_once(path, sample.model_dump_json(indent=2) + "\n")
    campaign = Campaign(run, folder, judge)
    existing = campaign.sample
    if size is not None and len(existing.items) > size:
        raise JudgeError(
            f"--sample {size}: {path} holds {len(existing.items)} items already; leave --sample out, or name another "
            "folder with --in"
        )
    if existing.seed != seed:
        raise JudgeError(f"--seed {seed}: {path} was drawn with seed {existing.seed}; name another folder with --in")
    return campaign


def _majority(track: TrackAgreement) -> tuple[PairAgreement, ...]:
    return (track.majority_with_judge,) if track.majority_with_judge is not None else ()


def checked_name(name: str) -> str:
    """Return ``name`` if it is a valid annotator's name. Raises JudgeError if not."""
    if not is_name(name):
        raise JudgeError(f"--annotator {name!r}: {NAME_EXPECTED}")
    return name


def _write_once(path: Path, text: str) -> None:
    """Write a file atomically unless it exists: of two processes that start at once, the first one's sample is used."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{hashlib.sha256(utc_now().encode()).hexdigest()[:12]}")
        temporary.write_text(text, encoding="utf-8")
        try:
            path.hardlink_to(temporary)
        except FileExistsError:
            pass
        finally:
            temporary.unlink()
    except OSError as error:
        raise JudgeError(f"{path}: cannot be written: {error.strerror}") from error
