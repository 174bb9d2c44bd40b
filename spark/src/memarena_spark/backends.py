"""Identifies the code of a run's backends by a digest, and runs the conformance suite against them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from memarena.conformance import SuiteResult, run_suite
from memarena.conformance.junit import junit
from memarena.execution.backends.containers import ContainerHost, ContainerLimits, docker_client, image_facts
from memarena.execution.backends.manifests import (
    AddressedBackend,
    BackendChoice,
    ContainerBackend,
    LaunchableBackend,
    choose_backend,
)
from memarena.execution.backends.process import LaunchError, launch
from memarena.log.base import Record

from memarena_spark.code import folder_sha256, package_folder
from memarena_spark.errors import RefusedError, SparkError
from memarena_spark.facts import Unknown
from memarena_spark.files import write_whole
from memarena_spark.node import Node
from memarena_spark.plans import Plan
from memarena_spark.refusal_codes import refusal


class BackendCode(Record):
    """The code that runs under a backend's name."""

    digest: str
    """``sha256:…`` of its image, or over the files that make it."""
    source: str
    """Origin of the digest: ``docker`` (the daemon), ``declared`` (the compose file) or ``files`` (hashed here)."""


class ConformanceReport(Record):
    """A run of the conformance suite: its result, its JUnit file, and the code of the backend that was tested."""

    backend: str
    code: BackendCode
    version: str
    passed: bool
    counts: dict[str, int]
    file: str
    """Path of the JUnit file within the run's folder and within the bundle."""


def code_of(backend: BackendChoice, node: Node) -> BackendCode:
    """Return the digest of a backend's code. Raises :class:`~memarena_spark.errors.RefusedError` if it is unknown."""
    if not isinstance(backend, LaunchableBackend):
        image = node.image(backend.name if isinstance(backend, AddressedBackend) else f"image:{backend.image}")
        if isinstance(image, Unknown):
            raise RefusedError("run", [refusal("image", f"backend {backend.name}: cannot be told: {image.unknown}")])
        return BackendCode(digest=image.digest, source=image.source)
    return BackendCode(digest=f"sha256:{folder_sha256(*_roots(backend))}", source="files")


def _roots(backend: LaunchableBackend) -> Iterator[Path]:
    """Yield the manifest's folder, and the folder of the package that its command runs if that is elsewhere."""
    folder = backend.folder.resolve()
    yield folder
    command = backend.manifest.command
    if "-m" in command[:-1]:
        package = package_folder(command[command.index("-m") + 1].partition(".")[0])
        if package is not None and not package.is_relative_to(folder):
            yield package


def hold_to_contract(name: str, node: Node, out: Path, plan: Plan) -> ConformanceReport:
    """Run the conformance suite against a backend of a plan; its JUnit goes to ``out``/conformance.

    Raises :class:`~memarena_spark.errors.RefusedError` if the backend's code is unknown, and SparkError if it cannot
    be started.
    """
    backend = choose_backend(name)
    code = code_of(backend, node)
    if isinstance(backend, AddressedBackend):
        result = run_suite(backend.address, advertise=plan.advertise)
    else:
        result = _launched(backend, out / "conformance" / f"{backend.name}.run", plan)
    file = f"conformance/{backend.name.replace(':', '_')}.xml"
    write_whole(out / file, junit(result))
    return ConformanceReport(
        backend=backend.name,
        code=code,
        version=result.described.version,
        passed=result.passed,
        counts=_counts(result),
        file=file,
    )


def _launched(backend: LaunchableBackend | ContainerBackend, folder: Path, plan: Plan) -> SuiteResult:
    """Run the suite against a backend that is started as the run will start it, in the new folder ``folder``."""
    settings = plan.run.settings.get(backend.name, {})
    try:
        with ExitStack() as stack:
            if isinstance(backend, ContainerBackend):
                client = docker_client()
                images = {backend.name: image_facts(client, backend).image_id}
                limits = ContainerLimits(plan.run.backend_memory, plan.run.backend_pids, plan.run.backend_cpus)
                containers = stack.enter_context(ContainerHost(client, images, limits))
                container = containers.launch(backend, folder, settings)
                stack.callback(container.stop)
                return run_suite(container.address, advertise=containers.gateway_host)
            process = launch(backend, folder, settings=settings)
            stack.callback(process.stop)
            return run_suite(process.address)
    except LaunchError as error:
        raise SparkError(f"conformance: {error}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _counts(result: SuiteResult) -> dict[str, int]:
    return {status: len(result.ids(status)) for status in ("passed", "failed", "skipped", "advice")}
