"""Generates a command's flags from the declarations of settings, and converts their values to configuration fields."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from memarena.cli.completion import of_setting
from memarena.execution.planning.config import SETTINGS
from memarena.execution.planning.settings import Command, Panel, SettingField

FlagValues = Mapping[str, object]
"""By parameter name of a flag (``reader_window``): its value; flags that were not used are missing."""


@dataclass(frozen=True)
class SettingsOf:
    """Marks the field of a command's record for :data:`FlagValues`: the command's flags and their differences."""

    command: Command
    defaults: Mapping[str, object] = field(default_factory=dict)
    """By parameter: value of a flag that is not used."""
    shown: Mapping[str, object] = field(default_factory=dict)
    """By parameter: default in the help text, if the command uses another than the field's."""
    help: Mapping[str, str] = field(default_factory=dict)
    """By parameter: help text, if the flag has another meaning in this command."""
    panels: bool = False
    """Whether ``--help`` groups the flags by panel."""

    def parameters(self) -> list[inspect.Parameter]:
        """Return a parameter for typer for each flag, in the order of the panels if there are any."""
        flags = [each for each in SETTINGS if self.command in each.commands]
        if self.panels:
            order = list(Panel)
            flags.sort(key=lambda each: order.index(each.setting.panel))
        return [self._parameter(each) for each in flags]

    def _parameter(self, flag: SettingField) -> inspect.Parameter:
        name, text = flag.parameter, self.help.get(flag.parameter) or flag.help(self.shown.get(flag.parameter))
        panel = flag.setting.panel.value if self.panels else None
        complete = of_setting(flag.parameter, flag.field.annotation)
        option = typer.Option(*_spellings(flag), help=text, rich_help_panel=panel, autocompletion=complete)
        kind: Any = Annotated[flag.kind | None, option]
        default = self.defaults.get(name)
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _spellings(flag: SettingField) -> tuple[str, ...]:
    if flag.kind is bool:
        return (f"--{flag.flag}/--no-{flag.flag}",) if flag.default else (f"--{flag.flag}",)
    return tuple(f"--{name}" for name in (flag.setting.long_flag, flag.flag) if name)


def typed(values: Mapping[str, Any]) -> FlagValues:
    """Return the values of used flags; the parser has None or an empty list for the others."""
    return {name: value for name, value in values.items() if value is not None and value != []}


def fields_of(flags: FlagValues, role: str = "") -> dict[str, object]:
    """Return the configuration fields that flags set, or with ``role`` those of its models in this role.

    Flags that name models, such as ``--reader``, are left out.

    Raises RunError for text that does not have the flag's form.
    """
    values: dict[str, object] = {}
    for flag in SETTINGS:
        if flag.commands and flag.role == role and flag.setting.models is None and flag.parameter in flags:
            values |= flag.to_fields(flags[flag.parameter])
    return values
