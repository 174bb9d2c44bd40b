"""Values that a shell completes (``memarena --install-completion``): memories, readers, tables, configurations, …

A function imports what it needs when it is called, since a shell asks for one at a time. It returns all values that
there are, each as the whole word; typer keeps those that begin as the user typed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, get_args, get_origin

from memarena_dataset.errors import MemArenaError

Complete = Callable[..., list[str]]
"""From what was typed of a word, if it is asked for, to the words that it may become."""


def backends(incomplete: str) -> list[str]:
    """Memories that can be found here, the last of a list separated by commas."""
    from memarena.execution.backends.manifests import backends_by_name  # noqa: PLC0415

    try:
        names = sorted(backends_by_name())
    except MemArenaError:  # a manifest that cannot be read: the command itself says which
        return []
    return last_of_list(names)(incomplete)


def readers() -> list[str]:
    """Kinds of readers; a URL or a model follows what ends in a colon."""
    return ["extractive", "embedded", "sglang:", "llamacpp:", "http://", "https://"]


def meters(incomplete: str) -> list[str]:
    """Kinds of meters, the last of a list separated by commas."""
    from memarena.meters.sources import KINDS  # noqa: PLC0415

    return last_of_list(["auto", *KINDS])(incomplete)


def configurations() -> list[str]:
    """Named configurations."""
    from memarena.configs import named_configurations  # noqa: PLC0415

    return [configuration.name for configuration in named_configurations()]


def paper_tables() -> list[str]:
    """Tables of the paper, or all of them."""
    from memarena.reproduction import tables  # noqa: PLC0415

    return [tables.ALL, *(table.name for table in tables.paper_tables())]


def report_tables() -> list[str]:
    """Tables that a report may have."""
    from memarena.report.document import table_keys  # noqa: PLC0415

    return list(table_keys())


def one_of(values: Sequence[str]) -> Complete:
    """These values."""
    return lambda: list(values)


def last_of_list(values: Sequence[str]) -> Complete:
    """These values for the last of a list separated by commas, without those that are in it."""

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
    """What completes the flag of a setting: by its name, or by the values that its field allows; None for others."""
    if parameter in _BY_FLAG:
        return _BY_FLAG[parameter]
    values = [str(getattr(value, "value", value)) for value in _allowed(annotation)]
    if not values:
        return None
    return last_of_list(values) if get_origin(annotation) is tuple else one_of(values)


def _allowed(annotation: Any) -> Sequence[object]:
    """Values of a ``Literal`` or an ``Enum``, also as the items of a tuple."""
    origin = get_origin(annotation)
    if origin is Literal:
        return get_args(annotation)
    if origin in (Annotated, tuple):
        return _allowed(get_args(annotation)[0])
    members = getattr(annotation, "__members__", None)
    return list(members.values()) if members else ()
