"""Tests fresh worlds: the seed follows from a commitment and a later beacon; forged chains are refused.

A beacon is a public random value that a network signs at fixed times.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from memarena_dataset.safe_files import sha256_of
from memarena_spark import announcing
from memarena_spark.bundle import layout
from memarena_spark.bundle.certify import certify
from memarena_spark.bundle.receipts import confirm
from memarena_spark.bundle.statement import sums
from memarena_spark.bundle.verify import Trust, verify
from memarena_spark.errors import SparkError
from memarena_spark.files import canonical_json
from memarena_spark.fresh.beacons import NETWORKS, Beacon, Network, is_genuine
from memarena_spark.fresh.commitment import BEACON, COMMITMENT, commit, read_commitment, read_fresh
from memarena_spark.fresh.world import REPORT, make_world, world_faults
from memarena_spark.machine import ThisMachine
from memarena_spark.plans import load_plan
from memarena_spark.running import run_certification
from pydantic import JsonValue

from .commands import Invoke, one_line
from .conftest import EXAMPLE, Keys, silent, write_plan

SECRET = 4711
"""Secret key of the test's own beacon network, which has one round a second."""

QUICKNET = Beacon(
    round=657413,
    signature="b713718a38ae728dfd477991af2822e08d2f305e47718cef9f7848ce4050e7be41076862b98fad56e91a6b85b89cd97b",
)
DEFAULT = Beacon(
    round=3311596,
    previous_signature="8ed588f2a7716fb1349e2d9803da5db0005e98a83783c353d4a08f183236a9ad91d70ddb01266f4b7c576983db464b430e"
    "65680b9e0098552758afd6c1e6afcb77e3f62fe1b93d42d1cb63abbb2205512fe12fbf74ea9c5ac3b8f5c1e283a1d8",
    signature="a696b9409ababce45749c3a4ec369074453dd4a79967734e1390d969c8ad8d98897d217b9121e92c8ddebbddda8d92f900e3bd6bf9de"
    "b166863b1a19390d743f82774001487594c5c09e581db7365f02b70a2c8cc41ce32446ef08e4890c4754",
)


@pytest.mark.parametrize(
    ("network", "beacon", "randomness"),
    [
        ("quicknet", QUICKNET, "fc1873a13f3545aeade8401532ef5519920652eee6b0d2b19ca12643b87b3587"),
        ("default", DEFAULT, "647c07b2abbf7ff2afb4d670214f565e5cd9f9c91bfdcecb59a21f3c78d73920"),
    ],
)
def test_only_rounds_that_the_real_networks_signed_are_genuine(network: str, beacon: Beacon, randomness: str) -> None:
    assert is_genuine(beacon, NETWORKS[network])
    assert beacon.randomness.hex() == randomness
    assert not is_genuine(beacon.model_copy(update={"round": beacon.round + 1}), NETWORKS[network])
    # py-ecc alone accepts extra bytes before a point of G1, so that the randomness could be chosen.
    assert not is_genuine(beacon.model_copy(update={"signature": "0a" * 48 + beacon.signature}), NETWORKS[network])
    broken = f"{beacon.signature[:-1]}{int(beacon.signature[-1], 16) ^ 1:x}"
    assert not is_genuine(beacon.model_copy(update={"signature": broken}), NETWORKS[network])


def test_checking_a_signature_restores_the_recursion_limit() -> None:
    """py-ecc raises it to 100,000, at which a deeply nested statement would crash the process."""
    code = (
        "import sys; n = sys.getrecursionlimit(); import memarena_spark.fresh.bls; print(n == sys.getrecursionlimit())"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_first_round_after_a_time_is_not_published_yet() -> None:
    for network in (NETWORKS["quicknet"], NETWORKS["default"]):
        moment = datetime(2026, 3, 1, tzinfo=UTC)
        number = network.first_round_after(moment)
        assert network.time_of(number - 1) <= moment < network.time_of(number)


def signed(number: int) -> Beacon:
    """Return a round's value, signed by the test's own network."""
    from memarena_spark.fresh.bls import G2Basic

    previous = bytes(96)
    message = hashlib.sha256(previous + number.to_bytes(8, "big")).digest()
    return Beacon(round=number, signature=G2Basic.Sign(SECRET, message).hex(), previous_signature=previous.hex())


@dataclass(frozen=True)
class Certified:
    """A bundle of a run on a fresh world, the folder of its commitment, and the world."""

    bundle: Path
    fresh: Path
    world: Path


@pytest.fixture(scope="module")
def certified(keys: Keys, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Certified]:
    from memarena_spark.fresh.bls import G2Basic

    folder, key = tmp_path_factory.mktemp("fresh"), G2Basic.SkToPk(SECRET).hex()
    world, fresh, announcements = folder / "world", folder / "fresh", folder / "announcements.jsonl"
    loaded = load_plan(write_plan(folder / "plan", dataset=str(world)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(announcing.VARIABLE, str(announcements))
        patch.setitem(NETWORKS, "test", Network("chained", key, int(time.time()), 1))
        later = datetime.now(UTC) + timedelta(hours=1)
        commit(folder / "first", loaded, ThisMachine(), announcements, "test", later, "s")
        commitment = commit(fresh, loaded, ThisMachine(), announcements, "test", later, "tiny")
        confirm(announcements, keys.key, folder / "receipt.json", folder / "seen")
        # Instead of waiting an hour: move the network's first round, so that the committed one appears in two seconds.
        appears = int(time.time()) + 2
        patch.setitem(NETWORKS, "test", Network("chained", key, appears - commitment.round + 1, 1))
        (folder / "round.json").write_text(signed(commitment.round).model_dump_json())
        while time.time() < appears:
            time.sleep(0.1)
        make_world(fresh, folder / "round.json", None, world)
        announcing.announce(announcements, loaded, ThisMachine().identity().name, "")
        run_certification(ThisMachine(), loaded, folder / "run", silent, announcements=announcements, fresh=fresh)
        certify(folder / "run", folder / "bundle", keys.key, receipts=[folder / "receipt.json"])
        yield Certified(folder / "bundle", fresh, world)


def test_a_bundle_proves_that_its_world_is_newer_than_its_backends(
    certified: Certified, keys: Keys, tmp_path: Path
) -> None:
    verified = verify(certified.bundle, Trust(keys.allowed, witnesses=keys.allowed))
    assert verified.faults == []
    (line,) = [line for line in verified.held if line.startswith("world tiny with the seed ")]
    assert "from commitment 2 of 2 of this node, made at " in line
    assert "a trusted witness saw the commitment before the round appeared" in verified.held
    assert any("memarena-spark fresh-world BUNDLE/fresh" in line for line in verified.unchecked)
    make_world(certified.bundle / layout.FRESH, None, None, tmp_path / "again")
    verified = verify(certified.bundle, Trust(keys.allowed), tmp_path / "again")
    assert verified.faults == []
    assert any(line.startswith("when the commitment was made: no receipt") for line in verified.unchecked)
    faults = verify(certified.bundle, Trust(keys.allowed), EXAMPLE).faults
    assert any("made with another data set" in fault.message for fault in faults)
    assert any("is not that of a world of masim" in fault.message for fault in faults)


def past(commitment: dict[str, object], _: dict[str, object]) -> None:
    """The commitment was made after the round."""
    commitment["at"] = "2199-01-01T00:00:00+00:00"


def other_beacon(commitment: dict[str, object], beacon: dict[str, object]) -> None:
    beacon["round"] = commitment["round"] = int(str(beacon["round"])) + 1


def other_round(_: dict[str, object], beacon: dict[str, object]) -> None:
    beacon |= signed(int(str(beacon["round"])) + 1).model_dump()


def other_backend(commitment: dict[str, object], _: dict[str, object]) -> None:
    commitment["backends"] = {"bm25": "sha256:" + "0" * 64}


def other_plan(commitment: dict[str, object], _: dict[str, object]) -> None:
    commitment["plan_sha256"] = "0" * 64


def other_network(commitment: dict[str, object], _: dict[str, object]) -> None:
    commitment["network"] = "mine"


@pytest.mark.parametrize(
    ("forge", "message"),
    [
        (past, "before the commitment"),
        (other_beacon, "the signature is not test's of round"),
        (other_round, "the commitment waits for"),
        (other_backend, "the backends' code of the commitment is not that of the run"),
        (other_plan, "plan and profile of the commitment is not that of the run"),
        (other_network, "network mine is not known"),
    ],
)  # fmt: skip
def test_a_forged_chain_is_refused(
    certified: Certified,
    tmp_path: Path,
    forge: Callable[[dict[str, object], dict[str, object]], None],
    message: str,
) -> None:
    bundle = tmp_path / "bundle"
    for name in layout.files_of(certified.bundle):
        (bundle / name).parent.mkdir(parents=True, exist_ok=True)
        (bundle / name).write_bytes((certified.bundle / name).read_bytes())
    commitment, beacon = bundle / layout.FRESH / COMMITMENT, bundle / layout.FRESH / BEACON
    first, second = json.loads(commitment.read_bytes()), json.loads(beacon.read_bytes())
    forge(first, second)
    commitment.write_bytes(canonical_json(first))
    beacon.write_bytes(canonical_json(second))
    hashes = {name: sha256_of(bundle / name) for name in layout.content_of(bundle)}
    (bundle / layout.SUMS).write_bytes(sums(hashes))
    (bundle / layout.SIGNATURE).unlink()
    subjects: list[JsonValue] = [{"name": name, "digest": {"sha256": digest}} for name, digest in hashes.items()]
    (bundle / layout.STATEMENT).write_bytes(canonical_json({"subject": subjects}))
    faults = verify(bundle, Trust(unsigned=True)).faults
    assert any(f"fresh-world: {message}" in fault.message or message in fault.message for fault in faults), faults


def test_a_run_on_another_world_than_the_committed_one_is_refused(
    certified: Certified, plan_path: Path, tmp_path: Path
) -> None:
    with pytest.raises(SparkError, match="is not that of a world of masim"):
        run_certification(ThisMachine(), load_plan(plan_path), tmp_path / "run", silent, fresh=certified.fresh)
    assert not (tmp_path / "run").exists()


def test_a_world_with_texts_chosen_by_the_operator_is_refused(certified: Certified) -> None:
    report = certified.world / REPORT
    content = report.read_bytes()
    fresh = read_fresh(certified.fresh)
    assert fresh is not None
    assert list(world_faults(certified.world, fresh)) == []
    for field, value in (("banks", "tuning"), ("wording", [100, 0, 0])):
        changed = json.loads(content)
        changed["configuration"][field] = value
        report.write_text(json.dumps(changed))
        (fault,) = world_faults(certified.world, fresh)
        assert fault.startswith("engine, banks and wording are ")
    report.write_bytes(content)


def test_bad_input_gives_one_line(
    invoke: Invoke, certified: Certified, plan_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(announcing.VARIABLE, str(tmp_path / "announcements.jsonl"))
    out, at = str(tmp_path / "new"), "2199-01-01T00:00:00"
    plan = ("--plan", str(plan_path))
    one_line(invoke("commit", *plan, "--out", out, "--at", "2020-01-01T00:00:00"), "--at", "a time to come")
    one_line(invoke("commit", *plan, "--out", out, "--at", at, "--network", "mine"), "--network mine", "quicknet")
    one_line(invoke("commit", *plan, "--out", out, "--at", at, "--pack-sha256", "x"), "--pack-sha256 x", "64")
    one_line(invoke("commit", *plan, "--out", str(certified.fresh), "--at", at), "never overwritten")
    assert not (tmp_path / "announcements.jsonl").exists()
    one_line(invoke("run", *plan, "--out", out, "--fresh", str(certified.fresh)), "only together with --announced")
    one_line(invoke("fresh-world", out, "--out", out), COMMITMENT, "cannot be read")
    (tmp_path / "value.json").write_text('{"round": 5}')
    value = ("--beacon", str(tmp_path / "value.json"), "--out", out)
    one_line(invoke("fresh-world", str(certified.fresh), *value), "value.json: is not a beacon's value")
    (tmp_path / "value.json").write_text(QUICKNET.model_dump_json())
    one_line(invoke("fresh-world", str(certified.fresh), *value), "the commitment waits for")
    assert not Path(out).exists()
    assert read_commitment(certified.fresh / COMMITMENT).preset == "tiny"
