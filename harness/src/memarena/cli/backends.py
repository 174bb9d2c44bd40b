"""``memarena backends``: lists backends, and installs or removes their separate environments."""

from __future__ import annotations

from typing import Annotated

import typer
from memarena_dataset.printing import echo, note

from memarena.cli.completion import backends
from memarena.execution.backends.environment_making import make_environment, megabytes, remove_environments
from memarena.execution.backends.environments import BackendEnvironment
from memarena.execution.backends.manifests import LaunchableBackend, backends_by_name, choose_backend, name_clash
from memarena.execution.errors import RunError

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME]...", help="Names, or folders.", show_default=False, autocompletion=backends),
]
All = Annotated[bool, typer.Option("--all", help="All that can be found.")]


@app.command("list")
def list_command() -> None:
    """List the backends that can be found, and what each lacks."""
    rows = [("name", "kind", "where", "state")]
    for name, candidates in sorted(backends_by_name().items()):
        backend = candidates[0]
        rows.append((name, backend.manifest.kind, str(backend.folder), name_clash(candidates) or _state(backend)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


@app.command()
def install(names: Names = None, everything: All = False) -> None:
    """Make the environments of backends that have one of their own; what is there already is left alone."""
    for backend in _chosen(names or [], everything):
        if backend.environment is None:
            echo(f"{backend.name} has no separate environment: nothing to install")
        else:
            make_environment(backend.environment, note)
            echo(f"{backend.name}: {environment_line(backend.environment)}")


@app.command()
def remove(names: Names = None, everything: All = False) -> None:
    """Remove the environments of backends, also those that are out of date or were made for another folder."""
    backend_by_environment = {
        b.environment.name: b.name for b in _chosen(names or [], everything) if b.environment is not None
    }
    for environment, name in backend_by_environment.items():
        echo(f"{name}: {_counted(remove_environments(environment, note))} removed")
    if not backend_by_environment:
        echo("no separate environment: nothing to remove")


def environment_line(environment: BackendEnvironment) -> str:
    """Return one line on an environment: size, Python, path, and environments that are out of date."""
    location = environment.environment_path()
    whole_stamp = location.whole_stamp()
    if whole_stamp is None:
        raise RunError(f"{environment.name}: {environment.missing()}")
    line = f"environment of {megabytes(whole_stamp.size_bytes)} with Python {whole_stamp.python} in {location.path}"
    if old := environment.out_of_date():
        size = megabytes(sum(stamp.size_bytes for stamp in old))
        line += f"; {_counted(len(old))} out of date next to it ({size})"
    return line


def _chosen(names: list[str], everything: bool) -> list[LaunchableBackend]:
    """Return the backends that were named, or with ``everything`` all with a separate environment. Raises RunError."""
    if bool(names) == everything:
        raise RunError("expected names of backends, or --all")
    if everything:
        by_name = [candidates for _, candidates in sorted(backends_by_name().items())]
        return [
            candidates[0]
            for candidates in by_name
            if candidates[0].environment is not None and name_clash(candidates) is None
        ]
    backends = [choose_backend(name) for name in names]
    for name, backend in zip(names, backends, strict=True):
        if not isinstance(backend, LaunchableBackend):
            raise RunError(f"{name}: expected a backend that is started here, not an address or an image")
    return [backend for backend in backends if isinstance(backend, LaunchableBackend)]


def _state(backend: LaunchableBackend) -> str:
    if (unmet := backend.unmet()) is not None:
        return unmet
    if backend.environment is None:
        return "ready"
    missing = backend.environment.missing()
    return f"ready, {environment_line(backend.environment)}" if missing is None else missing


def _counted(count: int) -> str:
    return f"{count} environment" if count == 1 else f"{count} environments"
