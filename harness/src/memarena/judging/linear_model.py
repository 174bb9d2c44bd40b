"""Defines a linear model with integer weights: the same features give the same score, bit for bit, on every machine.

So a verdict can be repeated anywhere. The models of abstention, commitment and text golds have this form (``models/``).
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from memarena.judging.tables import data_file

LARGEST_WEIGHT = 2**15 - 1
"""Largest weight that an int16 holds; training scales its weights to it."""
_LARGEST_SCORE = 2**31 - 1


class ModelFileError(ValueError):
    """A file is not a linear model; the message names it."""


@dataclass(frozen=True)
class LinearModel:
    """Weights over features that are present or absent.

    ``weights`` are int16, ``bias`` and scores int32. A score above 0 is a yes; ``scale`` units of it are one logit.
    """

    weights: Mapping[str, int]
    bias: int
    scale: float

    def score(self, features: Iterable[str]) -> int:
        """Return the bias plus the weights of the features, each counted once, limited to the range of int32."""
        total = self.bias + sum(filter(None, map(self.weights.get, set(features))))
        return max(-_LARGEST_SCORE, min(_LARGEST_SCORE, total))

    def to_bytes(self) -> bytes:
        """Return the model as a compressed ``.npz``, with the features sorted by code points."""
        names = sorted(self.weights)
        if any("\n" in name for name in names):
            raise ModelFileError("a feature with a line break cannot be stored")
        out = io.BytesIO()
        np.savez_compressed(
            out,
            features=np.frombuffer("\n".join(names).encode(), dtype=np.uint8),
            weights=np.array([self.weights[name] for name in names], dtype=np.int16),
            bias=np.array(self.bias, dtype=np.int32),
            scale=np.array(self.scale, dtype=np.float64),
        )
        return out.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes, name: str = "model") -> LinearModel:
        """Read what :meth:`to_bytes` wrote. Raises ModelFileError, naming the model, for anything else."""
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as stored:
                features, weights = stored["features"], stored["weights"]
                bias, scale = stored["bias"], stored["scale"]
        except (OSError, ValueError, KeyError, EOFError) as error:
            raise ModelFileError(f"{name}: not a linear model: {error}") from error
        if (features.dtype, weights.dtype, bias.dtype) != (np.uint8, np.int16, np.int32):
            raise ModelFileError(f"{name}: expected uint8 features, int16 weights and an int32 bias")
        names = features.tobytes().decode().split("\n") if features.size else []
        if len(names) != len(weights):
            raise ModelFileError(f"{name}: {len(names)} features beside {len(weights)} weights")
        return cls(dict(zip(names, weights.tolist(), strict=True)), int(bias), float(scale))

    @cached_property
    def sha256(self) -> str:
        """SHA-256 over features, weights, bias and scale; it does not depend on how the file is compressed."""
        lines = [f"{self.bias} {self.scale!r}", *(f"{name}\t{self.weights[name]}" for name in sorted(self.weights))]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()


@cache
def stored_model(name: str) -> LinearModel:
    """Load a model of this package (``models/NAME.npz``)."""
    return LinearModel.from_bytes(data_file(f"{name}.npz", "models"), name)
