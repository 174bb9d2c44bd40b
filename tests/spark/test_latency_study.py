"""A latency study in a bundle: made again file by file, and what its figures rest on elsewhere is named."""

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
    """Of the same run: with the study of it alone, and with one that rests on a further run."""

    alone: Path
    larger: Path
    alone_study: Path
    larger_study: Path


@pytest.fixture(scope="module")
def bundles(studied: Studied, keys: Keys, tmp_path_factory: pytest.TempPathFactory) -> Bundles:
    folder = tmp_path_factory.mktemp("bundles")
    own = write_study_of(folder / "own", studied.run / "run")
    both = write_study_of(folder / "both", studied.other, studied.run / "run")
    certify(studied.run, folder / "alone", keys.key, own)
    certify(studied.run, folder / "larger", keys.key, both)
    return Bundles(folder / "alone", folder / "larger", own, both)


def forged(bundle: Path, key: Path, copy_of: Callable[[Path], Path], change: Callable[[Path], None]) -> set[str]:
    """Files that are named after a change by somebody with the key, who seals everything again."""
    copy = copy_of(bundle)
    change(copy / "latency")
    seal_again(copy, key)
    found = verify(copy, Trust())
    assert found.passed is (not found.faults)
    return files_at_fault(found)


def changed(path: Path) -> None:
    """Another last digit of the file's last number; of a file without one, a blank line more."""
    text = path.read_text(encoding="utf-8")
    at = max(text.rfind(digit) for digit in "0123456789")
    other = f"{text}\n" if at < 0 else text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1 :]
    path.write_text(other, encoding="utf-8")


def files_of(study: Path) -> list[str]:
    return sorted(path.name for path in study.iterdir())


def test_a_study_of_the_bundle_s_own_run_is_made_again_whole(bundles: Bundles) -> None:
    assert files_of(bundles.alone / "latency") == files_of(bundles.alone_study)
    assert {"study.json", "study.md", "samples.csv", "fits.csv", "ttft-split.svg"} <= {*files_of(bundles.alone_study)}
    found = verify(bundles.alone, Trust())
    assert found.faults == []
    assert not [line for line in found.unchecked if "latency" in line]


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


def test_a_study_that_rests_on_a_further_run_names_what_was_not_checked(bundles: Bundles) -> None:
    found = verify(bundles.larger, Trust())
    assert found.faults == []
    (line,) = (line for line in found.unchecked if "latency" in line)
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


def test_a_forged_study_is_refused_when_certifying_already(
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
