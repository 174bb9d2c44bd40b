"""Measures how far a judge can be trusted: by its error rates on synthetic answers whose truth is known."""

from memarena.judging.calibration.behaviours import (
    LabelRates,
    SyntheticBehaviour,
    label_rates,
    labels_by_rules,
    synthetic_behaviours,
)
from memarena.judging.calibration.framed_golds import make_framed
from memarena.judging.calibration.rates import Rates, Ruler, agreement, by_text_judge, by_value_judge, grouped, rates
from memarena.judging.calibration.synthetic_answers import Phrasings, SyntheticAnswer, make_answers, phrasings_sha256

__all__ = [
    "LabelRates",
    "Phrasings",
    "Rates",
    "Ruler",
    "SyntheticAnswer",
    "SyntheticBehaviour",
    "agreement",
    "by_text_judge",
    "by_value_judge",
    "grouped",
    "label_rates",
    "labels_by_rules",
    "make_answers",
    "make_framed",
    "phrasings_sha256",
    "rates",
    "synthetic_behaviours",
]
