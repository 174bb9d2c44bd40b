"""``memarena doctor``: checks what this machine can run, and what is missing for the rest."""

from __future__ import annotations

import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import psutil
import typer
from memarena_dataset.programs import EXIT_FAULTS
from rich.console import Console
from rich.table import Table

from memarena.cli.backends import environment_line
from memarena.client.backend import BackendClient, Deadlines
from memarena.client.errors import BackendCallError, BackendContractError
from memarena.execution.backends.manifests import LaunchableBackend, backends_by_name, name_clash
from memarena.execution.backends.process import LaunchError, launch
from memarena.execution.errors import RunError
from memarena.execution.models.reader_environments import SERVERS, lacks, reader_environment
from memarena.execution.planning.preflight import MIN_FREE_BYTES
from memarena.meters.choice import AUTO
from memarena.meters.sources import open_source
from memarena.readers.embedded import find_weights, usable_cpus
from memarena.readers.errors import ReaderError

Status = Literal["ok", "missing", "broken"]

_COMMAND_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Finding:
    """Result of one check. ``missing`` limits what can be run, ``broken`` is a fault."""

    what: str
    status: Status
    detail: str


def doctor(
    out: Annotated[Path, typer.Option(help="Where runs will be written: its free space is looked at.")] = Path(),
    start: Annotated[
        bool, typer.Option("--start", help="Start every backend once and ask what it is (half a minute).")
    ] = False,
) -> None:
    """Say what this machine can run and what is missing. Exit 1 if something is broken."""
    table = Table(box=None, pad_edge=False)
    for column in ("what", "status", "detail"):
        table.add_column(column, overflow="fold")
    findings = [*_machine(out), *_readers(), *_servers(), *_backends(start=start), *_tools(), *_meters()]
    for finding in findings:
        table.add_row(finding.what, finding.status, finding.detail)
    # Without markup, which would take the [extra] of a package for a style and swallow it.
    Console(markup=False).print(table)
    if any(finding.status == "broken" for finding in findings):
        raise typer.Exit(EXIT_FAULTS)


def _machine(out: Path) -> Iterator[Finding]:
    memory_gib = psutil.virtual_memory().total / 2**30
    detail = f"Python {platform.python_version()}, {platform.machine()}, {usable_cpus()} CPUs, {memory_gib:.0f} GiB"
    yield Finding("machine", "ok", detail)
    if not out.exists():
        yield Finding("disk", "missing", f"{out}: no such folder")
        return
    free = shutil.disk_usage(out).free
    yield Finding(
        "disk", "ok" if free >= MIN_FREE_BYTES else "broken", f"{free / 2**30:.1f} GiB free in {out.absolute()}"
    )


def _readers() -> Iterator[Finding]:
    yield Finding("reader extractive", "ok", "no model, nothing to install")
    try:
        weights = find_weights()
    except ReaderError as error:
        yield Finding("reader embedded", "missing", str(error))
    else:
        yield Finding("reader embedded", "ok", f"{weights.model}, xllamacpp {weights.engine_version}")


def _servers() -> Iterator[Finding]:
    """Check the servers of readers: their environments, and what the machine lacks for them."""
    driver = _driver()
    for server in SERVERS:
        environment = reader_environment(server)
        missing = environment.missing()
        faults = lacks(server, driver, platform.libc_ver()[1] if platform.libc_ver()[0] == "glibc" else "")
        detail = "; ".join([missing or environment_line(environment), *faults])
        yield Finding(f"readers {server}", "missing" if missing or faults else "ok", detail)


def _driver() -> str | None:
    """Return the version of the NVIDIA driver; None if there is none."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    check = _tool("NVIDIA driver", command, "")
    return check.detail if check.status == "ok" else None


def _backends(*, start: bool) -> Iterator[Finding]:
    try:
        backends = backends_by_name()
    except RunError as error:
        yield Finding("backends", "broken", str(error))
        return
    if not backends:
        yield Finding("backends", "missing", "no backend.toml was found; backends can be given as HOST:PORT")
    for name in sorted(backends):
        clash = name_clash(backends[name])
        yield (
            Finding(f"backend {name}", "broken", clash)
            if clash is not None
            else _backend(backends[name][0], start=start)
        )


def _backend(backend: LaunchableBackend, *, start: bool) -> Finding:
    """Check a backend: whether it is installed, and with ``start`` whether it starts and answers Describe."""
    what = f"backend {backend.name}"
    if (missing := backend.missing()) is not None:
        return Finding(what, "missing", missing)
    kind = ", diagnostic" if backend.diagnostic else ""
    if backend.environment is not None:
        kind += f", {environment_line(backend.environment)}"
    if not start:
        return Finding(what, "ok", f"installed{kind}; --start tries it")
    with tempfile.TemporaryDirectory(prefix="memarena-") as folder:
        try:
            process = launch(backend, Path(folder))
        except LaunchError as error:
            return Finding(what, "broken", str(error))
        try:
            with BackendClient(process.address, Deadlines(health_s=20.0)) as client:
                client.wait_until_serving(process.alive)
                described = client.describe()
        except (BackendCallError, BackendContractError) as error:
            return Finding(what, "broken", str(error))
        finally:
            process.stop()
    return Finding(what, "ok", f"version {described.version}, contract {described.contract_version}{kind}")


def _tools() -> Iterator[Finding]:
    for what, command, use in (
        ("docker", ["docker", "version", "--format", "{{.Server.Version}}"], "backends in containers"),
        (
            "NVIDIA GPU",
            ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
            "readers on SGLang, power",
        ),
    ):
        yield _tool(what, command, use)


def _meters() -> Iterator[Finding]:
    """Check the channels that ``--meter auto`` can read here, with the reasons why others are unavailable."""
    for spec in AUTO:
        source = open_source(spec)
        try:
            channels = ", ".join(f"{channel.name} ({channel.unit})" for channel in source.channels)
            reasons = "; ".join(dict.fromkeys(entry.reason for entry in source.unavailable))
        finally:
            source.close()
        detail = channels + (f"; {len(source.unavailable)} unavailable: {reasons}" if channels and reasons else reasons)
        yield Finding(f"meter {spec}", "ok" if channels else "missing", detail or "nothing to read")


def _tool(what: str, command: list[str], use: str) -> Finding:
    """Check whether a command works; ``use``: what needs it."""
    if shutil.which(command[0]) is None:
        return Finding(what, "missing", f"{command[0]} is not installed (needed for {use})")
    try:
        completed = subprocess.run(command, capture_output=True, text=True, timeout=_COMMAND_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding(what, "missing", f"{command[0]} does not answer: {error} (needed for {use})")
    lines = (completed.stdout if completed.returncode == 0 else completed.stderr).strip().splitlines() or [""]
    if completed.returncode != 0:
        return Finding(what, "missing", f"{lines[-1][:200]} (needed for {use})")
    return Finding(what, "ok", lines[0])
