"""Reads the models of a reproduction from a versioned file: readers, models that memories need, the judge."""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from memarena.execution.planning.model_config import ReaderConfig
from memarena.execution.reasons import reason_of
from memarena.readers.starting import SGLANG
from memarena.reproduction.errors import ReproductionError
from memarena.sweep.plan import JudgeEntry, ReaderEntry

PAPER = "readers.v1.toml"
_SERVED = ("repository", "revision", "dtype")
"""Fields of a reader's entry that :class:`_Served` holds."""
_REVISION = r"^[0-9a-f]{40}$"


class _Served(BaseModel):
    """A reader named by its repository, to be served by SGLang."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    repository: Annotated[str, Field(min_length=1)]
    revision: Annotated[str, Field(pattern=_REVISION)]
    """Commit of the repository, 40 hex digits."""
    dtype: str
    """Number format, as SGLang names it."""


class HelperEntry(BaseModel):
    """A model other than the readers, such as an embedder. Without ``spec``, memories that need it are left out."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    spec: str | None = None
    """``embedded`` (an embedder only), or the URL of an OpenAI-compatible API."""
    model: str | None = None


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str = ""
    readers: Annotated[tuple[dict[str, Any], ...], Field(min_length=1)]
    helpers: dict[str, HelperEntry] = Field(default_factory=dict)
    gateway_port: Annotated[int, Field(ge=1, le=65535)] = 8100
    judge: JudgeEntry | None = None


@dataclass(frozen=True)
class ReaderSet:
    """The content of a file of models."""

    where: str
    """Name of the file in messages."""
    sha256: str
    title: str
    readers: tuple[ReaderEntry, ...]
    helpers: Mapping[str, HelperEntry]
    gateway_port: int
    """Port at which the Memobase server is configured to reach its models."""
    judge: JudgeEntry | None

    def helper(self, role: str, name: str) -> HelperEntry | None:
        """Return the model of that name, else the model named like the role; None if neither has an address."""
        candidates = (self.helpers.get(name), self.helpers.get(role))
        return next((each for each in candidates if each is not None and each.spec), None)

    @property
    def missing_judge(self) -> str | None:
        """Return why the judge cannot be called here; None if it can, or if there is no judge."""
        variable = self.judge.api_key_env if self.judge else None
        return f"{variable} is not set (judge)" if variable and not os.environ.get(variable) else None


def read_reader_set(path: Path | None = None) -> ReaderSet:
    """Read a user's file; None: the paper's. Raises :class:`ReproductionError` that names file and field."""
    where = str(path or PAPER)
    try:
        raw = files("memarena.reproduction").joinpath(PAPER).read_bytes() if path is None else path.read_bytes()
        content = tomllib.loads(raw.decode("utf-8"))
    except OSError as error:
        raise ReproductionError(f"--readers {path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ReproductionError(f"{where}: not valid TOML: {error}") from error
    try:
        parsed = _File.model_validate(content)
    except ValidationError as error:
        raise ReproductionError(f"{where}: {_first(error)}") from error
    readers = tuple(_reader(entry, f"{where}: readers.{index}") for index, entry in enumerate(parsed.readers))
    names = [str(reader.name) for reader in readers]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ReproductionError(f"{where}: readers: {twice} is named twice")
    sha256 = hashlib.sha256(raw).hexdigest()
    return ReaderSet(where, sha256, parsed.title, readers, parsed.helpers, parsed.gateway_port, parsed.judge)


def _reader(entry: Mapping[str, Any], where: str) -> ReaderEntry:
    """Return a reader of the file; ``repository`` is short for SGLang with that model. Raises ReproductionError."""
    values = dict(entry)
    try:
        if "repository" in values or "spec" not in values:
            served = _Served.model_validate({name: values.pop(name) for name in _SERVED if name in values})
            flags = ["--revision", served.revision, "--dtype", served.dtype]
            values |= {
                "spec": f"{SGLANG}{served.repository}",
                "server_flags": [*flags, *values.get("server_flags", ())],
            }
        if not values.get("name"):
            raise ReproductionError(f"{where}: name: missing; as the paper's tables name the reader, or another")
        return ReaderEntry.model_validate(values)
    except ValidationError as error:
        raise ReproductionError(f"{where}.{_first(error)}") from error


def served_here(reader: ReaderConfig) -> bool:
    """Whether a reader is served by an SGLang server that is started on this machine."""
    return reader.spec.startswith(SGLANG)


def _first(error: ValidationError) -> str:
    """Return the first invalid field and the reason."""
    first = error.errors(include_url=False)[0]
    return f"{'.'.join(str(part) for part in first['loc'])}: {reason_of(first)}"
