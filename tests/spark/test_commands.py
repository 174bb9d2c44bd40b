"""Tests the command ``memarena-spark`` as users meet it: exit codes, one line for bad input, reasons with remedies."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest
import yaml
from memarena_spark.audit import draw
from memarena_spark.bundle import layout
from memarena_spark.cli import main
from memarena_spark.errors import EXIT_REFUSED, RefusedError, SparkError
from memarena_spark.facts import Unknown
from memarena_spark.locking import lock_path, node_lock
from memarena_spark.plans import load_plan
from memarena_spark.profiles import known_profiles, parse_profile, profile_text
from memarena_spark.running import run_certification

from .commands import Invoke, one_line
from .conftest import EXAMPLE, ROOT, Keys, silent, write_plan
from .nodes import FakeNode
from .test_forgeries import Forger, gold_everywhere
from .test_verify import seal_again

# ------------------------------------------------------------------ good ways


def test_preflight_reports_that_it_passed(invoke: Invoke, plan_path: Path) -> None:
    result = invoke("preflight", "--plan", plan_path)
    assert (result.code, result.out) == (0, "passed\n")


def test_preflight_lists_reasons_with_remedies_and_exits_4(invoke: Invoke, plan_path: Path, tmp_path: Path) -> None:
    plan = yaml.safe_load(plan_path.read_text())
    plan["pins"] = {"kernel": "0.0", "packages": {"memarena": "99"}}
    plan["golden"] = {"tflops": 1e9}
    shutil.copy(plan_path.parent / plan["profile"], tmp_path)
    path = tmp_path / "plan.yaml"
    path.write_text(yaml.safe_dump(plan))
    listing = invoke("preflight", "--plan", path)
    assert listing.code == 4
    lines = listing.out.splitlines()
    assert [line.split(":")[0] for line in lines[::2]] == [
        "refused  kernel", "refused  package", "refused  canary-slow",
    ]  # fmt: skip
    assert all(line.startswith("         do: ") for line in lines[1::2])
    result = invoke("preflight", "--plan", path, "--json")
    assert result.code == 4
    assert [r["code"] for r in yaml.safe_load(result.out)["refusals"]] == ["kernel", "package", "canary-slow"]


def test_canary_prints_the_golden_values_for_a_plan(invoke: Invoke, plan_path: Path) -> None:
    result = invoke("canary", "--profile", plan_path.parent / "profile-quick.toml")
    assert result.code == 0
    golden = yaml.safe_load(result.out.splitlines()[1])["golden"]
    assert golden["tflops"] > 0


def test_run_is_refused_while_another_run_has_the_lock(invoke: Invoke, plan_path: Path, tmp_path: Path) -> None:
    with node_lock(lock_path(), "boot", Path("other/run")):
        result = invoke("run", "--plan", plan_path, "--out", tmp_path / "run")
    assert result.code == 4
    assert "refused  locked: process" in result.out
    assert not (tmp_path / "run").exists()


def test_a_run_refused_by_the_thermal_gate_leaves_no_files(tmp_path: Path) -> None:
    """Preflight and conformance have passed; its temperature cannot be read."""
    plan = write_plan(tmp_path / "plan")
    profile = tmp_path / "plan" / "profile-quick.toml"
    text = profile.read_text()
    profile.write_text(text.replace("[thermal]\nrequired = false", "[thermal]\nrequired = true"))
    with pytest.raises(RefusedError, match="thermal: cannot be told: no sensor"):
        run_certification(FakeNode(sensors=Unknown(unknown="no sensor")), load_plan(plan), tmp_path / "run", silent)
    assert list((tmp_path / "run").iterdir()) == []
    assert lock_path().read_bytes() == b""


def test_certify_and_verify_work_as_commands_and_detect_a_flipped_byte(
    invoke: Invoke, finished: Path, keys: Keys, tmp_path: Path
) -> None:
    bundle = tmp_path / "bundle"
    result = invoke("certify", finished, "--out", bundle, "--key", keys.key)
    assert (result.code, result.out) == (0, f"certified: {bundle}\n")
    result = invoke("verify", bundle, "--allowed-signers", keys.allowed)
    assert result.code == 0
    assert result.out.endswith("verified\n")
    with (bundle / layout.RESULTS).open("r+b") as file:
        file.write(b"[")
    result = invoke("verify", bundle)
    assert result.code == 4
    assert "FAILED  results.json: its SHA-256 is" in result.out
    assert result.out.endswith("does not verify\n")


def test_certify_lists_every_reason(invoke: Invoke, uncertifiable: Path, tmp_path: Path) -> None:
    result = invoke("certify", uncertifiable, "--out", tmp_path / "bundle", "--unsigned")
    assert result.code == 4
    for code in ("diagnostic", "failed-question", "warm-cache", "too-few-samples", "conformance"):
        assert f"refused  {code}: " in result.out
    assert not list(tmp_path.iterdir())


def test_sha256sum_accepts_the_file_of_sums(signed: Path) -> None:
    result = subprocess.run(
        ["sha256sum", "--strict", "-c", layout.SUMS], cwd=signed, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


# ------------------------------------------------------------------ audit


def test_the_draw_of_an_audit_is_a_seeded_share() -> None:
    ids = [f"q{n}" for n in range(95)]
    assert draw(ids, 0.1, 1) == draw(reversed(ids), 0.1, 1)
    assert len(draw(ids, 0.1, 1)) == 10
    assert draw(ids, 0.1, 1) != draw(ids, 0.1, 2)
    assert len(draw(ids[:3], 0.1, 1)) == 1
    assert set(draw(ids, 1, 1)) == set(ids)


def test_an_audit_repeats_a_share_of_the_questions_and_gets_the_same_answers(
    invoke: Invoke, signed: Path, tmp_path: Path
) -> None:
    out = tmp_path / "audit"
    result = invoke("audit", signed, "--dataset", EXAMPLE, "--out", out, "--share", "0.25")
    assert result.code == 0, result.out + result.err
    assert (
        "bm25@extractive/s1 (greedy): of 3 questions 3 have the same answer, 3 the same outcome, 0 failed" in result.out
    )
    report = yaml.safe_load((out / "audit.json").read_text())
    assert f"seed {report['seed']}" in result.err
    assert (report["same_answer"], report["same_outcome"], report["passed"], len(report["drawn"])) == (
        1.0,
        1.0,
        True,
        3,
    )


def test_an_audit_without_a_seed_draws_one_at_random(
    invoke: Invoke, signed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds: list[int] = []

    def audit(*_: object, seed: int, **__: object) -> NoReturn:
        seeds.append(seed)
        raise SparkError("not audited")

    monkeypatch.setattr(main, "audit_bundle", audit)
    for flags in ((), (), ("--seed", "3")):
        one_line(invoke("audit", signed, "--dataset", EXAMPLE, "--out", tmp_path / "audit", *flags), "not audited")
    assert len(set(seeds)) == 3
    assert seeds[2] == 3


def test_an_audit_is_refused_while_another_run_has_the_lock(invoke: Invoke, signed: Path, tmp_path: Path) -> None:
    with node_lock(lock_path(), "boot", Path("other/run")):
        result = invoke("audit", signed, "--dataset", EXAMPLE, "--out", tmp_path / "audit")
    assert result.code == 4
    assert "refused  locked: process" in result.out
    assert not (tmp_path / "audit").exists()


def test_an_uncaught_exception_does_not_have_the_exit_code_of_a_refusal(
    plan_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exit code that systemd counts as orderly must differ from that of Python after a traceback."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    (tmp_path / "sitecustomize.py").write_text(
        "from memarena_spark import preflight\n"
        "def broken(*_):\n    raise RuntimeError('a fault of the program')\n"
        "preflight.preflight = broken\n"
    )
    command = [sys.executable, "-m", "memarena_spark", "preflight", "--plan", str(plan_path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "RuntimeError: a fault of the program" in result.stderr
    assert result.returncode not in (EXIT_REFUSED, 0)


def test_an_audit_of_forged_answers_does_not_agree(invoke: Invoke, signed: Path, tmp_path: Path, keys: Keys) -> None:
    """The answers are forged everywhere in the log: the bundle verifies, and only the audit detects it."""
    bundle = Path(shutil.copytree(signed, tmp_path / "bundle"))
    Forger(bundle).forge(gold_everywhere)
    seal_again(bundle, keys.key)
    assert invoke("verify", bundle, "--allowed-signers", keys.allowed).code == 0
    result = invoke("audit", bundle, "--dataset", EXAMPLE, "--out", tmp_path / "audit", "--share", "1")
    assert result.code == 4
    assert "does not agree" in result.out


# ------------------------------------------------------------------ bad input


def test_bad_input_gives_one_line_and_exit_code_2(
    invoke: Invoke, plan_path: Path, finished: Path, signed: Path, keys: Keys, tmp_path: Path
) -> None:
    nowhere = tmp_path / "gone"
    one_line(invoke("preflight", "--plan", nowhere), str(nowhere), "cannot be read")
    one_line(invoke("preflight"), "--plan")
    one_line(invoke("canary"), "--plan or --profile")
    one_line(invoke("canary", "--profile", "h100"), "h100", "cpu-dev, gb10")
    one_line(invoke("run", "--plan", plan_path), "--out or --under")
    one_line(invoke("run", "--plan", plan_path, "--out", signed), "--out", "expected a new or empty folder")
    one_line(invoke("run", "--plan", plan_path, "--out", nowhere, "--key", keys.key), "--certify")
    one_line(invoke("run", "--plan", plan_path, "--out", nowhere, "--certify"), "--key or --unsigned")
    one_line(invoke("certify", finished, "--out", nowhere), "--key or --unsigned")
    one_line(invoke("certify", finished, "--out", nowhere, "--key", nowhere), "no such file")
    one_line(invoke("certify", nowhere, "--out", tmp_path / "b", "--unsigned"), "no such folder")
    one_line(invoke("certify", finished, "--out", signed, "--unsigned"), "never overwritten")
    one_line(invoke("certify", finished, "--out", nowhere, "--unsigned", "--latency", nowhere), "--latency")
    one_line(invoke("verify", nowhere), "expected the folder of a bundle")
    one_line(invoke("verify", signed, "--allowed-signers", nowhere), "--allowed-signers", "no such file")
    audit = ("audit", signed, "--dataset")
    one_line(invoke(*audit, EXAMPLE, "--out", nowhere, "--share", "0"), "--share")
    one_line(invoke(*audit, EXAMPLE, "--out", signed), "--out", "expected a new folder")
    one_line(invoke(*audit, ROOT / "tests" / "data" / "longmemeval", "--out", nowhere))
    one_line(invoke("verify", finished, "--no-such-flag"), "--no-such-flag")
    assert not nowhere.exists()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"dataset": "/no/such/world"}, "/no/such/world"),
        ({"backends": ["no-such-backend"]}, "no backend of this name"),
        ({"egos": ["nobody"]}, "nobody"),
    ],
)
def test_impossible_settings_are_refused_before_the_run(
    settings: dict[str, object], words: str, invoke: Invoke, tmp_path: Path
) -> None:
    plan = write_plan(tmp_path / "plan", **settings)
    one_line(invoke("run", "--plan", plan, "--out", tmp_path / "run"), words)
    assert not (tmp_path / "run").exists()


def test_an_audit_with_another_data_set_is_bad_input(invoke: Invoke, signed: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(EXAMPLE, tmp_path / "other"))
    sessions = other / "corpus_sessions.jsonl"
    sessions.write_text(sessions.read_text(encoding="utf-8").replace("the", "teh", 1), encoding="utf-8")
    result = invoke("audit", signed, "--dataset", other, "--out", tmp_path / "audit")
    one_line(result, "--dataset", "is not the data set of the bundle")


def test_an_audit_of_a_damaged_bundle_is_bad_input(invoke: Invoke, signed: Path, tmp_path: Path) -> None:
    bundle = Path(shutil.copytree(signed, tmp_path / "bundle"))
    (bundle / layout.REPORT).write_text("all is well")
    result = invoke("audit", bundle, "--dataset", EXAMPLE, "--out", tmp_path / "audit")
    one_line(result, "does not verify: report.md")


def test_a_profile_with_a_fault_gives_one_line_that_names_it(invoke: Invoke, plan_path: Path, tmp_path: Path) -> None:
    text = (plan_path.parent / "profile-quick.toml").read_text()
    for number, (old, new, words) in enumerate(
        [
            ("size = 128", "size = 1", "canary.size"),
            ("idle_s = 0", "idle_s = -1", "idle_s"),
            ("schema = 1", "schema = [", "not valid TOML"),
            ("signature = false", "signature = false\nsurprise = 1", "demands.surprise"),
        ]
    ):
        path = tmp_path / f"{number}.toml"
        path.write_text(text.replace(old, new))
        one_line(invoke("canary", "--profile", path), words)


def test_a_profile_that_is_not_shipped_must_be_for_tests(invoke: Invoke, tmp_path: Path) -> None:
    """It is refused before a run, not after hours of it."""
    plan = write_plan(tmp_path)
    profile = tmp_path / "profile-quick.toml"
    profile.write_text(profile.read_text().replace('purpose = "test"', 'purpose = "certification"'))
    one_line(invoke("preflight", "--plan", plan), "purpose: a profile that is none of ours can only be")


# ------------------------------------------------------------------ what is shipped


def test_the_shipped_profiles_are_valid_and_named_like_their_files() -> None:
    assert known_profiles() == ["cpu-dev", "gb10"]
    for name in known_profiles():
        assert parse_profile(profile_text(name), name).name == name
