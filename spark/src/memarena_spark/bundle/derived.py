"""Derives files from a bundle's facts: manifest, environment, energy, figures, reports. Same facts, same bytes.

``certify`` writes these files, ``verify`` makes them again and compares: a figure that was edited differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memarena.evaluation import evaluate, load_facts, missing_verdicts
from memarena.log.measuring import PhaseMeasured
from memarena.log.records import ReaderRef, Verdict
from memarena.log.store import read_records
from memarena.report.document import report_document
from memarena.report.render.html import to_html
from memarena.report.render.json import to_json
from memarena.report.render.markdown import to_markdown
from memarena.report.report_input import report_input
from memarena.report.rounding import rounded
from memarena.scoring.run import ScoredRun
from memarena.scoring.run_facts import RunFacts
from pydantic import JsonValue

from memarena_spark.announcing import Announcements, parse
from memarena_spark.bundle import layout
from memarena_spark.bundle.phases import measured_again
from memarena_spark.errors import FileError
from memarena_spark.facts import Unknown
from memarena_spark.files import canonical_json
from memarena_spark.fresh.commitment import FreshWorld, read_fresh
from memarena_spark.plans import Plan, parse_plan
from memarena_spark.profiles import NodeProfile, parse_profile
from memarena_spark.running import RunRecord


@dataclass(frozen=True)
class Facts:
    """The facts of a bundle, and the scores that follow from them."""

    record: RunRecord
    plan: Plan
    plan_text: str
    profile: NodeProfile
    profile_text: str
    run: RunFacts
    scored: ScoredRun
    phases: tuple[PhaseMeasured, ...]
    """Energy of every phase, computed again from the samples."""
    announcements: Announcements | None
    """Announcements of the node; None if the run was not announced."""
    fresh: FreshWorld | None
    """Commitment and beacon; None if the world was not a fresh one."""
    template_tokens: Mapping[str, Mapping[str, int]]
    """Prompt tokens of the fixed chats by reader, for readers whose chat template was compared with golden counts."""


def read_facts(folder: Path) -> Facts:
    """Read the facts of a bundle, finished or not.

    Raises FileError, or what reading a log or a samples file raises, with the file's name.
    """
    plan_text, profile_text = _text(folder / layout.PLAN), _text(folder / layout.PROFILE)
    run = load_facts(folder / layout.LOG_FOLDER)
    return Facts(
        record=read_record(folder / layout.RECORD),
        plan=parse_plan(plan_text, layout.PLAN),
        plan_text=plan_text,
        profile=parse_profile(profile_text, layout.PROFILE),
        profile_text=profile_text,
        run=run,
        scored=evaluate(run),
        phases=measured_again(folder / layout.LOG_FOLDER),
        announcements=_announcements(folder / layout.ANNOUNCED),
        fresh=read_fresh(folder / layout.FRESH, layout.FRESH),
        template_tokens=_template_tokens(folder / layout.LOG_FOLDER),
    )


def _announcements(path: Path) -> Announcements | None:
    return parse(path.read_bytes(), layout.ANNOUNCED) if path.is_file() else None


def _template_tokens(log_folder: Path) -> dict[str, dict[str, int]]:
    probes = (record for record in read_records(log_folder, "reader_probed") if record.kind == "reader_probed")
    return {probe.reader: dict(probe.prompt_tokens) for probe in probes if probe.ok and probe.prompt_tokens}


def read_record(path: Path) -> RunRecord:
    """Read the record of a run. Raises FileError if it is invalid, or not in canonical form."""
    content = path.read_bytes()
    try:
        record = RunRecord.model_validate_json(content)
    except ValueError as error:
        reason = " ".join(str(error).split())[:300]
        raise FileError(path.name, f"not the record of a run: {reason}") from error
    if canonical_json(record) != content:
        raise FileError(path.name, "not as this program writes it")
    return record


def derive(facts: Facts) -> dict[str, bytes]:
    """Return the content of the derived files by name."""
    run = report_input(facts.run, facts.scored)
    return {
        layout.MANIFEST: canonical_json(_manifest(facts)),
        layout.ENVIRONMENT: canonical_json(_environment(facts.record)),
        layout.ENERGY: canonical_json(_energy(facts.phases)),
        layout.RESULTS: to_json([run]).encode(),
        layout.REPORT: to_markdown(report_document([run])).encode(),
        layout.PAGE: to_html([run]).encode(),
    }


def fresh_verdicts(run: RunFacts) -> dict[tuple[str, str, int], Verdict]:
    """Return the verdicts of this program's value judge on all answers, whatever the log has."""
    verdicts = missing_verdicts(run, anew=True)
    return {(v.cell_id, v.instance_id, v.attempt): v for v in verdicts}


def _manifest(facts: Facts) -> JsonValue:
    """Return all that determines the result: data set, prompts, code, images, models, driver, flags, seeds."""
    record, state = facts.record, facts.record.preflight.state
    return {
        "run": facts.run.manifest.model_dump(mode="json"),
        "code_sha256": dict(record.code_sha256),
        "result_class": facts.plan.result_class,
        "backends": {r.backend: r.code.model_dump(mode="json") for r in record.conformance},
        "images": {name: image.model_dump(mode="json") for name, image in state.images.items()},
        "driver": state.gpu.model_dump(mode="json").get("driver"),
        "kernel": state.identity.kernel,
        "packages": dict(state.packages),
        "chat_templates": {reader.name: _template(facts, reader) for reader in facts.run.manifest.readers},
        "reader_server": None if state.reader_server is None else state.reader_server.model_dump(mode="json"),
        "readers": _readers(record),
        "embedder": None if state.embedder is None else state.embedder.model_dump(mode="json"),
    }


def _readers(record: RunRecord) -> JsonValue:
    """Return the processes of the readers, by the readers' names."""
    if isinstance(record.readers, Unknown):
        return record.readers.model_dump(mode="json")
    return {watch.name: watch.model_dump(mode="json") for watch in record.readers}


def _template(facts: Facts, reader: ReaderRef) -> JsonValue:
    """Return what is known of a reader's chat template, which affects every prompt."""
    if not reader.is_real_reader:
        return {"status": "no template", "reason": "the reader is no model"}
    if counts := facts.template_tokens.get(reader.name):
        return {"status": "as golden", "prompt_tokens": dict(counts)}
    return {"status": "not checked", "reason": "no golden token counts of this model were given"}


def _environment(record: RunRecord) -> JsonValue:
    """Return the node's state before the run, and observations around the run."""
    return {
        "node": record.preflight.state.model_dump(mode="json"),
        "canary_before": record.preflight.canary.model_dump(mode="json"),
        "canary_after": record.canary_after.model_dump(mode="json"),
        "thermal": record.thermal.model_dump(mode="json"),
    }


def _energy(phases: Sequence[PhaseMeasured]) -> JsonValue:
    """Return the energy of every phase; a missing figure is void or unavailable, never 0."""
    content: JsonValue = [phase.model_dump(mode="json", exclude={"kind"}) for phase in phases]
    return rounded(content)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(path.name, f"cannot be read: {error}") from error
