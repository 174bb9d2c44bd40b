"""``memarena annotate``: lets people label a sample of answers in a browser; the log is only read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from memarena_dataset.printing import write_out

from memarena import judging
from memarena.cli.scores import JudgeOption, RunArgument, run_folder
from memarena.cli.view import HostOption, OpenOption, PortOption, serve_pages
from memarena.viewer.annotation.campaign import SIZE, checked_name, open_campaign
from memarena.viewer.annotation.label_log import ANNOTATIONS
from memarena.viewer.annotation.server import make_annotation_app


def annotate(
    run: RunArgument,
    annotator: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Who labels; repeatable, for several at once.")
    ] = None,
    sample: Annotated[
        int | None, typer.Option(min=2, help=f"Answers to draw where there is no sample yet; without it {SIZE}.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed draws the same sample.")] = 0,
    folder: Annotated[
        Path | None,
        typer.Option("--in", metavar="DIR", help="Where sample and labels lie; RUN/annotations without it."),
    ] = None,
    take: Annotated[
        list[Path] | None, typer.Option("--import", metavar="FILE", help="Add the labels of a labels.json; repeatable.")
    ] = None,
    export: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write all labels as labels.json, and end.")
    ] = None,
    port: PortOption = 0,
    host: HostOption = "127.0.0.1",
    open_: OpenOption = False,
    name: JudgeOption = judging.JUDGE_NAME,
) -> None:
    """Judge a sample of answers in a browser: blind, by keyboard, several people at once.

    Prints the address to open and serves it until Ctrl-C. Every label is kept as soon as it is given.
    """
    names = [checked_name(requested) for requested in annotator or []]
    if not (names or take or export):
        raise judging.JudgeError("annotate: expected --annotator NAME, --import FILE or --export FILE")
    run = run_folder(run)
    labels_folder = folder or run / ANNOTATIONS
    campaign = open_campaign(run, labels_folder, name, size=sample, seed=seed, draw=bool(names))
    if take:
        write_out(f"{campaign.take_labels(take):,} labels added to {campaign.folder}\n")
    if export is not None:
        count = campaign.write_labels(export)
        sample_path = campaign.folder / "sample.json"
        write_out(f"{export}: {count:,} labels; memarena judge {run} --labels {export} --of {sample_path}\n")
    elif names:
        serve_pages(lambda door: make_annotation_app(campaign, names, door), host, port, open_=open_)
