"""Makes a fresh world from its commitment and the beacon's value: the same bytes on every machine.

The world is the data set of the plan's run. ``run --fresh`` and ``verify --dataset`` use the checks here: they
compare the settings that a data set states of itself. The proof is to make the world again, and compare the bytes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from memarena_spark.errors import FileError, SparkError
from memarena_spark.files import canonical_json, write_whole
from memarena_spark.fresh.beacons import read_beacon
from memarena_spark.fresh.commitment import BEACON, COMMITMENT, FreshWorld, beacon_faults, read_commitment, read_fresh

REPORT = "pipeline_report.json"
"""File of a MaSim data set with its settings."""
_DEFAULT_WORDS = ("offline", "all", [70, 20, 10])
"""Engine, banks and wording that ``masim generate`` uses by default."""


def make_world(folder: Path, beacon_file: Path | None, pack: Path | None, out: Path) -> int:
    """Make the world of a commitment as the data set ``out``, and store the beacon's value next to the commitment.

    ``beacon_file`` None: use the stored value. Returns the seed. Raises SparkError.
    """
    commitment = read_commitment(folder / COMMITMENT)
    world = FreshWorld(commitment=commitment, beacon=read_beacon(beacon_file or folder / BEACON))
    for fault in beacon_faults(world):
        raise SparkError(f"{beacon_file or folder / BEACON}: {fault}")
    if (pack is None) != (commitment.pack_sha256 is None):
        raise SparkError("--pack: expected exactly where the commitment names the hash of one")
    if find_spec("memarena_masim") is None:
        raise SparkError("the simulator is not installed: pip install memarena-masim")
    if beacon_file is not None:
        write_whole(folder / BEACON, canonical_json(world.beacon))
    options = ["--pack", str(pack)] if pack is not None else []
    command = [sys.executable, "-P", "-m", "memarena_masim", "generate", "--quiet", "--preset", commitment.preset]
    process = subprocess.run(
        [*command, "--seed", str(world.seed), "--out", str(out), *options], capture_output=True, text=True, check=False
    )
    if process.returncode:
        reason = (process.stderr.strip().splitlines() or [f"exit code {process.returncode}"])[-1]
        raise SparkError(f"masim generate: {reason}")
    for fault in world_faults(out, world):
        raise SparkError(f"{out}: {fault}")
    return world.seed


def check_world(folder: Path, dataset: Path) -> None:
    """Raise SparkError if a data set is not the world of the commitment in a folder."""
    world = read_fresh(folder)
    if world is None:
        raise SparkError(f"--fresh {folder}: no such folder")
    for fault in beacon_faults(world):
        raise SparkError(f"--fresh {folder}: {fault}")
    for fault in world_faults(dataset, world):
        raise SparkError(f"{dataset}: {fault}")


def world_faults(dataset: Path, fresh: FreshWorld) -> Iterator[str]:
    """Yield each setting in a data set's report that does not follow from commitment and beacon.

    Raises FileError if the report is not that of a MaSim world.
    """
    commitment = fresh.commitment
    try:
        report = json.loads((dataset / REPORT).read_bytes())
        configuration = report["configuration"]
        actual = configuration["name"], configuration["seed"], configuration["world"]
        pack = configuration["pack"]["sha256"]
        words = report["engine"]["name"], configuration["banks"], configuration["wording"]
    except (OSError, ValueError, LookupError, AttributeError, TypeError) as error:
        raise FileError(str(dataset / REPORT), f"is not that of a world of masim: {error!r}") from error
    expected = commitment.preset, fresh.seed, 0
    if actual != expected:
        yield f"preset, seed and world are {actual}, from commitment and beacon follow {expected}"
    if words != _DEFAULT_WORDS:
        yield f"engine, banks and wording are {words}, expected masim's defaults {_DEFAULT_WORDS}"
    if commitment.pack_sha256 not in {None, pack}:
        yield f"its pack has the SHA-256 {pack}, the commitment names {commitment.pack_sha256}"
