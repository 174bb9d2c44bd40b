"""How far a judge can be trusted: planted answers whose truth is known, and a judge's rates of error on them."""

from memarena.judging.calibration.behaviours import LabelRates, PlantedBehaviour, label_rates, plant_behaviours
from memarena.judging.calibration.rates import Rates, Ruler, agreement, by_token_f1, by_value_judge, grouped, rates
from memarena.judging.calibration.synthetic_answers import Phrasings, Planted, phrasings_sha256, plant
from memarena.judging.calibration.with_model import PlantedWords, ask_about_planted

__all__ = [
    "LabelRates",
    "Phrasings",
    "Planted",
    "PlantedBehaviour",
    "PlantedWords",
    "Rates",
    "Ruler",
    "agreement",
    "ask_about_planted",
    "by_token_f1",
    "by_value_judge",
    "grouped",
    "label_rates",
    "phrasings_sha256",
    "plant",
    "plant_behaviours",
    "rates",
]
