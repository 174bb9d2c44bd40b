"""Completes values in a shell (``memarena --install-completion``): memories, readers, tables, configurations, …

Functions import what they need when they are called, since a shell calls one at a time. They return all values as full
words; typer selects those that begin with what the user typed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, get_args, get_origin

from memarena_dataset.errors import MemArenaError

Complete = Callable[..., list[str]]
"""Returns full words; its optional argument is the part of the word that was typed."""


def backends(incomplete: str) -> list[str]:
    """Return the names of available memories, for the last item of a list separated by commas."""
    from memarena.execution.backends.manifests import backends_by_name  # noqa: PLC0415

    try:
        names = sorted(backends_by_name())
    except MemArenaError:  # a manifest that cannot be read: the command itself says which
        return []
    return last_of_list(names)(incomplete)


def readers() -> list[str]:
    """Return the kinds of readers; a URL or a model follows those that end in a colon or slashes."""
    return ["extractive", "embedded", "sglang:", "llamacpp:", "http://", "https://"]


def meters(incomplete: str) -> list[str]:
    """Return the kinds of meters, for the last item of a list separated by commas."""
    from memarena.meters.sources import KINDS  # noqa: PLC0415

    return last_of_list(["auto", *KINDS])(incomplete)


def configurations() -> list[str]:
    """Return the names of configurations."""
    from memarena.configs import named_configurations  # noqa: PLC0415

    return [configuration.name for configuration in named_configurations()]


def paper_tables() -> list[str]:
    """Return the names of the paper's tables, and the name for all of them."""
    from memarena.reproduction import tables  # noqa: PLC0415

    return [tables.ALL, *(table.name for table in tables.paper_tables())]


def report_tables() -> list[str]:
    """Return the keys of tables that a report may have."""
    from memarena.report.document import table_keys  # noqa: PLC0415

    return list(table_keys())


def one_of(values: Sequence[str]) -> Complete:
    """Return a completion of these values."""
    return lambda: list(values)


def last_of_list(values: Sequence[str]) -> Complete:
    """Return a completion of the last item of a list separated by commas, without values already in the list."""

    def complete(incomplete: str) -> list[str]:
        before, comma, _ = incomplete.rpartition(",")
        return [f"{before}{comma}{value}" for value in values if value not in before.split(",")]

    return complete


_BY_FLAG: dict[str, Complete] = {
    "backend": backends,
    "reader": readers,
    "embedder": one_of(["embedded", "http://", "https://"]),
    "extractor": readers,
    "reranker": one_of(["http://", "https://"]),
    "meter": meters,
    "diagnostic": backends,
    "whole_corpus": backends,
    "access_markers": backends,
}


def of_setting(parameter: str, annotation: Any) -> Complete | None:
    """Return the completion for a setting's flag: by its name, or from the values of its type; None for others."""
    if parameter in _BY_FLAG:
        return _BY_FLAG[parameter]
    values = [str(getattr(value, "value", value)) for value in _allowed(annotation)]
    if not values:
        return None
    return last_of_list(values) if get_origin(annotation) is tuple else one_of(values)


def _allowed(annotation: Any) -> Sequence[object]:
    """Return the values of a ``Literal`` or ``Enum``, or of one that is the item type of a tuple; else empty."""
    origin = get_origin(annotation)
    if origin is Literal:
        return get_args(annotation)
    if origin in (Annotated, tuple):
        return _allowed(get_args(annotation)[0])
    members = getattr(annotation, "__members__", None)
    return list(members.values()) if members else ()
