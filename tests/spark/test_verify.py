"""Tests ``verify``: a bundle passes as it was made, and fails after any changed byte, missing file or forged figure."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from memarena_dataset.safe_files import sha256_of
from memarena_spark.bundle import layout
from memarena_spark.bundle.certify import certify
from memarena_spark.bundle.derived import read_facts
from memarena_spark.bundle.signing import is_canonical, sign
from memarena_spark.bundle.statement import PREDICATE_TYPE, STATEMENT_TYPE, statement, sums
from memarena_spark.bundle.verify import Trust, Verification, verify
from memarena_spark.errors import SparkError
from memarena_spark.files import canonical_json

from .conftest import Keys, rewrite_log

Copy = Callable[[Path], Path]
FLIPS = 200


def files_at_fault(verification: Verification) -> set[str]:
    return {fault.file for fault in verification.faults}


def flip(path: Path, at: int, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1 << bit
    path.write_bytes(content)


def seal_again(bundle: Path, key: Path | None = None) -> None:
    """Compute hashes, statement and signature again, as a forger does after changing a file."""
    hashes = {name: sha256_of(bundle / name) for name in layout.content_of(bundle)}
    (bundle / layout.SUMS).write_bytes(sums(hashes))
    (bundle / layout.STATEMENT).write_bytes(statement(read_facts(bundle), hashes))
    (bundle / layout.SIGNATURE).unlink()
    if key is not None:
        sign(bundle / layout.STATEMENT, key)


def test_a_bundle_verifies_and_names_its_signer(signed: Path, keys: Keys) -> None:
    verification = verify(signed, Trust(allowed=keys.allowed))
    assert verification.faults == []
    assert any(line.startswith("signed by spark-1 (ED25519 SHA256:") for line in verification.held)
    assert any("12 answers in 1 cells" in line for line in verification.held)


def test_without_allowed_signers_the_key_is_named_and_not_trusted(signed: Path) -> None:
    verification = verify(signed, Trust())
    assert verification.passed
    assert any("no list of signers vouches" in line for line in verification.held)


def test_verifying_changes_no_file_and_needs_no_write_permission(signed: Path, keys: Keys) -> None:
    files_before = {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in signed.rglob("*") if p.is_file()}
    assert verify(signed, Trust(allowed=keys.allowed)).passed
    assert {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in signed.rglob("*") if p.is_file()} == files_before


def test_the_same_run_gives_the_same_bundle(signed: Path, finished: Path, keys: Keys, tmp_path: Path) -> None:
    certify(finished, tmp_path / "again", keys.key)
    names = layout.content_of(signed)
    assert names == layout.content_of(tmp_path / "again")
    differ = [n for n in names if (signed / n).read_bytes() != (tmp_path / "again" / n).read_bytes()]
    assert differ == []


def test_the_statement_is_an_in_toto_statement_over_every_file(signed: Path) -> None:
    content = json.loads((signed / layout.STATEMENT).read_bytes())
    assert (content["_type"], content["predicateType"]) == (STATEMENT_TYPE, PREDICATE_TYPE)
    assert {s["name"]: s["digest"]["sha256"] for s in content["subject"]} == {
        name: sha256_of(signed / name) for name in layout.content_of(signed)
    }
    assert content["predicate"]["certifies"] == {"scores": False, "times": False, "energy": False}
    assert content["predicate"]["rows"]["bm25@extractive"]["asked"] == 12


# ------------------------------------------------------------------ bytes


def test_one_changed_bit_in_any_file_is_detected_with_its_file(signed: Path, keys: Keys, copy_of: Copy) -> None:
    bundle = copy_of(signed)
    for name in layout.files_of(bundle):
        size = (bundle / name).stat().st_size
        for offset in (0, size // 2, size - 1):
            flip(bundle / name, offset, 0)
            verification = verify(bundle, Trust(allowed=keys.allowed))
            assert files_at_fault(verification) == {name}, (name, offset, verification.faults)
            flip(bundle / name, offset, 0)
    assert verify(bundle, Trust(allowed=keys.allowed)).passed


def test_two_hundred_random_flips_are_detected_with_their_files(signed: Path, copy_of: Copy) -> None:
    """Drawn over the bytes of the bundle, and more often from the seals, which are small."""
    bundle = copy_of(signed)
    names = layout.files_of(bundle)
    sizes = {name: (bundle / name).stat().st_size for name in names}
    weights = [max(sizes[name], 3000) for name in names]
    draw = random.Random(20_261_121)
    for number in range(FLIPS):
        (name,) = draw.choices(names, weights)
        offset, bit = draw.randrange(sizes[name]), draw.randrange(8)
        flip(bundle / name, offset, bit)
        verification = verify(bundle, Trust())
        assert files_at_fault(verification) == {name}, (number, name, offset, bit, verification.faults)
        flip(bundle / name, offset, bit)
    assert verify(bundle, Trust()).passed


def test_every_missing_file_is_named(signed: Path, copy_of: Copy) -> None:
    bundle = copy_of(signed)
    for name in layout.files_of(bundle):
        content = (bundle / name).read_bytes()
        (bundle / name).unlink()
        assert files_at_fault(verify(bundle, Trust())) == {name}
        (bundle / name).write_bytes(content)


@pytest.mark.parametrize("name", ["extra.txt", "log/run.sqlite-wal", "latency/table.csv", "conformance/other.xml"])
def test_an_unexpected_file_is_named(name: str, signed: Path, copy_of: Copy) -> None:
    bundle = copy_of(signed)
    (bundle / name).parent.mkdir(exist_ok=True)
    (bundle / name).write_bytes(b"x")
    assert files_at_fault(verify(bundle, Trust())) == {name}


def test_an_unexpected_folder_is_named(signed: Path, copy_of: Copy) -> None:
    bundle = copy_of(signed)
    (bundle / "extra").mkdir()
    assert files_at_fault(verify(bundle, Trust())) == {"extra"}


def test_a_link_in_place_of_a_file_is_named(signed: Path, copy_of: Copy, tmp_path: Path) -> None:
    bundle = copy_of(signed)
    shutil.move(bundle / layout.RESULTS, tmp_path / "elsewhere")
    (bundle / layout.RESULTS).symlink_to(tmp_path / "elsewhere")
    assert files_at_fault(verify(bundle, Trust())) == {layout.RESULTS}


# ------------------------------------------------------------------ forgeries, sealed again


def change_text(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        (layout.RESULTS, '"correct": ', '"correct": 1'),
        (layout.REPORT, "bm25", "BM25"),
        (layout.PAGE, "bm25", "BM25"),
        (layout.ENERGY, '"value": 20.0', '"value": 2.0'),
        (layout.MANIFEST, '"result_class": "cold"', '"result_class": "warm"'),
        (layout.ENVIRONMENT, '"architecture": "', '"architecture": "better '),
    ],
)
def test_a_forged_figure_does_not_follow_from_the_log(
    name: str, old: str, new: str, signed: Path, keys: Keys, copy_of: Copy
) -> None:
    bundle = copy_of(signed)
    change_text(bundle / name, old, new)
    seal_again(bundle, keys.key)
    assert files_at_fault(verify(bundle, Trust(allowed=keys.allowed))) == {name}


def turned(verdict: dict[str, object]) -> None:
    verdict["correct"] = not verdict["correct"]


def halved(phase: dict[str, object]) -> None:
    phase["duration_s"] = 0.5


@pytest.mark.parametrize(("kind", "change"), [("verdict", turned), ("phase_measured", halved)])
def test_a_forged_log_contradicts_itself(
    kind: str, change: Callable[[dict[str, object]], None], signed: Path, keys: Keys, copy_of: Copy
) -> None:
    """The figures are recomputed from the forged log; its other records still contradict it."""
    from memarena_spark.bundle.derived import derive

    bundle = copy_of(signed)
    rewrite_log(bundle / layout.LOG, kind, change)
    for name, content in derive(read_facts(bundle)).items():
        (bundle / name).write_bytes(content)
    seal_again(bundle, keys.key)
    verification = verify(bundle, Trust(allowed=keys.allowed))
    assert files_at_fault(verification) == {layout.LOG}


def test_a_conformance_report_that_hides_a_failure_is_named(signed: Path, keys: Keys, copy_of: Copy) -> None:
    bundle = copy_of(signed)
    change_text(bundle / "conformance/bm25.xml", "<skipped", "<failure")
    change_text(bundle / "conformance/bm25.xml", "</skipped", "</failure")
    seal_again(bundle, keys.key)
    assert files_at_fault(verify(bundle, Trust(allowed=keys.allowed))) == {"conformance/bm25.xml"}


def test_damaged_samples_are_named(signed: Path, keys: Keys, copy_of: Copy) -> None:
    bundle = copy_of(signed)
    samples = layout.SAMPLES + "segment-000.csv"
    change_text(bundle / samples, ",20.0,", ",21.0,")
    seal_blindly(bundle)
    sign(bundle / layout.STATEMENT, keys.key)
    verification = verify(bundle, Trust(allowed=keys.allowed))
    assert files_at_fault(verification) == {samples}
    assert "its check does not match" in verification.faults[0].message


# ------------------------------------------------------------------ who says so


def test_a_strangers_signature_is_valid_and_not_trusted(signed: Path, keys: Keys, copy_of: Copy) -> None:
    bundle = copy_of(signed)
    (bundle / layout.SIGNATURE).unlink()
    sign(bundle / layout.STATEMENT, keys.stranger)
    assert verify(bundle, Trust()).passed
    verification = verify(bundle, Trust(allowed=keys.allowed))
    assert files_at_fault(verification) == {layout.SIGNATURE}
    assert "who is not in" in verification.faults[0].message


def test_a_signature_over_another_statement_is_named(signed: Path, keys: Keys, copy_of: Copy, tmp_path: Path) -> None:
    bundle = copy_of(signed)
    other_statement = tmp_path / "other.json"
    other_statement.write_text("{}")
    shutil.copy(sign(other_statement, keys.key), bundle / layout.SIGNATURE)
    assert files_at_fault(verify(bundle, Trust())) == {layout.SIGNATURE}


def test_an_unsigned_bundle_needs_a_word_and_no_trust(signed: Path, keys: Keys, copy_of: Copy) -> None:
    bundle = copy_of(signed)
    (bundle / layout.SIGNATURE).unlink()
    assert files_at_fault(verify(bundle, Trust())) == {layout.SIGNATURE}
    verification = verify(bundle, Trust(unsigned=True))
    assert verification.passed
    assert "unsigned: anybody may have made it" in verification.held
    assert files_at_fault(verify(bundle, Trust(allowed=keys.allowed, unsigned=True))) == {layout.SIGNATURE}


def reformed(content: bytes) -> Iterable[bytes]:
    """Yield the same signature in other encodings; OpenSSH accepts several of them."""
    text = content.decode()
    begin, *lines, end, _ = text.split("\n")
    blob = "".join(lines)
    yield "\n".join([begin, blob, end, ""]).encode()
    yield text.replace("\n", "\r\n").encode()
    yield text.encode() + b"\n"
    yield "\n".join([begin, *lines, "", end, ""]).encode()
    yield text.rstrip("\n").encode()
    last = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    if blob.endswith("="):
        body = blob.rstrip("=")
        other = body[:-1] + last[last.index(body[-1]) ^ 1] + "=" * (len(blob) - len(body))
        yield content.replace(lines[-1].encode(), other[-len(lines[-1]) :].encode())


def test_a_signature_in_another_form_is_named_even_if_it_is_valid(signed: Path, copy_of: Copy) -> None:
    content = (signed / layout.SIGNATURE).read_bytes()
    assert is_canonical(content)
    bundle = copy_of(signed)
    for other in reformed(content):
        assert other != content
        (bundle / layout.SIGNATURE).write_bytes(other)
        assert files_at_fault(verify(bundle, Trust())) == {layout.SIGNATURE}


def test_a_path_without_a_folder_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(SparkError, match="expected the folder of a bundle"):
        verify(tmp_path / "nothing", Trust())
    assert len(verify(tmp_path, Trust()).faults) > 5


# ------------------------------------------------------------------ hostile bundles


def places(value: object, path: tuple[str | int, ...] = ()) -> Iterable[tuple[str | int, ...]]:
    """Yield the path (keys and indices) of every part of a JSON value."""
    entries = value.items() if isinstance(value, dict) else enumerate(value[:4]) if isinstance(value, list) else ()
    for name, part in entries:
        yield (*path, name)
        yield from places(part, (*path, name))


def spoil(value: Any, draw: random.Random) -> None:
    """Delete a random part of a JSON value, or replace it."""
    *way, last = draw.choice(list(places(value)))
    for step in way:
        value = value[step]
    if draw.random() < 0.2:
        del value[last]
    else:
        value[last] = draw.choice([None, "x", "../../x", -1, 12_345_678_901, [], {}])


def seal_blindly(bundle: Path) -> None:
    """Compute the hashes again, whatever the files hold, and remove the signature."""
    hashes = {name: sha256_of(bundle / name) for name in layout.content_of(bundle)}
    (bundle / layout.SUMS).write_bytes(sums(hashes))
    content = json.loads((bundle / layout.STATEMENT).read_bytes())
    for subject in content["subject"]:
        subject["digest"]["sha256"] = hashes[subject["name"]]
    (bundle / layout.STATEMENT).write_text(json.dumps(content))
    (bundle / layout.SIGNATURE).unlink()


KINDS = ("run_started", "question", "asked", "gateway_call", "ingest", "phase", "metering_started", "verdict")


@pytest.mark.parametrize("seed", range(24))
def test_verifying_a_spoilt_bundle_ends_with_a_fault(seed: int, signed: Path, copy_of: Copy) -> None:
    """Each seed spoils one record: no exception, no access outside of the bundle, and never a pass."""
    draw = random.Random(seed)
    bundle = copy_of(signed)
    if seed % 3:
        rewrite_log(bundle / layout.LOG, draw.choice(KINDS), lambda record: spoil(record, draw))
    else:
        record = json.loads((bundle / layout.RECORD).read_bytes())
        spoil(record, draw)
        (bundle / layout.RECORD).write_bytes(canonical_json(record))
    seal_blindly(bundle)
    verification = verify(bundle, Trust(unsigned=True))
    assert not verification.passed
    assert files_at_fault(verification) <= {*layout.files_of(bundle), layout.SIGNATURE}


def test_a_deeply_nested_statement_is_at_fault(signed: Path, copy_of: Copy) -> None:
    bundle = copy_of(signed)
    (bundle / layout.STATEMENT).write_text("[" * 200_000 + "]" * 200_000)
    verification = verify(bundle, Trust(unsigned=True))
    assert files_at_fault(verification) == {layout.STATEMENT}
    assert "is no statement" in verification.faults[0].message
    assert not [line for line in verification.held if layout.STATEMENT in line]


def test_a_record_that_names_a_file_elsewhere_is_at_fault_and_the_file_not_opened(signed: Path, copy_of: Copy) -> None:
    bundle = copy_of(signed)
    record = json.loads((bundle / layout.RECORD).read_bytes())
    record["conformance"][0]["file"] = "/etc/hostname"
    (bundle / layout.RECORD).write_bytes(canonical_json(record))
    seal_blindly(bundle)
    faults = {fault.file: fault.message for fault in verify(bundle, Trust(unsigned=True)).faults}
    assert faults[layout.RECORD] == "names /etc/hostname, which is not in the bundle"


def test_a_log_that_names_samples_elsewhere_is_at_fault(signed: Path, copy_of: Copy) -> None:
    bundle = copy_of(signed)
    rewrite_log(bundle / layout.LOG, "metering_started", lambda record: record.update(samples_file="/etc/hostname"))
    seal_blindly(bundle)
    (fault,) = verify(bundle, Trust(unsigned=True)).faults
    assert (fault.file, fault.message) == (
        layout.LOG,
        "names the samples file /etc/hostname, which is not next to it",
    )
