"""A command whose flags are the fields of a frozen record, so that what a user typed travels as one value."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from typing import Any, ClassVar, Protocol, TypeVar, get_type_hints

from memarena.cli.setting_flags import SettingsOf, typed


class _Record(Protocol):
    """A dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


T = TypeVar("T", bound=_Record)


def command_of(record: type[T], body: Callable[[T], None]) -> Callable[..., None]:
    """A function that typer can register: one parameter per field of the dataclass, the whole passed to ``body``.

    Fields are annotated as typer wants parameters to be (``Annotated[…, typer.Option(…)]``) and have defaults; a field
    with :class:`SettingsOf` becomes a parameter for each of those settings. Name and help are those of ``body``.
    """
    hints = get_type_hints(record, include_extras=True)
    parameters: list[inspect.Parameter] = []
    settings: dict[str, set[str]] = {}
    for field in fields(record):
        kinds = [each for each in getattr(hints[field.name], "__metadata__", ()) if isinstance(each, SettingsOf)]
        if kinds:
            of_settings = kinds[0].parameters()
            settings[field.name] = {each.name for each in of_settings}
            parameters += of_settings
            continue
        default = field.default if field.default is not MISSING else inspect.Parameter.empty
        kind = inspect.Parameter.KEYWORD_ONLY
        parameters.append(inspect.Parameter(field.name, kind, default=default, annotation=hints[field.name]))

    def command(**values: Any) -> None:
        own = {name: typed({flag: values.pop(flag) for flag in flags}) for name, flags in settings.items()}
        body(record(**values, **own))

    command.__name__ = body.__name__
    command.__doc__ = body.__doc__
    # What typer looks at: the signature for defaults and order, the annotations for types.
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command
