"""A sample with the labels that people give it: drawing it once, taking labels, reading and writing ``labels.json``."""

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
from memarena.viewer.annotation.label_log import CANNOT_SAY, SAMPLE_NAME, LabelGiven, LabelLog

SIZE = 500
BINARY_SHARE = 0.6
"""Of a sample: right or wrong; the rest is behaviour in D6."""
LONGEST_NOTE = 4000


@dataclass(frozen=True)
class Disagreement:
    """An item on which people gave different labels."""

    item: SampleItem
    labels: tuple[tuple[str, str], ...]
    """Annotator and label."""
    majority: str | None
    judges: tuple[tuple[str, str | None], ...]
    """Every judge with its label; None: it gave none."""


@dataclass(frozen=True)
class AgreementShown:
    """Agreement on one track: ``track`` has its counts; pairs of people, then by judge its pairs with each of them."""

    track: TrackAgreement
    people: tuple[PairAgreement, ...]
    judges: tuple[tuple[PairAgreement, ...], ...]
    """Of each judge, the pair with the majority last, where there is one."""


class Campaign:
    """A sample of a run and its labels, in a folder of their own."""

    def __init__(self, run: Path, folder: Path, judge: str) -> None:
        self.run = run
        self.folder = folder
        self.judge = judge
        path = folder / SAMPLE_NAME
        self.sample: Sample = read_sample(path)
        self.sample.check_run(run, str(path))
        self.items = self.sample.items
        self.places = {item.item: place for place, item in enumerate(self.items)}
        self.log = LabelLog(folder, self.sample.sha256())

    @cached_property
    def said(self) -> dict[str, dict[str, str]]:
        """Labels by judge and item: of the one that the sample was drawn with, then of all others of the run."""
        names = dict.fromkeys((self.judge, *judges_of(self.run)))
        return {name: labels_of_judge(self.run, self.sample, name) for name in names}

    def choices(self, item: SampleItem) -> tuple[str, ...]:
        """What can be said of an item."""
        return (*item.choices, CANNOT_SAY) if item.track == "binary" else item.choices

    def next_open(self, annotator: str, after: int = -1) -> SampleItem | None:
        """The next item without a label, behind a place, then from the start; None where all have one."""
        done = self.log.current(annotator)
        rest = [*self.items[after + 1 :], *self.items[: after + 1]]
        return next((item for item in rest if item.item not in done), None)

    def give(self, annotator: str, item: str, label: str | None, form: str, **more: str | float | None) -> None:
        """Keep a label. Raises JudgeError for an item or label that the sample does not have.

        Args:
            annotator: who.
            item: of the sample.
            label: None takes the last one back.
            form: id of the form that it came with.
            more: ``note``, ``reason`` and ``seconds`` of the label.
        """
        place = self.places.get(item)
        if place is None:
            raise JudgeError(f"{item}: the sample has no such item")
        choices = self.choices(self.items[place])
        if label is not None and label not in choices:
            raise JudgeError(f"{item}: {label!r}: expected one of {', '.join(choices)}")
        self.log.append(
            [
                LabelGiven.model_validate(
                    {
                        "id": form, "at": utc_now(), "annotator": annotator, "item": item, "label": label,
                        "sample_sha256": self.sample.sha256(), **more,
                    }
                )
            ]
        )  # fmt: skip

    def agreement(self) -> list[AgreementShown]:
        """How far people agree, by track: with each other, and they and their majority with each judge in turn."""
        people = self.log.people()
        between = len(people) * (len(people) - 1) // 2
        by_judge = [agreements(self.sample, people, judge, said) for judge, said in self.said.items()]
        return [
            AgreementShown(
                of_all[0],
                of_all[0].pairs[:between],
                tuple((*own.pairs[between:], *_majority(own)) for own in of_all),
            )
            for of_all in zip(*by_judge, strict=True)
        ]

    def disagreements(self) -> list[Disagreement]:
        """Items on which people differ, in the order of the sample."""
        people = self.log.people()
        found = []
        for item in self.items:
            labels = tuple((name, own[item.item]) for name, own in people.items() if item.item in own)
            if len({label for _, label in labels}) > 1:
                chosen = majority([label for _, label in labels])
                judges = tuple((judge, said.get(item.item)) for judge, said in self.said.items())
                found.append(Disagreement(item, labels, chosen, judges))
        return found

    def as_labels(self) -> Labels:
        """All labels in the form that ``memarena judge --labels`` reads; open items are null.

        Raises JudgeError where nobody gave a label.
        """
        people = self.log.people()
        if not people:
            raise JudgeError(f"{self.folder}: nobody has labelled anything yet")
        names = [item.item for item in self.items]
        annotators: dict[str, dict[str, str | None]] = {
            name: {item: own.get(item) for item in names} for name, own in people.items()
        }
        return Labels(sample_sha256=self.sample.sha256(), annotators=annotators)

    def write_labels(self, path: Path) -> int:
        """Write ``labels.json``; returns how many labels it holds. Raises JudgeError if the file exists."""
        labels = self.as_labels()
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(labels.model_dump_json(indent=2) + "\n")
        except FileExistsError as error:
            raise JudgeError(f"--export {path}: this file exists already; expected a new one") from error
        except OSError as error:
            raise JudgeError(f"--export {path}: cannot be written: {error.strerror}") from error
        return sum(label is not None for own in labels.annotators.values() for label in own.values())

    def take_labels(self, paths: Sequence[Path]) -> int:
        """Append labels of files that differ from what stands; returns how many. The same file twice adds nothing."""
        new = []
        for annotator, own in read_labels(paths, self.sample).items():
            checked_name(annotator)
            standing = self.log.current(annotator)
            for item, label in own.items():
                if item in standing and standing[item].label == label:
                    continue
                before = len(self.log.history(annotator, item))
                key = json.dumps([annotator, item, label, before])
                new.append(
                    LabelGiven(
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
    """The campaign of a folder; its sample is drawn where there is none yet.

    Args:
        run: the run.
        folder: where sample and labels lie.
        judge: whose verdicts make the strata, and whom people are compared with.
        size: items to draw; None: :data:`SIZE`, or whatever the sample there has.
        seed: the same seed draws the same sample.
        draw: False: the sample has to be there.

    Raises:
        JudgeError: the sample there is of another size, seed or run, or there is none to go on with; or the run has no
            verdict by this judge.
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
    there = campaign.sample
    if size is not None and len(there.items) > size:
        raise JudgeError(
            f"--sample {size}: {path} holds {len(there.items)} items already; leave --sample out, or name another "
            "folder with --in"
        )
    if there.seed != seed:
        raise JudgeError(f"--seed {seed}: {path} was drawn with seed {there.seed}; name another folder with --in")
    return campaign


def _majority(track: TrackAgreement) -> tuple[PairAgreement, ...]:
    return (track.majority_with_judge,) if track.majority_with_judge is not None else ()


def checked_name(name: str) -> str:
    """An annotator's name. Raises JudgeError where it is none."""
    if not is_name(name):
        raise JudgeError(f"--annotator {name!r}: {NAME_EXPECTED}")
    return name


def _write_once(path: Path, text: str) -> None:
    """Two that begin at once have one sample: the file appears whole or not at all, and the first one stays."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        half = path.with_name(f".{path.name}.{hashlib.sha256(utc_now().encode()).hexdigest()[:12]}")
        half.write_text(text, encoding="utf-8")
        try:
            path.hardlink_to(half)
        except FileExistsError:
            pass
        finally:
            half.unlink()
    except OSError as error:
        raise JudgeError(f"{path}: cannot be written: {error.strerror}") from error
