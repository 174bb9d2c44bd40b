"""Tests a latency study in a bundle: every file is recomputed, and figures that rest on other runs are listed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from memarena_spark.bundle.certify import certify
from memarena_spark.bundle.verify import Trust, verify
from memarena_spark.errors import RefusedError, SparkError

from .conftest import Keys, Studied
from .studies import write_study_of
from .test_verify import change_text, files_at_fault, seal_again


@dataclass(frozen=True)
class Bundles:
    """Two bundles of one run, and their studies: ``alone`` of this run, ``larger`` of this run and another."""

    alone: Path
    larger: Path
    alone_study: Path
    larger_study: Path


@pytest.fixture(scope="module")
def bundles(studied: Studied, keys: Keys, tmp_path_factory: pytest.TempPathFactory) -> Bundles:
    folder = tmp_path_factory.mktemp("bundles")
    alone_study = write_study_of(folder / "own", studied.run / "run")
    larger_study = write_study_of(folder / "both", studied.other, studied.run / "run")
    certify(studied.run, folder / "alone", keys.key, alone_study)
    certify(studied.run, folder / "larger", keys.key, larger_study)
    return Bundles(folder / "alone", folder / "larger", alone_study, larger_study)


def forged(bundle: Path, key: Path, copy_of: Callable[[Path], Path], change: Callable[[Path], None]) -> set[str]:
    """Return the files at fault after ``change`` by a person with the key, who seals the bundle again."""
    copy = copy_of(bundle)
    change(copy / "latency")
    seal_again(copy, key)
    verification = verify(copy, Trust())
    assert verification.passed is (not verification.faults)
    return files_at_fault(verification)


def changed(path: Path) -> None:
    """Change the last digit of the file's last number; add an empty line to a file without a digit."""
    text = path.read_text(encoding="utf-8")
    index = max(text.rfind(digit) for digit in "0123456789")
    new_text = f"{text}\n" if index < 0 else text[:index] + str((int(text[index]) + 1) % 10) + text[index + 1 :]
    path.write_text(new_text, encoding="utf-8")


def files_of(study: Path) -> list[str]:
    return sorted(path.name for path in study.iterdir())


def test_a_study_of_the_bundles_own_run_is_recomputed_completely(bundles: Bundles) -> None:
    assert files_of(bundles.alone / "latency") == files_of(bundles.alone_study)
    assert {"study.json", "study.md", "samples.csv", "fits.csv", "ttft-split.svg"} <= {*files_of(bundles.alone_study)}
    verification = verify(bundles.alone, Trust())
    assert verification.faults == []
    assert not [line for line in verification.unchecked if "latency" in line]


@pytest.mark.parametrize("which", ["alone", "larger"])
def test_a_changed_figure_in_any_file_of_a_study_is_named(which: str, bundles: Bundles, keys: Keys) -> None:
    bundle = getattr(bundles, which)
    for name in files_of(bundle / "latency"):
        path = bundle / "latency" / name
        content = path.read_bytes()
        changed(path)
        try:
            seal_again(bundle, keys.key)
            assert files_at_fault(verify(bundle, Trust())) == {f"latency/{name}"}
        finally:
            path.write_bytes(content)
            seal_again(bundle, keys.key)
    assert verify(bundle, Trust()).passed


@pytest.mark.parametrize("which", ["alone", "larger"])
def test_a_study_that_halves_a_time_of_the_bundle_s_run_is_named(
    which: str, bundles: Bundles, keys: Keys, copy_of: Callable[[Path], Path]
) -> None:
    def halve(folder: Path) -> None:
        content = json.loads((folder / "study.json").read_text())
        row = next(row for row in content["efficiency"] if row["backend"] == "bm25")
        row["ttft"]["p50"] /= 2
        (folder / "study.json").write_text(json.dumps(content, indent=2) + "\n")

    assert forged(getattr(bundles, which), keys.key, copy_of, halve) == {"latency/study.json"}


@pytest.mark.parametrize(
    ("change", "at_fault"),
    [
        (lambda folder: (folder / "study.json").unlink(), "latency/study.json"),
        (lambda folder: (folder / "totals.csv").unlink(), "latency/totals.csv"),
        (lambda folder: (folder / "growth.md").write_text("fast"), "latency/growth.md"),
        (lambda folder: change_text(folder / "study.json", "{\n", "{\n\n"), "latency/study.json"),
    ],
)
def test_a_study_with_a_file_too_few_or_too_many_is_named(
    change: Callable[[Path], None], at_fault: str, bundles: Bundles, keys: Keys, copy_of: Callable[[Path], Path]
) -> None:
    assert forged(bundles.alone, keys.key, copy_of, change) == {at_fault}


def test_a_study_that_rests_on_another_run_lists_what_was_not_checked(bundles: Bundles) -> None:
    verification = verify(bundles.larger, Trust())
    assert verification.faults == []
    (line,) = (line for line in verification.unchecked if "latency" in line)
    runs = [run["run_id"] for run in json.loads((bundles.larger_study / "study.json").read_text())["runs"]]
    assert runs[0] in line
    assert runs[1] not in line
    assert "latency/samples.csv" in line


def test_another_run_s_study_put_into_a_bundle_is_named(
    bundles: Bundles, studied: Studied, keys: Keys, tmp_path: Path, copy_of: Callable[[Path], Path]
) -> None:
    other = write_study_of(tmp_path / "other", studied.other)

    def replace(folder: Path) -> None:
        shutil.rmtree(folder)
        shutil.copytree(other, folder)

    assert forged(bundles.alone, keys.key, copy_of, replace) == {"latency/study.json"}


def test_a_forged_study_is_refused_by_certify(
    bundles: Bundles, studied: Studied, copy_of: Callable[[Path], Path], tmp_path: Path
) -> None:
    study = copy_of(bundles.alone_study)
    changed(study / "study.md")
    with pytest.raises(RefusedError, match=r"latency-study: latency/study\.md: is not what follows"):
        certify(studied.run, tmp_path / "bundle", None, study)
    assert not (tmp_path / "bundle").exists()


def test_a_folder_without_a_study_is_bad_input(studied: Studied, tmp_path: Path) -> None:
    study = tmp_path / "study"
    study.mkdir()
    (study / "fits.csv").write_text("reader,alpha\n")
    with pytest.raises(SparkError, match=r"--latency .*study\.json"):
        certify(studied.run, tmp_path / "bundle", None, study)
