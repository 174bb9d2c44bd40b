"""Turns a field of a run's configuration into a setting that users see: its flag, its help, and where it may be set.

A field of :class:`~memarena.execution.planning.config.RunConfig` is declared in one statement: the annotation holds its
type, bounds and a :class:`Setting`, the value is its default. Flags, ``--help``, messages and docs/settings.md follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

Command = Literal["run", "latency run", "latency growth", "reader check"]
ToFields = Callable[[str, str, Any], dict[str, object]]
"""Converts a flag (as spelled), its field and the typed value to values of fields, by name. Raises RunError."""


@dataclass(frozen=True)
class Form:
    """How users type a flag whose text is not simply a value of the field's type."""

    kind: Any
    """Type that the command line parses: ``str``, ``list[str]`` for a repeatable flag, ``Path``."""
    to_fields: ToFields


class Panel(Enum):
    """Groups of ``memarena run --help``, in this order."""

    QUESTIONS = "Data set and questions"
    BACKENDS = "Backends"
    READERS = "Readers and prompts"
    MODELS = "Models for memories, and the gateway"
    MEASUREMENT = "Measurement"
    LOG = "Log and cache"


@dataclass(frozen=True)
class Setting:
    """The parts of a setting that users see, in a field's ``Annotated``; the rest comes from the field itself."""

    panel: Panel
    help: str
    """Text in ``--help`` and docs; ``{default}`` is the field's default, ``{role}`` the field that holds the model."""
    form: Form | None = None
    commands: frozenset[Command] | None = frozenset({"run"})
    """Commands that have a flag for it; empty: it is set in files and from Python alone. None, for a setting of a
    model: the commands of the field that holds the model."""
    flag: str = ""
    """Name of the flag without leading hyphens, with ``{role}`` as in ``help``; empty: the field's name."""
    long_flag: str = ""
    """Second spelling of the flag, shown first."""
    unit: str = ""
    """Unit of a number, for docs/settings.md, such as ``tokens``."""
    unset: str = ""
    """Effect of a field that is None or empty, in words, for ``{default}`` and docs."""
    models: type[BaseModel] | None = None
    """Type of the models in the field, whose own settings are flags of the run too; None for any other field."""
    fixed: bool = True
    """Whether it must be the same when a run is resumed; False if it changes neither questions nor answers."""
    in_sweep: bool = True
    """Whether it may be set below ``[run]`` in the file of a sweep."""
    set_by_study: str = ""
    """Why the file of ``memarena latency run`` may not set it; "" if it may."""


# Values of Setting.commands.
STUDY: frozenset[Command] = frozenset({"run", "latency run"})
LATENCY: frozenset[Command] = STUDY | {"latency growth"}
GROWTH: frozenset[Command] = frozenset({"latency growth"})
CHECK: frozenset[Command] = frozenset({"run", "reader check"})
NO_FLAG: frozenset[Command] = frozenset()
MOST = 2**32 - 1
"""Largest number that the contract's fields hold (uint32)."""


@dataclass(frozen=True)
class SettingField:
    """A setting with its field, which belongs to the run or to one of its models."""

    name: str
    field: FieldInfo
    setting: Setting
    commands: frozenset[Command]
    role: str = ""
    """Field of the run that holds the model: ``readers``, ``embedder`` …; empty for settings of the run itself."""

    @property
    def flag(self) -> str:
        """Its flag without hyphens in front, such as ``reader-window``."""
        return self.setting.flag.replace("{role}", self.role) or self.name.replace("_", "-")

    @property
    def parameter(self) -> str:
        """Its flag as a name in Python."""
        return self.flag.replace("-", "_")

    @property
    def path(self) -> str:
        """Its name in files: ``seeds``, ``readers[].window_tokens``, ``embedder.model``."""
        return f"{self.role}{'[]' if self.role == 'readers' else ''}.{self.name}" if self.role else self.name

    @property
    def kind(self) -> Any:
        """Type that the command line parses: the field's if that is a number, a path or a switch, else text."""
        if self.setting.form is not None:
            return self.setting.form.kind
        kinds = _plain_types(self.field.annotation)
        return next((kind for kind in (bool, int, float, Path) if kind in kinds), str)

    @property
    def default(self) -> object:
        """The field's default; None if it has none."""
        return None if self.field.is_required() else self.field.get_default(call_default_factory=True)

    def to_fields(self, value: Any) -> dict[str, object]:
        """Return the fields that the value of its flag sets, by name. Raises RunError for text of another form."""
        form = self.setting.form
        return {self.name: value} if form is None else form.to_fields(self.flag, self.name, value)

    def help(self, default: object = None) -> str:
        """Return its help text; ``default`` replaces the field's default, for a command that has its own."""
        default_text = shown_value(self.default if default is None else default) or self.setting.unset
        return self.setting.help.replace("{default}", default_text).replace("{role}", self.role)


def settings_of(model: type[BaseModel], holder: SettingField | None = None) -> Iterator[SettingField]:
    """Yield all settings of a configuration in the order of its fields; those of a model come after the field that
    holds it.

    Raises TypeError for a field without a :class:`Setting`.
    """
    for name, field in model.model_fields.items():
        setting = next((metadata for metadata in field.metadata if isinstance(metadata, Setting)), None)
        if setting is None:
            raise TypeError(f"{model.__name__}.{name}: expected a Setting in its annotation")
        commands = setting.commands if setting.commands is not None else holder.commands if holder else frozenset()
        setting_field = SettingField(name, field, setting, commands, holder.name if holder else "")
        yield setting_field
        if setting.models is not None:
            yield from settings_of(setting.models, setting_field)


def shown_value(value: object) -> str:
    """Return a default as help texts show it; "" for None and for an empty value."""
    if isinstance(value, BaseModel):
        value = value.model_dump()
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={shown_value(item)}" for key, item in value.items())
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else "" if value is None else str(value)


def _plain_types(annotation: Any) -> set[Any]:
    """Return the types of a union, without bounds: ``Annotated[int, …] | None`` is ``{int, NoneType}``."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _plain_types(parts[0])
    if origin in (Union, UnionType):
        return {kind for part in parts for kind in _plain_types(part)}
    return {annotation} if origin is None else set()
