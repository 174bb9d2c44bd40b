"""Computes the agreement of a run's judge with people who labelled a sample of its answers, for reports."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from memarena_dataset.printing import write_err

from memarena.evaluation import labels_of_judge
from memarena.judging.human.labels import Agreement, TrackAgreement, agreements, read_sample
from memarena.report.people import LabelledPart, LabelledSample
from memarena.viewer.annotation.label_log import ANNOTATIONS, SAMPLE_NAME, LabelLog

_TRACK_NAMES = {"binary": "right or wrong", "behaviour": "behaviour (D6)"}


def labelled_sample(run: Path, judge: str) -> LabelledSample | None:
    """Return the agreement of the labels in a run's ``annotations``; None if there are no labels.

    Raises JudgeError for files that cannot be read or belong to another run.
    """
    folder = run / ANNOTATIONS
    if not (folder / SAMPLE_NAME).exists():
        return None
    sample = read_sample(folder / SAMPLE_NAME)
    sample.check_run(run, str(folder / SAMPLE_NAME))
    log = LabelLog(folder, sample.sha256())
    write_err("".join(f"warning: {folder}: {fault}\n" for fault in log.faults))
    people = {name: labels for name, labels in log.people().items() if labels}
    if not people:
        return None
    tracks = agreements(sample, people, judge, labels_of_judge(run, sample, judge))
    parts = tuple(part for track in tracks for part in _parts(track))
    return LabelledSample(run_id=sample.run_id, judge=judge, annotators=len(people), parts=parts)


def _parts(track: TrackAgreement) -> Iterator[LabelledPart]:
    if len(track.dimensions) > 1:
        for part in track.dimensions:
            yield _part(part.dimension, part.agreement)
    yield _part(_TRACK_NAMES[track.track], track)


def _part(name: str, own: Agreement) -> LabelledPart:
    pair = own.majority_with_judge
    return LabelledPart(
        name=name,
        items=own.items,
        fleiss_items=own.fleiss_items,
        fleiss_kappa=own.fleiss,
        majority_items=own.majority_items,
        compared=0 if pair is None else pair.items,
        agree=None if pair is None else pair.agree,
        kappa=None if pair is None else pair.kappa,
    )
