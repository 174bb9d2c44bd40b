"""The flags of ``memarena latency run`` and ``growth``: what a user gave."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import typer

from memarena.cli.run_flags import RunFlags
from memarena.latency.growth import DAYS
from memarena.latency.selection import EGOS, PER_FAMILY
from memarena.latency.study import PHASE1, PHASE2, VANILLA_TOKENS, WARM_UP

DatasetOption = Annotated[Path, typer.Option(help="Data set folder.")]
EmbedderOption = Annotated[str | None, typer.Option(help="Embedding model for memories: embedded, or an API's URL.")]
EmbedderModelOption = Annotated[str | None, typer.Option(help="Model behind the embedder's URL.")]
ExtractorOption = Annotated[str | None, typer.Option(help="URL of the model that extracts facts; default: the reader.")]
ExtractorModelOption = Annotated[str | None, typer.Option(help="Model behind the extractor's URL.")]
GatewayPortOption = Annotated[
    int | None,
    typer.Option(min=0, max=65535, help="Port of the gateway, for a memory whose server is configured once; 0: any."),
]
ModelOption = Annotated[str | None, typer.Option(help="Model behind the reader's URL, where it serves several.")]
FormatOption = Annotated[str, typer.Option("--format", help="table, md or json.")]


@dataclass(frozen=True, kw_only=True)
class StudyFlags:
    """Flags of a study."""

    out: Annotated[Path, typer.Option(help="Folder of the study: queries.txt, phase1, phase2, its files.")]
    dataset: Annotated[Path | None, typer.Option(help="Data set folder.")] = None
    reader: Annotated[
        str | None,
        typer.Option(help="Readers, separated by commas: embedded, an API's URL or sglang:MODEL; or in --config."),
    ] = None
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="YAML or TOML with settings of memarena run, its readers among them; flags win."
        ),
    ] = None
    backend: Annotated[
        str | None, typer.Option(help=f"Backends of phase 1, from which the fits are made; default {','.join(PHASE1)}.")
    ] = None
    phase2: Annotated[str, typer.Option(help="Backends of phase 2, asked of the first reader; none: no phase 2.")] = (
        ",".join(PHASE2)
    )
    queries: Annotated[Path | None, typer.Option(help="A list made by memarena latency select.")] = None
    egos: Annotated[int, typer.Option(help="Egos, where no list is given.")] = EGOS
    per_family: Annotated[int, typer.Option(help="Latest queries of each family, where no list is given.")] = PER_FAMILY
    model: ModelOption = None
    reader_window: Annotated[int | None, typer.Option(help="Context window of the reader in tokens.")] = None
    embedder: EmbedderOption = None
    embedder_model: EmbedderModelOption = None
    extractor: ExtractorOption = None
    extractor_model: ExtractorModelOption = None
    vanilla_tokens: Annotated[int, typer.Option(help="Budget of vanilla's context, in tokens.")] = VANILLA_TOKENS
    max_context_tokens: Annotated[
        int | None, typer.Option(help="Tokens of context that a reader may see; default 8192.")
    ] = None
    max_answer_tokens: Annotated[int | None, typer.Option(help="Tokens of an answer; default 400.")] = None
    option: Annotated[list[str] | None, typer.Option(help="BACKEND.KEY=VALUE, repeatable.")] = None
    meter: Annotated[str | None, typer.Option(help="Meters, separated by commas; default auto.")] = None
    system_rail: Annotated[str | None, typer.Option(help="Power channel of the whole machine.")] = None
    idle_s: Annotated[
        float | None, typer.Option(help="Seconds of rest before and after, for net energy; default 120.")
    ] = None
    warm_up: Annotated[
        int | None, typer.Option(help=f"Requests to each reader before anything is timed; default {WARM_UP}.")
    ] = None
    floor_samples: Annotated[
        int | None, typer.Option(help="Round trips to measure the overhead baseline; default 200, 0: none.")
    ] = None
    order_seed: Annotated[int | None, typer.Option(help="Seed of the order of questions; default: drawn anew.")] = None
    gateway_port: GatewayPortOption = None

    def of_run(self) -> RunFlags:
        """Flags that ``memarena run`` has, too."""
        own = {field.name for field in fields(self)} - _OF_THE_STUDY
        return RunFlags(**{name: getattr(self, name) for name in own})


_OF_THE_STUDY = {"out", "config", "phase2", "queries", "egos", "per_family", "vanilla_tokens"}
"""Flags of a study that its runs do not have."""


@dataclass(frozen=True, kw_only=True)
class GrowthFlags:
    """Flags of growth."""

    runs: Annotated[
        Path | None, typer.Argument(metavar="RUN", help="A run made by this command before: only its tables.")
    ] = None
    dataset: Annotated[Path | None, typer.Option(help="Data set folder.")] = None
    backend: Annotated[str, typer.Option(help="Backends, separated by commas.")] = "bm25,memsearch,memobase"
    out: Annotated[Path | None, typer.Option(help="Folder of the run to make.")] = None
    days: Annotated[str, typer.Option(help="Days of history after which Search is timed.")] = ",".join(map(str, DAYS))
    ego: Annotated[
        str | None, typer.Option(help="Whose history; default: the ego with most questions. One run, one ego.")
    ] = None
    searches: Annotated[int, typer.Option(help="Searches after each of those days.")] = 130
    reader: Annotated[str, typer.Option(help="Reader for memories that extract facts with it.")] = "extractive"
    model: ModelOption = None
    embedder: EmbedderOption = None
    embedder_model: EmbedderModelOption = None
    extractor: ExtractorOption = None
    extractor_model: ExtractorModelOption = None
    meter: Annotated[str, typer.Option(help="Meters, separated by commas; see memarena run.")] = "auto"
    gateway_port: GatewayPortOption = None
    beside: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=PID|FOLDER",
            help="A server beside the backends, by process or by the folder of its control group; repeatable.",
        ),
    ] = None
    beside_disk: Annotated[
        list[str] | None, typer.Option(metavar="NAME=FOLDER", help="Where such a server keeps its data; repeatable.")
    ] = None
    output: FormatOption = "table"
    files: Annotated[Path | None, typer.Option(metavar="DIR", help="Write data, table and figure there, too.")] = None
