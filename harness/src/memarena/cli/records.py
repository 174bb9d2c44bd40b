"""Makes typer commands from dataclasses, one flag for each field, so that a body gets all flags as one value."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from typing import Any, ClassVar, Protocol, TypeVar, get_type_hints

from memarena.cli.setting_flags import SettingsOf, typed


class _Record(Protocol):
    """Any dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


T = TypeVar("T", bound=_Record)


def command_of(record: type[T], body: Callable[[T], None]) -> Callable[..., None]:
    """Return a function for typer with a parameter for each field of a dataclass; it calls ``body`` with an instance.

    Fields are annotated like parameters for typer (``Annotated[…, typer.Option(…)]``) and have defaults; a field with
    :class:`SettingsOf` gives a parameter for each of its settings. Name and help are those of ``body``.
    """
    hints = get_type_hints(record, include_extras=True)
    parameters: list[inspect.Parameter] = []
    settings: dict[str, set[str]] = {}
    for field in fields(record):
        kinds = [item for item in getattr(hints[field.name], "__metadata__", ()) if isinstance(item, SettingsOf)]
        if kinds:
            setting_parameters = kinds[0].parameters()
            settings[field.name] = {item.name for item in setting_parameters}
            parameters += setting_parameters
            continue
        default = field.default if field.default is not MISSING else inspect.Parameter.empty
        kind = inspect.Parameter.KEYWORD_ONLY
        parameters.append(inspect.Parameter(field.name, kind, default=default, annotation=hints[field.name]))

    def command(**values: Any) -> None:
        flag_values = {name: typed({flag: values.pop(flag) for flag in flags}) for name, flags in settings.items()}
        body(record(**values, **flag_values))

    command.__name__ = body.__name__
    command.__doc__ = body.__doc__
    # Typer reads defaults and order from the signature, types from the annotations.
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command
