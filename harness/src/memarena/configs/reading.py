"""Reads a configuration file: its form is checked here, its fields with those of the run."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

import yaml
from memarena_dataset.nearest_names import nearest
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from memarena.execution.errors import RunError
from memarena.execution.planning.parsing import parse_config
from memarena.execution.reasons import reason_of

Role = Literal["embedder", "extractor", "reranker"]

_PLACEHOLDERS: Mapping[str, object] = {"dataset": ".", "backends": ["none"], "readers": [{"spec": "none"}]}
"""Fields that a file may leave to flags, so that the rest can be checked alone."""


class ConfigurationFile(BaseModel):
    """A configuration in TOML."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: Annotated[str, Field(min_length=1)]
    """What is compared, in a line."""
    paper: str = ""
    """What the paper did, as far as flags decide it: readers, models, seeds."""
    differs: str = ""
    """Differences from the paper."""
    needs: tuple[Role, ...] = ()
    """Models other than the reader that must be named by flags."""
    run: dict[str, JsonValue]


@dataclass(frozen=True)
class Configuration:
    """A configuration that was read. ``run`` holds fields of a RunConfig; flags may supply the others."""

    name: str
    where: str
    """Its name in messages."""
    sha256: str
    run: Mapping[str, object]
    title: str = ""
    paper: str = ""
    differs: str = ""
    needs: tuple[Role, ...] = ()


def named_configurations() -> tuple[Configuration, ...]:
    """Return all configurations that come with the program, by name."""
    folder = files(__package__)
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".toml"))
    return tuple(
        _of_toml(folder.joinpath(name).read_bytes(), name.removesuffix(".toml"), f"memarena/configs/{name}")
        for name in names
    )


def read_named(name: str) -> Configuration:
    """Return the configuration of that name. Raises :class:`RunError` if there is none."""
    known = {configuration.name: configuration for configuration in named_configurations()}
    if name not in known:
        raise RunError(
            f"{name}: no configuration of this name, and no file (known: {', '.join(known)}); "
            f"memarena run --list says what they are{nearest(name, known)}"
        )
    return known[name]


def read_file(path: Path) -> Configuration:
    """Read a user's configuration: TOML in the form of the named ones, or YAML that holds the fields of a run alone.

    A relative data set path counts from the file's folder. Raises :class:`RunError` with file and field.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise RunError(f"{path}: cannot be read: {error.strerror}") from error
    configuration = _of_toml(raw, str(path), str(path)) if path.suffix == ".toml" else _of_yaml(raw, str(path))
    dataset = configuration.run.get("dataset")
    if isinstance(dataset, str) and not Path(dataset).is_absolute():
        run = {**configuration.run, "dataset": str(path.parent / dataset)}
        configuration = Configuration(**{**configuration.__dict__, "run": run})
    return configuration


def _of_toml(raw: bytes, name: str, where: str) -> Configuration:
    try:
        parsed = ConfigurationFile.model_validate(tomllib.loads(raw.decode("utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RunError(f"{where}: not valid TOML: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise RunError(f"{where}: {field}: {reason_of(first)}") from error
    parse_config({**_PLACEHOLDERS, **parsed.run}, f"{where}: run")
    return Configuration(
        name,
        where,
        hashlib.sha256(raw).hexdigest(),
        parsed.run,
        parsed.title,
        parsed.paper,
        parsed.differs,
        parsed.needs,
    )


def _of_yaml(raw: bytes, where: str) -> Configuration:
    try:
        content = yaml.safe_load(raw.decode("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = str(error).replace("\n", " ")
        raise RunError(f"{where}: not valid YAML: {reason}") from error
    if not isinstance(content, dict):
        raise RunError(f"{where}: expected a mapping with dataset, backends and readers")
    parse_config({**_PLACEHOLDERS, **content}, where)
    return Configuration(where, where, hashlib.sha256(raw).hexdigest(), content)
