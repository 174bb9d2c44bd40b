"""Collects the provenance of a run for a report: data, settings, software and hashes needed to repeat it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from memarena.log.records import DatasetRef, Manifest, NamedConfiguration, ReaderRef, Record, Versions
from memarena.report.layout import Cell, Column, Fact, Section, counted, section

_fact = partial(Fact, width=9)


class SeedUsed(Record):
    """A cell's seed and what it was read with."""

    cell_id: str
    seed: int
    temperature: float


class BackendUsed(Record):
    """A backend's settings and how it was started."""

    name: str
    options: dict[str, str]
    settings: dict[str, str]
    """Environment variables other than those of its manifest."""
    address: str | None
    """Address of a running backend; None if the harness started it."""
    image: str | None
    image_id: str | None
    """Id of the container image that ``image`` named; both None if no container was started."""


class Provenance(Record):
    """A run's manifest without the key of its opaque ids."""

    run_id: str
    started_at: str
    dataset: DatasetRef
    protocol: str
    question_filter: str | None
    configuration: NamedConfiguration | None
    """Configuration file of the run, whose values flags may have overridden; None if there was none."""
    readers: tuple[ReaderRef, ...]
    helpers: dict[str, ReaderRef]
    """Models that backends may call, by role such as ``embedder``."""
    backends: tuple[BackendUsed, ...]
    versions: Versions
    data_files_sha256: dict[str, str]
    """SHA-256 by name of every versioned file that can affect a score (prompts, lexicons, tables)."""
    order_seed: int
    deadlines_s: dict[str, float]
    seeds: tuple[SeedUsed, ...]


def provenance_of(run_id: str, started_at: str, manifest: Manifest) -> Provenance:
    """Return the provenance of a run from its manifest."""
    return Provenance(
        run_id=run_id,
        started_at=started_at,
        dataset=manifest.dataset,
        protocol=manifest.protocol,
        question_filter=manifest.question_filter,
        configuration=manifest.configuration,
        readers=manifest.readers,
        helpers=dict(sorted(manifest.helpers.items())),
        backends=_backends(manifest),
        versions=manifest.versions,
        data_files_sha256=dict(sorted(manifest.data_files_sha256.items())),
        order_seed=manifest.order_seed,
        deadlines_s=dict(sorted(manifest.deadlines_s.items())),
        seeds=tuple(
            SeedUsed(cell_id=c.cell_id, seed=c.reading.seed, temperature=c.reading.temperature) for c in manifest.cells
        ),
    )


def _backends(manifest: Manifest) -> tuple[BackendUsed, ...]:
    """Return each backend of the run once: its settings are the same for all readers and seeds."""
    cells = {cell.backend: cell for cell in manifest.cells}
    return tuple(
        BackendUsed(
            name=name,
            options=dict(sorted(cell.backend_options.items())),
            settings=dict(sorted(cell.backend_settings.items())),
            address=cell.backend_address,
            image=cell.backend_image,
            image_id=cell.backend_image_id,
        )
        for name, cell in cells.items()
    )


def provenance_sections(records: Sequence[Provenance]) -> list[Section]:
    """Return for each run a section of facts, and a table of the hashes of files that can affect scores."""
    sections = []
    for number, record in enumerate(records, 1):
        suffix = f" of run {number}" if len(records) > 1 else ""
        sections.append(_facts(record, f"Provenance{suffix}"))
        if record.data_files_sha256:
            rows = [[Cell(name), Cell(digest)] for name, digest in record.data_files_sha256.items()]
            columns = [Column("file", align="left"), Column("sha256", align="left")]
            sections.append(section(f"Files that decide scores{suffix}", columns, rows))
    return sections


def _facts(record: Provenance, title: str) -> Section:
    data, versions = record.dataset, record.versions
    lines = [
        _fact("run", f"{record.run_id}, started {record.started_at}, order seed {record.order_seed}"),
        _fact("data set", f"{data.name}, sha256 {data.sha256}"),
        _fact(
            "world",
            f"{counted(data.ego_count, 'ego')}, {counted(data.day_count, 'day')} from {data.calendar_epoch}, "
            f"{data.instance_count:,} questions",
        ),
        _fact(
            "protocol", f"{record.protocol}" + (f", filter {record.question_filter}" if record.question_filter else "")
        ),
        *_configuration(record.configuration),
        *(_fact("backend", _backend(backend)) for backend in record.backends),
        *(_fact("reader", _reader(reader)) for reader in record.readers),
        *(_fact(role, _reader(helper)) for role, helper in record.helpers.items()),
        _fact("seeds", "; ".join(_seeds(record.seeds))),
        _fact("deadlines", ", ".join(f"{name} {seconds:g} s" for name, seconds in record.deadlines_s.items())),
        _fact("machine", ", ".join(filter(None, (versions.platform, versions.cpu)))),
        _fact(
            "software",
            f"memarena {versions.memarena}, Python {versions.python}"
            + "".join(f", {name} {version}" for name, version in sorted(versions.packages.items())),
        ),
    ]
    return Section(title, tuple(lines))


def _configuration(configuration: NamedConfiguration | None) -> list[Fact]:
    return (
        []
        if configuration is None
        else [_fact("set by", f"{configuration.name}, sha256 {configuration.sha256}; flags override it")]
    )


def _backend(backend: BackendUsed) -> str:
    parts = [f"{name}={value}" for name, value in (*backend.options.items(), *backend.settings.items())]
    if backend.address is not None:
        parts.append(f"at {backend.address}")
    if backend.image is not None:
        parts.append(f"image {backend.image} ({backend.image_id})")
    return f"{backend.name}: {', '.join(parts) or 'default settings'}"


def _reader(reader: ReaderRef) -> str:
    details = "".join(f", {name} {value}" for name, value in sorted(reader.details.items()))
    return f"{reader.name}: {reader.model}, window {reader.context_window_tokens:,} tokens{details}"


def _seeds(seeds: Sequence[SeedUsed]) -> list[str]:
    """Return each seed with its temperature, without duplicates, in the order of the cells."""
    return list(dict.fromkeys(f"{s.cell_id.rpartition('/')[2]} = {s.seed} at T = {s.temperature:g}" for s in seeds))
