"""Declares the flags of ``memarena latency run`` and ``growth``, with the settings of the runs that these start."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from memarena.cli.setting_flags import FlagValues, SettingsOf
from memarena.latency.growth import DAYS, SEARCHES
from memarena.latency.selection import EGOS, PER_FAMILY
from memarena.latency.study import IDLE_S, PHASE1, PHASE2, VANILLA_TOKENS, WARM_UP

DatasetOption = Annotated[Path, typer.Option(help="Data set folder.")]
FormatOption = Annotated[str, typer.Option("--format", help="table, md or json.")]

_STUDY_SETTINGS = SettingsOf(
    "latency run",
    shown={"idle_s": IDLE_S, "warm_up": WARM_UP},
    help={
        "reader": "Readers, separated by commas: embedded, an API's URL or sglang:MODEL; or in --config.",
        "backend": f"Backends of phase 1, from which the fits are made; default {','.join(PHASE1)}.",
    },
)
_GROWTH_SETTINGS = SettingsOf(
    "latency growth",
    defaults={
        "backend": "bm25,memsearch,memobase",
        "reader": "extractive",
        "days": ",".join(map(str, DAYS)),
        "searches": SEARCHES,
    },
    help={"reader": "Reader for memories that extract facts with it."},
)


@dataclass(frozen=True, kw_only=True)
class StudyFlags:
    """Flags of a study."""

    out: Annotated[Path, typer.Option(help="Folder of the study: queries.txt, phase1, phase2, its files.")]
    settings: Annotated[FlagValues, _STUDY_SETTINGS] = field(default_factory=dict)
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="YAML or TOML with settings of memarena run, its readers among them; flags win."
        ),
    ] = None
    phase2: Annotated[str, typer.Option(help="Backends of phase 2, asked of the first reader; none: no phase 2.")] = (
        ",".join(PHASE2)
    )
    queries: Annotated[Path | None, typer.Option(help="A list made by memarena latency select.")] = None
    egos: Annotated[int, typer.Option(help="Egos, where no list is given.")] = EGOS
    per_family: Annotated[int, typer.Option(help="Latest queries of each family, where no list is given.")] = PER_FAMILY
    vanilla_tokens: Annotated[int, typer.Option(help="Budget of vanilla's context, in tokens.")] = VANILLA_TOKENS


@dataclass(frozen=True, kw_only=True)
class GrowthFlags:
    """Flags of growth."""

    runs: Annotated[
        Path | None, typer.Argument(metavar="RUN", help="A run made by this command before: only its tables.")
    ] = None
    settings: Annotated[FlagValues, _GROWTH_SETTINGS] = field(default_factory=dict)
    out: Annotated[Path | None, typer.Option(help="Folder of the run to make.")] = None
    ego: Annotated[
        str | None, typer.Option(help="Whose history; default: the ego with most questions. One run, one ego.")
    ] = None
    beside: Annotated[  # words: a name of the file format
        list[str] | None,
        typer.Option(
            metavar="NAME=PID|FOLDER",
            help="A server next to the backends, by process or by the folder of its control group; repeatable.",
        ),
    ] = None
    beside_disk: Annotated[
        list[str] | None, typer.Option(metavar="NAME=FOLDER", help="Where such a server keeps its data; repeatable.")
    ] = None
    output: FormatOption = "table"
    files: Annotated[Path | None, typer.Option(metavar="DIR", help="Write data, table and figure there, too.")] = None
