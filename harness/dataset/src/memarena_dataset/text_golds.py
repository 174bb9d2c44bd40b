"""Warns of golds that are text alone, on which the judge without a model sometimes errs."""

from __future__ import annotations

from collections.abc import Iterable

from memarena_dataset.gold import Gold, OpenGold


def text_gold_warning(golds: Iterable[Gold]) -> str:
    """Return a warning with the number of open golds that are text alone and the remedy; empty if there are none."""
    open_golds = [gold for gold in golds if isinstance(gold, OpenGold)]
    in_text = sum(not gold.required_values for gold in open_golds)
    if not in_text:
        return ""
    return (
        f"{in_text:,} of {len(open_golds):,} golds of open answers are text alone, where the judge without a model "
        "errs (rates: docs/judging.md): give them typed values (ground_truth.values, docs/dataset-format.md), or let a "
        "model judge (memarena judge RUN --endpoint URL)"
    )
