"""Verifies a bundle offline: all hashes, the signature, the rules, and all figures, computed again from the log."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from memarena.log.store import LogError
from memarena.meters.readings import MeterError, SamplesError
from memarena.scoring.errors import ScoringError
from memarena_dataset.safe_files import sha256_of
from pydantic import JsonValue

from memarena_spark.bundle import layout
from memarena_spark.bundle.announced import AnnouncementsChecked, check_announcements
from memarena_spark.bundle.answers import check_answers
from memarena_spark.bundle.derived import Facts, derive, fresh_verdicts, read_facts
from memarena_spark.bundle.fresh import fresh_notes
from memarena_spark.bundle.gold import gold_faults
from memarena_spark.bundle.latency import check_study
from memarena_spark.bundle.phases import differences
from memarena_spark.bundle.readers import reader_notes
from memarena_spark.bundle.rules import distinct, refusals_of
from memarena_spark.bundle.signing import allowed_signer, is_canonical, who_signed
from memarena_spark.bundle.statement import read_sums, statement, sums
from memarena_spark.code import own_code
from memarena_spark.errors import FileError, SparkError
from memarena_spark.fresh.world import world_faults


@dataclass(frozen=True)
class Trust:
    """The signatures that are trusted.

    ``allowed``: file of allowed signers; None: any valid signature. ``unsigned``: accept a bundle without a signature.
    """

    allowed: Path | None = None
    unsigned: bool = False
    witnesses: Path | None = None
    """Allowed signers of receipts, as ``allowed``; None: receipts are shown but not trusted."""


@dataclass(frozen=True)
class Fault:
    """A file, and what is wrong with it."""

    file: str
    message: str


@dataclass
class Verification:
    """The result of a verification."""

    held: list[str] = field(default_factory=list)
    """Checks that passed, a line each."""
    unchecked: list[str] = field(default_factory=list)
    """Checks that are impossible with this bundle alone, a line each."""
    faults: list[Fault] = field(default_factory=list)
    facts: Facts | None = None
    """The facts of the bundle; None if they could not be read."""

    @property
    def passed(self) -> bool:
        """Whether there is no fault."""
        return not self.faults


def verify(bundle: Path, trust: Trust, dataset: Path | None = None) -> Verification:
    """Verify a bundle; with its data set, also the log's gold, evidence and sources.

    Raises SparkError if ``bundle`` is not a folder or ssh-keygen is missing, and
    :class:`memarena_dataset.errors.DatasetError` if ``dataset`` is not a data set; anything else is a fault.
    """
    if not bundle.is_dir():
        raise SparkError(f"{bundle}: expected the folder of a bundle")
    result = Verification()
    result.faults += _structure(bundle, trust)
    if result.faults:
        return result
    hashes = {name: sha256_of(bundle / name) for name in layout.content_of(bundle)}
    result.faults += _hashes(bundle, hashes)
    if not result.faults:
        result.held.append(f"{len(hashes)} files are as {layout.SUMS} and {layout.STATEMENT} say")
        _facts(bundle, hashes, trust, dataset, result)
    _signature(bundle, trust, result)
    return result


# ------------------------------------------------------------------ what is there


def _structure(bundle: Path, trust: Trust) -> Iterator[Fault]:
    """Yield files of a bundle that are missing, unexpected or not regular."""
    names = layout.files_of(bundle)
    signature_files = () if trust.unsigned and layout.SIGNATURE not in names else (layout.SIGNATURE,)
    for name in (*layout.INPUTS, *layout.DERIVED, layout.SUMS, layout.STATEMENT, *signature_files):
        if name not in names:
            hint = "; --unsigned accepts a bundle without one" if name == layout.SIGNATURE else ""
            yield Fault(name, f"is missing{hint}")
    names_of_a_bundle = {*layout.INPUTS, *layout.DERIVED, *layout.SEALS}
    for name in names:
        if (bundle / name).is_symlink() or not (bundle / name).is_file():
            yield Fault(name, "is no plain file")
        elif name == layout.UNFINISHED:
            yield Fault(name, "the making of this bundle was cut short")
        elif name not in names_of_a_bundle and not name.startswith(layout.FOLDERS):
            yield Fault(name, "is not of a bundle")
    yield from (Fault(name, "is no folder of a bundle") for name in layout.strange_folders(bundle))


def _hashes(bundle: Path, hashes: Mapping[str, str]) -> Iterator[Fault]:
    """Compare file hashes with both lists: a file is at fault if both differ from it, a list if only it differs."""
    content = (bundle / layout.SUMS).read_bytes()
    in_sums = read_sums(content)
    in_statement = _subjects(bundle / layout.STATEMENT)
    any_fault = False
    # Both lists name every file: a file that differs from both was changed, a single list that differs is itself wrong.
    for name in sorted({*hashes, *(in_sums or {}), *(in_statement or {})}):
        differences = [
            f"{file} says {stated_hashes.get(name, 'nothing of it')}"
            for file, stated_hashes in ((layout.SUMS, in_sums), (layout.STATEMENT, in_statement))
            if stated_hashes is not None and stated_hashes.get(name) != hashes.get(name)
        ]
        witnesses = (in_sums is not None) + (in_statement is not None)
        if differences and len(differences) == witnesses:
            any_fault = True
            actual = f"its SHA-256 is {hashes[name]}" if name in hashes else "it is not there"
            yield Fault(name, f"{actual}, {' and '.join(differences)}")
    if not any_fault and content != sums(hashes):
        yield Fault(layout.SUMS, "is not what the bundle's files give")
    if in_statement is None:
        yield Fault(layout.STATEMENT, "is no statement: expected JSON with the SHA-256 of every file under subject")


def _subjects(path: Path) -> dict[str, str] | None:
    """Return the hashes in the statement by name; None if it cannot be read."""
    try:
        content: JsonValue = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return None
    subjects = content.get("subject") if isinstance(content, dict) else None
    digests: dict[str, str] = {}
    for subject in subjects if isinstance(subjects, list) else ():
        digest = subject.get("digest") if isinstance(subject, dict) else None
        if not isinstance(subject, dict) or not isinstance(digest, dict):
            return None
        digests[str(subject.get("name"))] = str(digest.get("sha256"))
    return digests or None


# ------------------------------------------------------------------ what follows from the facts


_NO_RUN = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Exceptions of reading and scoring for records that are valid one by one but do not make a run together."""


def _facts(bundle: Path, hashes: Mapping[str, str], trust: Trust, dataset: Path | None, result: Verification) -> None:
    """Check the content of a bundle with valid hashes. Any content leads to faults, never to an exception."""
    try:
        facts = result.facts = read_facts(bundle)
        _follow(bundle, facts, hashes, result)
        _gold(bundle, facts, dataset, result)
        announcements = check_announcements(bundle, facts, trust.witnesses)
        result.held += announcements.held
        result.unchecked += announcements.unchecked
        result.faults += [Fault(name, reason) for name, reason in announcements.faults]
        _fresh(facts, announcements, dataset, result)
    except FileError as error:
        result.faults.append(Fault(error.file, error.reason))
    except SamplesError as error:
        result.faults.append(Fault(error.path.relative_to(bundle).as_posix(), error.reason))
    except (LogError, MeterError, ScoringError, SparkError) as error:
        result.faults.append(Fault(layout.LOG, str(error)))
    except _NO_RUN as error:
        result.faults.append(Fault(layout.LOG, f"does not make a run: {type(error).__name__}: {error}"))


def _follow(bundle: Path, facts: Facts, hashes: Mapping[str, str], result: Verification) -> None:
    """Compare derived files and verdicts with those that follow from the facts."""
    log_folder = bundle / layout.LOG_FOLDER
    for refusal in distinct(refusals_of(facts, log_folder)):
        result.faults.append(Fault(layout.LOG, f"must not be certified: {refusal.code}: {refusal.reason}"))
    if facts.profile.demands.signature and layout.SIGNATURE not in layout.files_of(bundle):
        result.faults.append(Fault(layout.SIGNATURE, f"is missing, and the profile {facts.profile.name} demands it"))
    before = len(result.faults)
    result.faults += [Fault(layout.LOG, difference) for difference in differences(log_folder, facts.phases)]
    result.faults += [*_verdicts(facts, result), *_derived(bundle, facts), *_contract(bundle, facts)]
    result.unchecked += [
        f"the chat template of reader {reader.name}: {layout.MANIFEST} knows no golden token counts of it"
        for reader in facts.run.manifest.readers
        if reader.is_real_reader and reader.name not in facts.template_tokens
    ]
    if unkept := check_answers(log_folder).without_prompt:
        result.unchecked.append(f"the items shown in {unkept} answers: the prompts of their model calls were not kept")
    study = check_study(bundle, facts.run.started.run_id)
    result.faults += [Fault(name, f"{broken}{_by(facts)}") for name, broken in study.faults]
    if study.unchecked:
        result.unchecked.append(study.unchecked)
    if (bundle / layout.STATEMENT).read_bytes() != statement(facts, hashes):
        result.faults.append(Fault(layout.STATEMENT, "is not what the bundle's files give"))
    if len(result.faults) == before:
        run = facts.run
        answers = sum(q.outcome is not None for q in facts.scored.questions)
        for holds, line in reader_notes(facts):
            (result.held if holds else result.unchecked).append(line)
        result.held.append(
            f"{answers} answers in {len(run.manifest.cells)} cells, {len(run.verdicts)} verdicts and every figure "
            "follow from the log"
        )


def _gold(bundle: Path, facts: Facts, dataset: Path | None, result: Verification) -> None:
    if dataset is None:
        result.unchecked.append("gold, evidence, sources: the data set is not in a bundle (--dataset DIR checks them)")
        return
    faults = [*gold_faults(facts, bundle / layout.LOG_FOLDER, dataset)]
    result.faults += [Fault(layout.LOG, fault) for fault in faults]
    if not faults:
        result.held.append(f"gold, evidence and sources are those of the data set {facts.run.manifest.dataset.name}")


def _fresh(facts: Facts, announcements: AnnouncementsChecked, dataset: Path | None, result: Verification) -> None:
    if facts.fresh is None:
        return
    if dataset is not None:
        result.faults += [Fault(layout.FRESH, fault) for fault in world_faults(dataset, facts.fresh)]
    if result.passed:
        for holds, line in fresh_notes(facts, facts.fresh, announcements.receipts, dataset):
            (result.held if holds else result.unchecked).append(line)


def _verdicts(facts: Facts, result: Verification) -> Iterator[Fault]:
    """Compare each logged verdict of the value judge with that of this program's judge; all fields must be equal."""
    computed_verdicts = fresh_verdicts(facts.run)
    other_judges = 0
    for verdict in facts.run.verdicts:
        if verdict.judge != "value":
            other_judges += 1
            continue
        computed = computed_verdicts.get((verdict.cell_id, verdict.instance_id, verdict.attempt))
        logged_verdict = (
            f"the verdict on {verdict.instance_id} of {verdict.cell_id} is {verdict.correct} with {verdict.score:g}"
        )
        if computed is None or (computed.correct, computed.score) != (verdict.correct, verdict.score):
            says = "nothing" if computed is None else f"{computed.correct} with {computed.score:g}"
            yield Fault(layout.LOG, f"{logged_verdict}, the judge says {says} (judge {verdict.judge_version[:12]})")
            return
        if verdict.judge_version != computed.judge_version:
            versions = f"{verdict.judge_version[:12]}, here it is {computed.judge_version[:12]}"
            yield Fault(layout.LOG, f"{logged_verdict}, by the judge {versions}{_by(facts)}")
            return
        if verdict != computed:
            yield Fault(layout.LOG, f"{logged_verdict}, and its route or reason is not the judge's")
            return
    if other_judges:
        result.unchecked.append(f"{other_judges} verdicts of other judges than the one without a model")


def _derived(bundle: Path, facts: Facts) -> Iterator[Fault]:
    for name, content in derive(facts).items():
        if (bundle / name).read_bytes() != content:
            yield Fault(name, f"is not what follows from {layout.LOG} and {layout.RECORD}{_by(facts)}")


def _by(facts: Facts) -> str:
    """Return a remark if another version of the program made the bundle, which may derive other files; else empty."""
    code_then, code_now = facts.record.code_sha256, own_code()
    differing = sorted(name for name in code_then if code_now.get(name) != code_then[name])
    version = facts.run.manifest.versions.memarena
    return (
        f" (made by other code of {', '.join(differing)} than is here; memarena {version} made it)" if differing else ""
    )


def _contract(bundle: Path, facts: Facts) -> Iterator[Fault]:
    """Compare the JUnit files with the record of each backend; there may be no others."""
    reports = {report.file: report for report in facts.record.conformance}
    names = layout.files_of(bundle)
    for name in names:
        if name.startswith(layout.CONFORMANCE) and name not in reports:
            yield Fault(name, f"is of no backend in {layout.RECORD}")
    for name, report in reports.items():
        if name not in names:
            # Never opened: a record may name any file of this machine.
            yield Fault(layout.RECORD, f"names {name}, which is not in the bundle")
            continue
        try:
            suite = ElementTree.parse(bundle / name).getroot()  # noqa: S314 (its hash was checked, and it is small)
        except (OSError, ElementTree.ParseError) as error:
            yield Fault(name, f"cannot be read: {error}")
            continue
        failures = len(suite.findall("testcase/failure"))
        total = len(suite.findall("testcase"))
        if failures != report.counts.get("failed") or total != sum(report.counts.values()):
            yield Fault(name, f"{failures} of {total} checks failed, {layout.RECORD} says otherwise")


# ------------------------------------------------------------------ who says so


def _signature(bundle: Path, trust: Trust, result: Verification) -> None:
    """Check the signature of the statement; add faults, or the facts that hold, to ``result``."""
    path, signature = bundle / layout.STATEMENT, bundle / layout.SIGNATURE
    if not signature.is_file():
        if trust.allowed is not None:
            result.faults.append(Fault(layout.SIGNATURE, "is missing, so no one of --allowed-signers signed it"))
        else:
            result.held.append("unsigned: anybody may have made it")
        return
    if not is_canonical(signature.read_bytes()):
        result.faults.append(Fault(layout.SIGNATURE, "is not in the form that ssh-keygen writes"))
        return
    signer = who_signed(path, signature)
    if signer is None:
        if not any(fault.file == layout.STATEMENT for fault in result.faults):
            result.faults.append(Fault(layout.SIGNATURE, f"is not a valid signature of {layout.STATEMENT}"))
        return
    if trust.allowed is None:
        result.held.append(f"signed by {signer}, for whom no list of signers vouches (--allowed-signers)")
        return
    principal = allowed_signer(path, signature, trust.allowed)
    if principal is None:
        result.faults.append(Fault(layout.SIGNATURE, f"signed by {signer}, who is not in {trust.allowed}"))
    else:
        result.held.append(f"signed by {principal} ({signer})")
