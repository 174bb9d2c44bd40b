"""The command ``memarena-spark``: thin verbs that parse, call one function and print."""

from __future__ import annotations

import os
import secrets
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from memarena.readers.starting import API_KEY_VARIABLE
from memarena_dataset.printing import write_err, write_out
from memarena_dataset.programs import EXIT_INCOMPLETE, EXIT_INTERRUPTED, run_guarded
from memarena_dataset.single_use_options import OnceGroup
from memarena_dataset.version_option import version_printer

from memarena_spark import announcing
from memarena_spark.audit import REPORT, SHARE
from memarena_spark.audit import audit as audit_bundle
from memarena_spark.bundle.certify import certify as make_bundle
from memarena_spark.bundle.receipts import confirm
from memarena_spark.bundle.signing import check_key
from memarena_spark.bundle.verify import Trust
from memarena_spark.bundle.verify import verify as verify_bundle
from memarena_spark.checks.canaries import check_canary
from memarena_spark.errors import EXIT_REFUSED, SparkError, print_refusals
from memarena_spark.facts import Unknown
from memarena_spark.files import canonical_json
from memarena_spark.fresh.beacons import NETWORKS
from memarena_spark.fresh.commitment import commit as make_commitment
from memarena_spark.fresh.world import make_world
from memarena_spark.locking import check_lock, lock_path
from memarena_spark.machine import ThisMachine
from memarena_spark.plans import load_plan
from memarena_spark.preflight import preflight as look_before
from memarena_spark.profiles import known_profiles, parse_profile, profile_text
from memarena_spark.running import run_certification

app = typer.Typer(
    name="memarena-spark",
    cls=OnceGroup,
    help="Certification runs on an edge node, and bundles that others can check offline.",
    pretty_exceptions_enable=False,
)


PlanOption = Annotated[Path, typer.Option("--plan", help="What is certified, as YAML: docs/spark.md.")]
AllowedOption = Annotated[
    Path | None, typer.Option("--allowed-signers", help="Whose signatures count, as ssh-keygen(1) has the file.")
]
ReceiptOption = Annotated[
    list[Path] | None, typer.Option("--receipt", help="A witness's receipt for the announcements, with FILE.sig.")
]
KeyOption = Annotated[Path | None, typer.Option("--key", help="SSH key that signs the bundle.")]


@app.command()
def preflight(
    plan: PlanOption,
    out: Annotated[Path, typer.Option(help="Where the run would go: room and rights to write are looked at.")] = Path(),
    key: KeyOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all that was found as JSON.")] = False,
) -> None:
    """Say whether a run may begin on this node. Exit 4 with every reason if it may not.

    The API key of a reader is taken from MEMARENA_READER_API_KEY.
    """
    if key is not None:
        _signing(key, unsigned=False)
    check_lock(lock_path())
    result = look_before(ThisMachine(reader_api_key=_reader_key()), load_plan(plan), out)
    if as_json:
        write_out(canonical_json(result).decode())
    elif result.passed:
        write_out("passed\n")
    else:
        print_refusals(result.refusals)
    if not result.passed:
        raise typer.Exit(EXIT_REFUSED)


@app.command()
def canary(
    plan: Annotated[Path | None, typer.Option("--plan", help="Plan with this node's golden values.")] = None,
    profile: Annotated[
        str | None,
        typer.Option(help=f"Profile: {', '.join(known_profiles())}, or a file.", autocompletion=known_profiles),
    ] = None,
) -> None:
    """Run the compute canary and hold it to its band. Exit 4 if it leaves it. Prints what a plan needs as golden.

    The canary is a fixed computation. Its speed shows whether the node is as
    well as when its golden values, those of the plan, were measured.
    """
    if (plan is None) == (profile is None):
        raise SparkError("expected either --plan or --profile")
    loaded_plan = load_plan(plan) if plan is not None else None
    node_profile = (
        loaded_plan.profile if loaded_plan else parse_profile(profile_text(profile or ""), f"profile {profile}")
    )
    result = ThisMachine().canary(node_profile.canary)
    if not isinstance(result, Unknown):
        clock = "" if isinstance(result.clock_mhz, Unknown) else f", clock_mhz: {result.clock_mhz:.0f}"
        write_out(f"{result.engine}, {result.dtype}, {result.size} × {result.size}, {result.windows} windows\n")
        write_out(f"golden: {{tflops: {result.tflops:.5g}{clock}}}\n")
    golden = loaded_plan.plan.golden if loaded_plan else None
    refusals = [
        r for r in check_canary(result, node_profile.canary, golden) if loaded_plan or r.code != "canary-golden"
    ]
    print_refusals(refusals)
    if refusals:
        raise typer.Exit(EXIT_REFUSED)


@app.command()
def announce(
    plan: PlanOption,
    nonce: Annotated[str, typer.Option(help="A value that a second party made just now.")] = "",
) -> None:
    """Write down that a plan will be run, and print the hash that a second party can keep or confirm.

    The node's announcements are numbered, and a bundle carries all of them.

    Example:
      memarena-spark announce --plan PLAN
      memarena-spark run --plan PLAN --announced --out RUN
    """
    path = announcing.announcements_path()
    announcement = announcing.announce(path, load_plan(plan), ThisMachine().identity().name, nonce)
    head = announcing.read(path).head_sha256
    write_out(f"announcement {announcement.number} at {announcement.at}; {path}, last line {head}\n")


@app.command()
def witness(
    announcements: Annotated[Path, typer.Argument(metavar="FILE", help="Announcements of a node.")],
    key: Annotated[Path, typer.Option("--key", help="SSH key of the witness.")],
    out: Annotated[Path, typer.Option(help="New file of the receipt; its signature is FILE.sig.")],
    seen: Annotated[Path, typer.Option(help="Folder of the witness, with what it saw of each node last.")],
) -> None:
    """Confirm having seen a node's announcements. Exit 4 if they do not continue what was seen of them before.

    For a second party: the operator adds the receipt to the bundle (--receipt).
    """
    check_key(key)
    receipt = confirm(announcements, key, out, seen)
    write_out(f"{receipt.lines} lines of {receipt.node}, last line {receipt.head_sha256}; {out}\n")


@app.command()
def commit(
    plan: PlanOption,
    out: Annotated[Path, typer.Option(help="New folder of the commitment.")],
    at: Annotated[datetime, typer.Option(help="Earliest time of the beacon's round, in UTC.")],
    network: Annotated[str, typer.Option(help=f"Beacon: {', '.join(NETWORKS)} of drand.")] = "quicknet",
    preset: Annotated[str, typer.Option(help="Size of the world, by masim's name.")] = "s",
    pack_sha256: Annotated[
        str | None, typer.Option(help="SHA-256 of a pack that will be published; default: masim's own.")
    ] = None,
) -> None:
    """Fix plan and backends before the world of a run can be known, and announce it.

    The world's seed follows from the commitment and a beacon's round to come.

    Example:
      memarena-spark commit --plan PLAN --at 2030-01-01T12:00:00 --out FRESH
      memarena-spark fresh-world FRESH --beacon FILE --out DIR
      memarena-spark announce --plan PLAN
      memarena-spark run --plan PLAN --announced --fresh FRESH --out RUN
    """
    path, moment = announcing.announcements_path(), at.replace(tzinfo=at.tzinfo or UTC)
    commitment = make_commitment(out, load_plan(plan), ThisMachine(), path, network, moment, preset, pack_sha256)
    head = announcing.read(path).head_sha256
    appears_at = NETWORKS[network].time_of(commitment.round)
    write_out(f"commitment {commitment.sha256} in {out}; {path}, last line {head}\n")
    write_out(
        f"the seed follows from round {commitment.round} of {network}, "
        f"which appears at {appears_at:%Y-%m-%dT%H:%M:%SZ}\n"
    )


@app.command("fresh-world")
def fresh_world(
    folder: Annotated[Path, typer.Argument(metavar="FRESH", help="Folder of a commitment, or fresh of a bundle.")],
    out: Annotated[Path, typer.Option(help="New folder of the data set.")],
    beacon: Annotated[
        Path | None, typer.Option(help="JSON of the beacon's round; default: that in FRESH, to make a world again.")
    ] = None,
    pack: Annotated[Path | None, typer.Option(help="The pack that the commitment names.")] = None,
) -> None:
    """Make the world that follows from a commitment and the beacon's value. The same bytes wherever it is done."""
    seed = make_world(folder, beacon, pack, out)
    write_out(f"{out}: seed {seed}\n")


@app.command()
def run(
    plan: PlanOption,
    out: Annotated[Path | None, typer.Option(help="New folder of the run.")] = None,
    under: Annotated[Path | None, typer.Option(help="Make a folder named by the time in this one, for timers.")] = None,
    bundle: Annotated[bool, typer.Option("--certify", help="Make the bundle too, in FOLDER.bundle.")] = False,
    key: KeyOption = None,
    unsigned: Annotated[bool, typer.Option("--unsigned", help="Make the bundle without a signature.")] = False,
    announced: Annotated[
        bool, typer.Option("--announced", help="Do the run that was announced with this plan (announce).")
    ] = False,
    fresh: Annotated[
        Path | None, typer.Option(help="Folder of the commitment that the plan's world follows from (commit).")
    ] = None,
    receipt: ReceiptOption = None,
) -> None:
    """Do a certification run: preflight, contract, rest, run, canary. Exit 4 if refused, 3 if it did not complete.

    Example, which any machine can do:
      memarena-spark run --plan spark/plans/cpu-dev.yaml --out runs/certified

    The API key of a reader is taken from MEMARENA_READER_API_KEY.
    """
    if (out is None) == (under is None):
        raise SparkError("expected either --out or --under")
    if bundle:
        _signing(key, unsigned)
    elif key is not None or unsigned or receipt:
        raise SparkError("--key, --unsigned, --receipt: only together with --certify")
    if fresh is not None and not announced:
        raise SparkError("--fresh: only together with --announced: the announcements show what was committed to before")
    loaded_plan = load_plan(plan)
    announcements = announcing.announcements_path() if announced else None
    folder = out or (under or Path()) / datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        node = ThisMachine(reader_api_key=_reader_key())
        record = run_certification(node, loaded_plan, folder, _say, _reader_key(), announcements, fresh)
    finally:
        signal.signal(signal.SIGTERM, before)
    _say(f"{record.outcome}; {folder}")
    if record.outcome == "interrupted":
        raise typer.Exit(EXIT_INTERRUPTED)
    if record.outcome != "completed":
        _say(record.message or f"{record.left} questions left")
        raise typer.Exit(EXIT_INCOMPLETE)
    if bundle:
        bundle_folder = folder.with_name(f"{folder.name}.bundle")
        make_bundle(folder, bundle_folder, key, receipts=receipt or ())
        _say(f"certified: {bundle_folder}")


@app.command()
def certify(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a memarena-spark run.")],
    out: Annotated[Path, typer.Option(help="New folder of the bundle.")],
    key: KeyOption = None,
    unsigned: Annotated[
        bool, typer.Option("--unsigned", help="Without a signature, where the profile allows.")
    ] = False,
    latency: Annotated[Path | None, typer.Option(help="Folder of a latency study that goes with it.")] = None,
    receipt: ReceiptOption = None,
) -> None:
    """Make a bundle of a finished run. Exit 4 with every reason if it is not certified.

    A bundle is a folder with the log, all that follows from it, and a signed
    statement with the hash of every file.

    Example:
      memarena-spark certify runs/certified --out runs/certified.bundle --key KEY
    """
    _signing(key, unsigned)
    make_bundle(run, out, key, latency, receipt or ())
    write_out(f"certified: {out}\n")


@app.command()
def verify(
    bundle: Annotated[Path, typer.Argument(metavar="BUNDLE", help="Folder of a bundle.")],
    allowed_signers: AllowedOption = None,
    unsigned: Annotated[bool, typer.Option("--unsigned", help="Accept a bundle without a signature.")] = False,
    dataset: Annotated[
        Path | None, typer.Option(help="The bundle's data set: gold, evidence and sources are checked against it.")
    ] = None,
    witnesses: Annotated[
        Path | None, typer.Option(help="Whose receipts for announcements count, as --allowed-signers has the file.")
    ] = None,
) -> None:
    """Check a bundle, offline and on any machine. Exit 4 if anything is wrong, naming the file."""
    result = verify_bundle(bundle, Trust(allowed_signers, unsigned, witnesses), dataset)
    for line in result.held:
        write_out(f"ok      {line}\n")
    for line in result.unchecked:
        write_out(f"not checked  {line}\n")
    for fault in result.faults:
        write_out(f"FAILED  {fault.file}: {' '.join(fault.message.split())}\n")
    write_out("verified\n" if result.passed else "does not verify\n")
    if not result.passed:
        raise typer.Exit(EXIT_REFUSED)


@app.command()
def audit(
    bundle: Annotated[Path, typer.Argument(metavar="BUNDLE", help="Folder of a bundle.")],
    dataset: Annotated[Path, typer.Option(help="The bundle's data set.")],
    out: Annotated[Path, typer.Option(help="New folder of the audit.")],
    share: Annotated[float, typer.Option(help="Share of the questions that is asked again.")] = SHARE,
    seed: Annotated[
        int | None, typer.Option(help="Seed of the draw, to draw as an earlier audit did; default: one of its own.")
    ] = None,
    allowed_signers: AllowedOption = None,
    unsigned: Annotated[bool, typer.Option("--unsigned", help="Accept a bundle without a signature.")] = False,
) -> None:
    """Verify a bundle and ask a random share of its questions again. Exit 4 if the answers do not agree."""
    trust = Trust(allowed_signers, unsigned)
    if seed is None:
        # Random: an operator who knew the seed beforehand would know which questions are asked again.
        seed = secrets.randbelow(2**32)
    report = audit_bundle(bundle, dataset, out, trust, share=share, seed=seed, say=_say)
    for cell in report.cells:
        kind = "greedy" if cell.greedy else "sampled"
        write_out(
            f"{cell.cell_id} ({kind}): of {cell.asked} questions {cell.same_answer} have the same answer, "
            f"{cell.same_outcome} the same outcome, {cell.failed} failed\n"
        )
    for difference in report.readers_differ:
        write_out(f"{difference}\n")
    for subject, agreement, least in (
        ("outcome", report.same_outcome, report.same_outcome_at_least),
        ("answer", report.same_answer, report.same_answer_at_least),
    ):
        value = "no greedy cell to compare" if agreement is None else f"{agreement:.3f}"
        write_out(f"same {subject}: {value}, expected at least {least:g}\n")
    write_out(f"{'agrees' if report.passed else 'does not agree'}; {out / REPORT}\n")
    if not report.passed:
        raise typer.Exit(EXIT_REFUSED)


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=version_printer("memarena-spark", "memarena-spark"),
            is_eager=True,
            help="Print the version.",
        ),
    ] = False,
) -> None:
    """Certification runs on an edge node, and bundles that others can check offline."""


def _signing(key: Path | None, unsigned: bool) -> None:
    if (key is None) == (not unsigned):
        raise SparkError("expected either --key or --unsigned")
    if key is not None and not key.is_file():
        raise SparkError(f"--key {key}: no such file")
    if key is not None:
        check_key(key)


def _reader_key() -> str | None:
    return os.environ.get(API_KEY_VARIABLE) or None


def _say(message: str) -> None:
    write_err(f"{datetime.now(UTC):%H:%M:%S} {message}\n")
    sys.stderr.flush()


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> None:
    """Entry of the command. Exits with 2 for bad input, 3 for an incomplete run, 4 if refused, 130 after Ctrl-C."""
    run_guarded(app)
