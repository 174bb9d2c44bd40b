"""Determines what this machine lacks to run a reader.

So a plan states it before hours of other steps are spent; such a reader's steps are left out.
"""

from __future__ import annotations

import shutil
from importlib.util import find_spec

from memarena.execution.models.reader_environments import reader_environment
from memarena.execution.planning.model_config import ReaderConfig
from memarena.readers.embedded import find_weights
from memarena.readers.errors import ReaderError
from memarena.reproduction.reader_set import served_here

_GPU_TOOL = "nvidia-smi"


def missing_of_reader(reader: ReaderConfig) -> tuple[str, ...]:
    """Return why a reader cannot be started here, one line per reason; empty if nothing is known to be missing."""
    if reader.spec == "embedded":
        try:
            find_weights()
        except ReaderError as error:
            return (str(error),)
    if not served_here(reader):
        return ()
    reasons = []
    if shutil.which(_GPU_TOOL) is None:
        reasons.append(f"a GPU ({_GPU_TOOL} is not there)")
    if reader.image is not None and shutil.which("docker") is None:
        reasons.append("docker")
    if reader.image is None and find_spec("sglang") is None:
        missing = reader_environment("sglang").missing()
        reasons += [f"sglang ({missing})"] if missing is not None else []
    return tuple(reasons)
