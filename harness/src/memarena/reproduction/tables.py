"""Reads the definitions of the paper's tables: what each needs, and which of our figures goes into which column."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Annotated

from memarena_dataset.nearest_names import nearest
from pydantic import BaseModel, ConfigDict, Field

from memarena.reproduction.errors import ReproductionError

ALL = "all"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ConfigurationUse(_Part):
    """How the paper's use of a named configuration differs from the configuration's file."""

    seeds: tuple[str, ...] = ()
    """Seeds; empty: those of the configuration's file."""
    readers: tuple[str, ...] = ()
    """The paper's readers; empty: all."""
    helpers: dict[str, str] = Field(default_factory=dict)
    """Names of models by role, as in the file of readers."""
    needed_by: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Memories that need the model of a role; a role without an entry is needed by all."""
    window_tokens: int | None = None
    """Context window that the readers must have; None: their own."""


class PaperTable(_Part):
    """A table or figure of the paper."""

    name: str
    """Its label in the paper; those of figures begin with ``fig-``."""
    title: str
    configurations: tuple[str, ...] = ()
    study: bool = False
    """Whether the latency study is needed."""
    people: str = ""
    """Work that only people can do, for a table that no run can reproduce; else empty."""
    columns: tuple[str, ...] = ()
    cells: dict[str, str | tuple[str, ...]] = Field(default_factory=dict)
    """By a label of a line, the cell or cells that ``@`` in a column's expression refers to."""
    reader: str | None = None
    """The reader of a table whose lines do not name one."""
    shares: bool = False
    """Whether figures are shares of 1; differences are in points even then."""
    notes: tuple[str, ...] = ()


class _File(_Part):
    configurations: dict[str, ConfigurationUse]
    tables: Annotated[tuple[PaperTable, ...], Field(min_length=1)]


@cache
def _read() -> _File:
    text = (files("memarena.reproduction") / "tables.v1.toml").read_text(encoding="utf-8")
    return _File.model_validate(tomllib.loads(text))


def paper_tables() -> tuple[PaperTable, ...]:
    """Return all tables and figures with measurements, in the order of the file."""
    return _read().tables


def use_of(configuration: str) -> ConfigurationUse:
    """Return how the paper used a configuration."""
    return _read().configurations.get(configuration, ConfigurationUse())


def chosen_tables(name: str) -> tuple[PaperTable, ...]:
    """Return the table of that name, or all for ``all``. Raises :class:`ReproductionError` for an unknown name."""
    tables = paper_tables()
    if name == ALL:
        return tables
    chosen = tuple(table for table in tables if table.name == name)
    if not chosen:
        names = [table.name for table in tables]
        known = ", ".join(names)
        raise ReproductionError(
            f"reproduce {name}: no table of this name (known: {ALL}, {known}){nearest(name, names)}"
        )
    return chosen
