"""``memarena site``: builds a static site over runs and bundles, checks it, and checks submissions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from memarena_dataset.printing import write_out
from typer.core import TyperGroup

from memarena import judging
from memarena.cli.scores import JudgeOption, RunSource, run_sources, views_of
from memarena.evaluation import evaluate
from memarena.site.building import Loaded, Reading, Shown, build, load_bundle
from memarena.site.certificates import check_bundle, is_bundle
from memarena.site.checking import Trust, check_site
from memarena.site.errors import SiteError
from memarena.site.submissions import is_submissions, submission_faults, submissions_of

_EXIT_REFUSED = 2


class SiteGroup(TyperGroup):
    """``memarena site RUN… --out DIR`` is ``memarena site build RUN… --out DIR``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert ``build`` where no command is named."""
        first = args[0] if args else "--help"
        return super().parse_args(ctx, args if first in self.commands or first == "--help" else ["build", *args])


app = typer.Typer(cls=SiteGroup)
AllowedOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Who may have signed bundles (ssh-keygen(1), ALLOWED SIGNERS)."),
]


@app.command("build")
def build_command(
    runs: Annotated[list[Path], typer.Argument(metavar="BUNDLE|RUN|SWEEP…", help="Also a folder of submissions.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="A new folder, or a site, which is replaced.")],
    questions: Annotated[int, typer.Option(min=0, help="Traces of so many questions of each row.")] = 0,
    public: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A data set whose questions, gold and bundles may be published; repeatable."),
    ] = None,
    allowed_signers: AllowedOption = None,
    name: JudgeOption = judging.JUDGE_NAME,
) -> None:
    """Make the site: rankings, and a page for each memory, data set and run. `build` may be left out.

    Examples:
      memarena site runs/first --out site
      memarena site submissions --allowed-signers submissions/allowed_signers --out site
    """
    shown = Shown(views_of, questions, frozenset(public or ()))
    entries = build(_readings(runs, allowed_signers, name), out, shown)
    certified = sum(entry.certificate is not None for entry in entries)
    write_out(f"{out / 'index.html'}: {len(entries):,} runs, {certified:,} with a bundle that verifies\n")


@app.command("check")
def check_command(
    site: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a site.")],
    allowed_signers: AllowedOption = None,
    bundles: Annotated[
        list[Path] | None, typer.Option(metavar="DIR", help="Folder with bundles that the site does not carry.")
    ] = None,
) -> None:
    """Verify every bundle of a site again, and every figure against the bundle that it came from.

    Exit 2 with a line for each file that is not what its bundle gives.
    """
    result = check_site(site, Trust(check_bundle, views_of, allowed_signers, tuple(bundles or ())))
    write_out("".join(f"holds        {line}\n" for line in result.confirmed))
    write_out("".join(f"not checked  {line}\n" for line in result.unchecked))
    _refuse([f"{file}: {message}" for file, message in result.faults])


@app.command("submit-check")
def submit_check_command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of submissions.")],
    allowed_signers: AllowedOption = None,
) -> None:
    """Check a folder of submissions: names, submission.toml, bundles and keys. Exit 2 if anything is wrong."""
    faults = list(submission_faults(folder, check_bundle, allowed_signers))
    _refuse(faults)
    write_out(f"{folder}: {sum(1 for _ in submissions_of(folder)):,} submissions can be accepted\n")


def _refuse(faults: list[str]) -> None:
    write_out("".join(f"refused      {' '.join(fault.split())}\n" for fault in faults))
    if faults:
        raise typer.Exit(_EXIT_REFUSED)


def _readings(runs: list[Path], allowed: Path | None, judge: str) -> Iterator[Reading]:
    """Yield a function for each run that reads it, so that only one run at a time is in memory."""
    for path in runs:
        if is_bundle(path):
            yield partial(load_bundle, path, path.resolve().name, check_bundle, allowed, None)
        elif path.is_dir() and is_submissions(path):
            for bundle, submission in submissions_of(path):
                yield partial(load_bundle, bundle, submission.name, check_bundle, allowed, submission)
        elif path.exists():
            yield from (partial(_load, source, judge) for source in run_sources(path))
        else:
            raise SiteError(f"{path}: expected a bundle, a run, a sweep or a folder of submissions")


def _load(source: RunSource, judge: str) -> Loaded:
    facts, logs = source.load()
    folder = source.path.resolve().name
    name = folder if source.run_id is None else f"{folder} {source.run_id}"
    return Loaded(source.path, name, facts, evaluate(facts, judge), logs)
