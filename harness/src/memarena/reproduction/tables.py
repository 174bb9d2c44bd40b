"""The paper's tables as data: what each is made of, and which of our figures belongs in which column."""

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
    """How the paper used a named configuration, where it differs from the file."""

    seeds: tuple[str, ...] = ()
    """Empty: those of the file."""
    readers: tuple[str, ...] = ()
    """The paper's readers; empty: all."""
    helpers: dict[str, str] = Field(default_factory=dict)
    """Names of models by role, as the file of readers has them."""
    needed_by: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Memories that need the model of a role; a role that is not in it: all."""
    window_tokens: int | None = None
    """Window that the readers need; None: their own."""


class PaperTable(_Part):
    """A table or figure of the paper."""

    name: str
    """Its label there; figures begin with ``fig-``."""
    title: str
    configurations: tuple[str, ...] = ()
    study: bool = False
    """Whether the latency study is needed."""
    people: str = ""
    """What only people can do; such a table is made of no run."""
    columns: tuple[str, ...] = ()
    cells: dict[str, str | tuple[str, ...]] = Field(default_factory=dict)
    """By a label of a line: the cell or cells that ``@`` stands for."""
    reader: str | None = None
    """The reader of a table whose lines name none."""
    shares: bool = False
    """Whether figures are shares of 1, differences still in points."""
    notes: tuple[str, ...] = ()


class _File(_Part):
    configurations: dict[str, ConfigurationUse]
    tables: Annotated[tuple[PaperTable, ...], Field(min_length=1)]


@cache
def _read() -> _File:
    text = (files("memarena.reproduction") / "tables.v1.toml").read_text(encoding="utf-8")
    return _File.model_validate(tomllib.loads(text))


def paper_tables() -> tuple[PaperTable, ...]:
    """All tables and figures that hold measurements, in the order of the file."""
    return _read().tables


def use_of(configuration: str) -> ConfigurationUse:
    """How the paper used a configuration."""
    return _read().configurations.get(configuration, ConfigurationUse())


def chosen_tables(name: str) -> tuple[PaperTable, ...]:
    """The table of that name, or all of them. Raises :class:`ReproductionError` for one that is not known."""
    tables = paper_tables()
    if name == ALL:
        return tables
    found = tuple(table for table in tables if table.name == name)
    if not found:
        names = [table.name for table in tables]
        known = ", ".join(names)
        raise ReproductionError(
            f"reproduce {name}: no table of this name (known: {ALL}, {known}){nearest(name, names)}"
        )
    return found
