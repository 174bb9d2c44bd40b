"""Tests the judge's linear model: a round trip keeps it, scores are integer sums, and invalid files are named."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memarena.judging.linear_model import LinearModel, ModelFileError

NAMES = st.text(st.characters(exclude_characters="\n", codec="utf-8"), min_size=1, max_size=8)
WEIGHTS = st.dictionaries(NAMES, st.integers(-(2**15) + 1, 2**15 - 1), max_size=20)


@given(weights=WEIGHTS, bias=st.integers(-(2**31) + 1, 2**31 - 1))
def test_a_round_trip_keeps_every_weight_and_the_hash(weights: dict[str, int], bias: int) -> None:
    model = LinearModel(weights, bias, 512.0)
    again = LinearModel.from_bytes(model.to_bytes())
    assert (again, again.sha256) == (model, model.sha256)


def test_a_score_sums_the_weight_of_each_feature_once() -> None:
    model = LinearModel({"a": 3, "b": -5}, 1, 1.0)
    assert [model.score(f) for f in ([], ["a", "a"], ["a", "b"], ["unknown"])] == [1, 4, -1, 1]


def test_an_invalid_model_file_is_named() -> None:
    file = io.BytesIO()
    np.savez_compressed(file, features=np.zeros(1))
    for content in (b"", b"text", file.getvalue()):
        with pytest.raises(ModelFileError, match="abstention"):
            LinearModel.from_bytes(content, "abstention")
