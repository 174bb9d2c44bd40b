"""Reads labels that people gave a sample of answers, and computes how far they agree with each other and a judge."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Literal, TypeVar

from memarena_dataset.model import DIMENSION_OF
from pydantic import BaseModel, ConfigDict, ValidationError

from memarena.judging.errors import JudgeError
from memarena.judging.human.agreement import cohen_kappa, fleiss_kappa, majority
from memarena.judging.human.sampling import TRACKS, Sample, SampleItem

_MAJORITY_OF = 3
"""Least labels of an item for a majority: two people who differ have none."""

T = TypeVar("T", bound=BaseModel)


class Labels(BaseModel):
    """``labels.json``: labels by annotator and item; null for an item that is still open."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[1] = 1
    sample_sha256: str
    annotators: dict[str, dict[str, str | None]]


@dataclass(frozen=True)
class PairAgreement:
    """Two raters over the items that both labelled. κ is None where it is not defined."""

    one: str  # words: a name of the file format
    two: str  # words: a name of the file format
    items: int
    agree: float | None
    kappa: float | None


@dataclass(frozen=True)
class Agreement:
    """Agreement over some items of a sample."""

    items: int
    pairs: tuple[PairAgreement, ...]
    """People with each other, then each with the judge."""
    fleiss: float | None
    fleiss_items: int
    """Items that all annotators labelled."""
    majority_items: int
    """Items on which more than half of at least three annotators agree; the others are left out."""
    without_majority: int
    """Items that at least three labelled without a majority."""
    too_few_labels: int
    """Items that fewer than three labelled. With the two counts above they are all items."""
    majority_with_judge: PairAgreement | None
    """None with fewer than three annotators."""


@dataclass(frozen=True)
class DimensionAgreement:
    """Agreement on one dimension of a track."""

    dimension: str
    agreement: Agreement


@dataclass(frozen=True)
class TrackAgreement(Agreement):
    """Agreement on one track of a sample."""

    track: Literal["binary", "behaviour"]
    dimensions: tuple[DimensionAgreement, ...]
    """Agreement on each dimension of the track, D2 first. The track of behaviour has D6 alone."""


def read_sample(path: Path) -> Sample:
    """Read a sample file. Raises JudgeError if it is not a sample."""
    return _read_file(path, Sample)


def read_labels(paths: Sequence[Path], sample: Sample) -> dict[str, dict[str, str]]:
    """Return labels by annotator and item, from one file or several.

    Raises JudgeError if a file is not a file of labels, belongs to another sample, has unknown items or labels, has no
    annotator or an annotator without a name, or if an annotator is in two files.
    """
    choices = {i.item: i.choices for i in sample.items}
    merged: dict[str, dict[str, str]] = {}
    for path in paths:
        labels = _read_file(path, Labels)
        if labels.sample_sha256 != sample.sha256():
            raise JudgeError(f"{path}: sample_sha256: these labels belong to another sample")
        if not labels.annotators:
            raise JudgeError(f"{path}: annotators: expected at least one, with a name and labels")
        for annotator, item_labels in labels.annotators.items():
            if not annotator.strip():
                raise JudgeError(f"{path}: annotators: expected a name for every annotator, got {annotator!r}")
            if annotator in merged:
                raise JudgeError(f"{path}: annotators.{annotator}: this annotator is in another file too")
            for item, label in item_labels.items():
                if item not in choices:
                    raise JudgeError(f"{path}: annotators.{annotator}.{item}: the sample has no such item")
                if label is not None and label not in choices[item]:
                    expected = ", ".join(choices[item])
                    raise JudgeError(f"{path}: annotators.{annotator}.{item}: {label!r}: expected one of {expected}")
            merged[annotator] = {item: label for item, label in item_labels.items() if label is not None}
    return merged


def blank_labels(sample: Sample, annotator: str = "annotator_1") -> Labels:
    """Return a file of labels to be filled in."""
    return Labels(sample_sha256=sample.sha256(), annotators={annotator: dict.fromkeys(i.item for i in sample.items)})


def agreements(
    sample: Sample, people: Mapping[str, Mapping[str, str]], judge: str, judge_labels: Mapping[str, str]
) -> tuple[TrackAgreement, ...]:
    """Compute agreement per track. ``judge_labels`` are the judge's, by item."""

    def over(items: Sequence[SampleItem]) -> Agreement:
        return _agreement([i.item for i in items], people, judge, judge_labels)

    tracks: list[TrackAgreement] = []
    for track in TRACKS:
        items = [i for i in sample.items if i.track == track]
        by_dimension: dict[str, list[SampleItem]] = {}
        for item in sorted(items, key=_dimension):
            by_dimension.setdefault(_dimension(item), []).append(item)
        if items:
            parts = tuple(
                DimensionAgreement(name, over(dimension_items)) for name, dimension_items in by_dimension.items()
            )
            tracks.append(TrackAgreement(**vars(over(items)), track=track, dimensions=parts))
    return tuple(tracks)


def _dimension(item: SampleItem) -> str:
    return DIMENSION_OF[item.family].value


def _agreement(
    items: Sequence[str], people: Mapping[str, Mapping[str, str]], judge: str, judge_labels: Mapping[str, str]
) -> Agreement:
    """Compute the agreement over these items: between people, and of each and their majority with the judge."""
    names = sorted(people)
    pairs = [_pair(a, people[a], b, people[b], items) for a, b in combinations(names, 2)]
    pairs += [_pair(a, people[a], judge, judge_labels, items) for a in names]
    by_all = [[people[a][i] for a in names] for i in items if all(i in people[a] for a in names)]
    voted = {i: [people[a][i] for a in names if i in people[a]] for i in items}
    enough = {i: votes for i, votes in voted.items() if len(votes) >= _MAJORITY_OF}
    decided = {i: label for i, votes in enough.items() if (label := majority(votes)) is not None}
    return Agreement(
        items=len(items),
        pairs=tuple(pairs),
        fleiss=fleiss_kappa(by_all),
        fleiss_items=len(by_all),
        majority_items=len(decided),
        without_majority=len(enough) - len(decided),
        too_few_labels=len(items) - len(enough),
        majority_with_judge=_pair("majority", decided, judge, judge_labels, items) if enough else None,
    )


def _pair(
    rater: str, labels: Mapping[str, str], other: str, other_labels: Mapping[str, str], items: Sequence[str]
) -> PairAgreement:
    common_items = [i for i in items if i in labels and i in other_labels]
    left, right = [labels[i] for i in common_items], [other_labels[i] for i in common_items]
    agree = sum(a == b for a, b in zip(left, right, strict=True)) / len(common_items) if common_items else None
    return PairAgreement(rater, other, len(common_items), agree, cohen_kappa(left, right))


def _read_file(path: Path, model: type[T]) -> T:
    """Read a file of a model's type. Raises JudgeError if it cannot be read, is invalid or has a field twice."""
    try:
        content = path.read_bytes()
        read = model.model_validate_json(content)
    except OSError as error:
        raise JudgeError(f"{path}: cannot be read: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "file"
        raise JudgeError(f"{path}: {where}: {first['msg'].lower()}") from error
    twice = _repeated_field(json.loads(content, object_pairs_hook=_Pairs))
    if twice:
        raise JudgeError(f"{path}: {twice}: stands twice; expected each field once")
    return read


class _Pairs(list[tuple[str, object]]):
    """A JSON object as its pairs: a dict would keep only the last of two fields with the same name."""


def _repeated_field(value: object) -> str:
    """Return the path of the first field that is in its object twice, or an empty text."""
    if not isinstance(value, list):
        return ""
    pairs = value if isinstance(value, _Pairs) else [(str(index), member) for index, member in enumerate(value)]
    names: set[str] = set()
    for name, member in pairs:
        if name in names:
            return name
        names.add(name)
        if inner := _repeated_field(member):
            return f"{name}.{inner}"
    return ""
