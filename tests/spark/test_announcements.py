"""Tests announced runs: each gets a number before it starts, a witness signs it, and the bundle lists all attempts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from memarena_dataset.safe_files import sha256_of
from memarena_spark import announcing
from memarena_spark.bundle import layout
from memarena_spark.bundle.certify import certify
from memarena_spark.bundle.receipts import confirm
from memarena_spark.bundle.statement import sums
from memarena_spark.bundle.verify import Trust, verify
from memarena_spark.errors import RefusedError, SparkError
from memarena_spark.files import sha256
from memarena_spark.machine import ThisMachine
from memarena_spark.plans import LoadedPlan, load_plan
from memarena_spark.running import run_certification

from .commands import Invoke, one_line
from .conftest import EXAMPLE, Keys, silent, write_plan
from .test_verify import seal_again

NODE = ThisMachine().identity().name


@dataclass(frozen=True)
class Announced:
    """A run that was announced and confirmed, after an announced run that never ended."""

    run: Path
    announcements: Path
    receipt: Path


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> LoadedPlan:
    return load_plan(write_plan(tmp_path_factory.mktemp("announced-plan")))


@pytest.fixture(scope="module")
def announced(loaded: LoadedPlan, keys: Keys, tmp_path_factory: pytest.TempPathFactory) -> Announced:
    folder = tmp_path_factory.mktemp("announced")
    path = folder / "state" / announcing.NAME
    announcing.start(path, announcing.announce(path, loaded, NODE, ""))
    announcing.announce(path, loaded, NODE, "beacon 4711")
    confirm(path, keys.key, folder / "receipt.json", folder / "seen")
    run_certification(ThisMachine(), loaded, folder / "run", silent, announcements=path)
    return Announced(folder / "run", path, folder / "receipt.json")


@pytest.fixture
def bundle(announced: Announced, keys: Keys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(announcing.VARIABLE, str(announced.announcements))
    certify(announced.run, tmp_path / "bundle", keys.key, receipts=[announced.receipt])
    return tmp_path / "bundle"


def test_a_bundle_lists_every_attempt_and_the_witness_of_the_announcement(bundle: Path, keys: Keys) -> None:
    verification = verify(bundle, Trust(keys.allowed, witnesses=keys.allowed), EXAMPLE)
    assert verification.faults == []
    (line,) = [line for line in verification.held if line.startswith("announced as number 2 of 2 of this node at ")]
    assert line.endswith("with the value beacon 4711; attempts at this plan: 2 (others: 1 not ended)")
    (line,) = [line for line in verification.held if "of the announcements at " in line]
    assert line.startswith("spark-1 saw 3 lines of the announcements at ")
    assert line.endswith(", before the run began")
    assert not [line for line in verification.unchecked if "announced" in line]
    (line,) = [line for line in verify(bundle, Trust(keys.allowed), EXAMPLE).unchecked if "announced" in line]
    assert line.startswith("when the run was announced: no receipt of a trusted witness")


def test_later_attempts_are_in_the_bundle_too(
    announced: Announced, loaded: LoadedPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / announcing.NAME
    path.write_bytes(announced.announcements.read_bytes())
    announcing.announce(path, loaded, NODE, "")
    monkeypatch.setenv(announcing.VARIABLE, str(path))
    certify(announced.run, tmp_path / "bundle", None)
    (line,) = [line for line in verify(tmp_path / "bundle", Trust(unsigned=True)).held if "announced as" in line]
    assert line.endswith("attempts at this plan: 3 (others: 1 not ended, 3 open)")
    path.write_bytes(b"")
    with pytest.raises(SparkError, match="does not continue the announcements of the run"):
        certify(announced.run, tmp_path / "again", None)


def without_the_first_attempt(lines: list[bytes]) -> list[bytes]:
    return [line for line in lines if b'"number":1' not in line]


def with_another_plan(lines: list[bytes]) -> list[bytes]:
    """Change the plan and recompute every hash: only the run itself contradicts it."""
    forged_lines: list[bytes] = []
    for line in lines:
        content = json.loads(line)
        content["previous_sha256"] = sha256(forged_lines[-1]) if forged_lines else "0" * 64
        if content["number"] == 2 and "plan_sha256" in content:
            content["plan_sha256"] = "1" * 64
        forged_lines.append(json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode())
    return forged_lines


@pytest.mark.parametrize(
    ("forge", "message"),
    [
        (without_the_first_attempt, "line 1: does not follow from the line before"),
        (lambda lines: [lines[1], lines[0], *lines[2:]], "line 1: does not follow from the line before"),
        (lambda lines: [lines[0].replace(b'"nonce":""', b'"nonce":"x"'), *lines[1:]], "line 2: does not follow"),
        (lambda lines: [*lines[:-1], lines[-1].replace(b"completed", b"compleated")], "line 5: "),
        (lambda lines: lines[:-1], "must not be certified: announcement: no run that began at"),
        (with_another_plan, "must not be certified: announcement: plan and profile of announcement 2 is not that of"),
    ],
)  # fmt: skip
def test_forged_announcements_are_refused(
    bundle: Path, keys: Keys, forge: Callable[[list[bytes]], list[bytes]], message: str
) -> None:
    path = bundle / layout.ANNOUNCED
    path.write_bytes(b"".join(line + b"\n" for line in forge(path.read_bytes().splitlines())))
    for receipt in path.parent.glob("receipt*"):
        receipt.unlink()
    hashes = {name: sha256_of(bundle / name) for name in layout.content_of(bundle)}
    (bundle / layout.SUMS).write_bytes(sums(hashes))
    faults = verify(bundle, Trust(keys.allowed)).faults
    assert any(message in fault.message for fault in faults), faults


def test_a_receipt_of_a_stranger_or_for_other_announcements_is_refused(bundle: Path, keys: Keys) -> None:
    receipt = bundle / layout.ANNOUNCEMENTS / "receipt-1.json"
    seal_again(bundle, keys.key)
    verification = verify(bundle, Trust(keys.allowed, witnesses=keys.stranger.with_suffix(".pub")))
    assert any("who is not in" in line for line in verification.unchecked)
    receipt.write_bytes(receipt.read_bytes().replace(b'"lines": 3', b'"lines": 2'))
    seal_again(bundle, keys.key)
    (fault,) = verify(bundle, Trust(keys.allowed, witnesses=keys.allowed)).faults
    assert fault.file == f"{layout.ANNOUNCEMENTS}receipt-1.json.sig"


def test_a_witness_refuses_announcements_that_do_not_continue_its_record(
    loaded: LoadedPlan, keys: Keys, tmp_path: Path
) -> None:
    path, record = tmp_path / announcing.NAME, tmp_path / "seen"
    first = announcing.announce(path, loaded, NODE, "")
    before = path.read_bytes()
    announcing.start(path, first)
    assert confirm(path, keys.key, tmp_path / "1.json", record).lines == 2
    path.write_bytes(before)
    with pytest.raises(RefusedError, match="line 2 is not the one that was seen at"):
        confirm(path, keys.key, tmp_path / "2.json", record)
    path.unlink()
    announcing.announce(path, loaded, NODE, "another")
    with pytest.raises(RefusedError, match=f"node {NODE} has another file"):
        confirm(path, keys.key, tmp_path / "2.json", record)
    assert not (tmp_path / "2.json").exists()


def test_an_announcement_is_for_one_run_of_its_plan(loaded: LoadedPlan, tmp_path: Path) -> None:
    path = tmp_path / announcing.NAME
    announcing.start(path, announcing.announce(path, loaded, NODE, ""))
    with pytest.raises(SparkError, match="has no announcement of this plan and data set that was not started"):
        run_certification(ThisMachine(), loaded, tmp_path / "run", silent, announcements=path)
    assert not (tmp_path / "run").exists()
    with path.open("ab") as file:
        file.write(b'{"kind":"ann')  # truncated, as by a power cut
    assert announcing.announce(path, loaded, NODE, "").number == 2
    assert len(announcing.read(path).lines) == 3


def test_announce_and_witness_work_as_commands_and_refuse_bad_input(
    invoke: Invoke, plan_path: Path, finished: Path, keys: Keys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / announcing.NAME
    monkeypatch.setenv(announcing.VARIABLE, str(path))
    one_line(invoke("run", "--plan", plan_path, "--out", tmp_path / "run", "--announced"), "--announced", "has no")
    one_line(invoke("witness", path, "--key", keys.key, "--out", tmp_path / "r", "--seen", tmp_path), "cannot be read")
    result = invoke("announce", "--plan", plan_path)
    assert (result.code, result.out[:14]) == (0, "announcement 1")
    result = invoke("witness", path, "--key", keys.key, "--out", tmp_path / "r.json", "--seen", tmp_path / "seen")
    assert (result.code, result.out[:10]) == (0, "1 lines of")
    arguments = ("certify", finished, "--out", tmp_path / "b", "--key", keys.key, "--receipt", tmp_path / "r.json")
    one_line(invoke(*arguments), "--receipt", "the run was not announced")
