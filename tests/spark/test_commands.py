"""The command as users meet it: exit codes, one line for bad input, reasons with remedies."""

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


def test_preflight_says_that_it_passed(invoke: Invoke, plan_path: Path) -> None:
    done = invoke("preflight", "--plan", plan_path)
    assert (done.code, done.out) == (0, "passed\n")


def test_preflight_lists_reasons_with_remedies_and_exits_4(invoke: Invoke, plan_path: Path, tmp_path: Path) -> None:
    plan = yaml.safe_load(plan_path.read_text())
    plan["pins"] = {"kernel": "0.0", "packages": {"memarena": "99"}}
    plan["golden"] = {"tflops": 1e9}
    shutil.copy(plan_path.parent / plan["profile"], tmp_path)
    path = tmp_path / "plan.yaml"
    path.write_text(yaml.safe_dump(plan))
    done = invoke("preflight", "--plan", path)
    assert done.code == 4
    lines = done.out.splitlines()
    assert [line.split(":")[0] for line in lines[::2]] == [
        "refused  kernel", "refused  package", "refused  canary-slow",
    ]  # fmt: skip
    assert all(line.startswith("         do: ") for line in lines[1::2])
    found = invoke("preflight", "--plan", path, "--json")
    assert found.code == 4
    assert [r["code"] for r in yaml.safe_load(found.out)["refusals"]] == ["kernel", "package", "canary-slow"]


def test_canary_prints_what_a_plan_takes_as_golden(invoke: Invoke, plan_path: Path) -> None:
    done = invoke("canary", "--profile", plan_path.parent / "profile-quick.toml")
    assert done.code == 0
    golden = yaml.safe_load(done.out.splitlines()[1])["golden"]
    assert golden["tflops"] > 0


def test_run_refuses_while_another_holds_the_node(invoke: Invoke, plan_path: Path, tmp_path: Path) -> None:
    with node_lock(lock_path(), "boot", Path("other/run")):
        done = invoke("run", "--plan", plan_path, "--out", tmp_path / "run")
    assert done.code == 4
    assert "refused  locked: process" in done.out
    assert not (tmp_path / "run").exists()


def test_a_run_refused_at_the_last_gate_leaves_nothing_behind(tmp_path: Path) -> None:
    """Preflight and contract are behind it; its temperature cannot be read."""
    plan = write_plan(tmp_path / "plan")
    profile = tmp_path / "plan" / "profile-quick.toml"
    text = profile.read_text()
    profile.write_text(text.replace("[thermal]\nrequired = false", "[thermal]\nrequired = true"))
    with pytest.raises(RefusedError, match="thermal: cannot be told: no sensor"):
        run_certification(FakeNode(sensors=Unknown(unknown="no sensor")), load_plan(plan), tmp_path / "run", silent)
    assert list((tmp_path / "run").iterdir()) == []
    assert lock_path().read_bytes() == b""


def test_certify_verify_and_a_flipped_byte_by_the_command(
    invoke: Invoke, finished: Path, keys: Keys, tmp_path: Path
) -> None:
    bundle = tmp_path / "bundle"
    done = invoke("certify", finished, "--out", bundle, "--key", keys.key)
    assert (done.code, done.out) == (0, f"certified: {bundle}\n")
    done = invoke("verify", bundle, "--allowed-signers", keys.allowed)
    assert done.code == 0
    assert done.out.endswith("verified\n")
    with (bundle / layout.RESULTS).open("r+b") as file:
        file.write(b"[")
    done = invoke("verify", bundle)
    assert done.code == 4
    assert "FAILED  results.json: its SHA-256 is" in done.out
    assert done.out.endswith("does not verify\n")


def test_certify_lists_every_reason(invoke: Invoke, uncertifiable: Path, tmp_path: Path) -> None:
    done = invoke("certify", uncertifiable, "--out", tmp_path / "bundle", "--unsigned")
    assert done.code == 4
    for code in ("diagnostic", "failed-question", "warm-cache", "too-few-samples", "conformance"):
        assert f"refused  {code}: " in done.out
    assert not list(tmp_path.iterdir())


def test_sha256sum_reads_the_sums(signed: Path) -> None:
    done = subprocess.run(
        ["sha256sum", "--strict", "-c", layout.SUMS], cwd=signed, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


# ------------------------------------------------------------------ audit


def test_a_draw_is_a_share_seeded_and_the_same_everywhere() -> None:
    ids = [f"q{n}" for n in range(95)]
    assert draw(ids, 0.1, 1) == draw(reversed(ids), 0.1, 1)
    assert len(draw(ids, 0.1, 1)) == 10
    assert draw(ids, 0.1, 1) != draw(ids, 0.1, 2)
    assert len(draw(ids[:3], 0.1, 1)) == 1
    assert set(draw(ids, 1, 1)) == set(ids)


def test_an_audit_asks_a_share_again_and_finds_the_same_answers(invoke: Invoke, signed: Path, tmp_path: Path) -> None:
    out = tmp_path / "audit"
    done = invoke("audit", signed, "--dataset", EXAMPLE, "--out", out, "--share", "0.25")
    assert done.code == 0, done.out + done.err
    assert (
        "bm25@extractive/s1 (greedy): of 3 questions 3 have the same answer, 3 the same outcome, 0 failed" in done.out
    )
    report = yaml.safe_load((out / "audit.json").read_text())
    assert f"seed {report['seed']}" in done.err
    assert (report["same_answer"], report["same_outcome"], report["passed"], len(report["drawn"])) == (
        1.0,
        1.0,
        True,
        3,
    )


def test_an_audit_without_a_seed_draws_one_that_nobody_knew(
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


def test_an_audit_waits_for_no_other_run_on_the_node(invoke: Invoke, signed: Path, tmp_path: Path) -> None:
    with node_lock(lock_path(), "boot", Path("other/run")):
        done = invoke("audit", signed, "--dataset", EXAMPLE, "--out", tmp_path / "audit")
    assert done.code == 4
    assert "refused  locked: process" in done.out
    assert not (tmp_path / "audit").exists()


def test_an_error_of_the_program_itself_does_not_end_as_a_refusal(
    plan_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What systemd takes for an orderly end must not be what Python ends with after a trace."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    (tmp_path / "sitecustomize.py").write_text(
        "from memarena_spark import preflight\n"
        "def broken(*_):\n    raise RuntimeError('a fault of the program')\n"
        "preflight.preflight = broken\n"
    )
    command = [sys.executable, "-m", "memarena_spark", "preflight", "--plan", str(plan_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "RuntimeError: a fault of the program" in done.stderr
    assert done.returncode not in (EXIT_REFUSED, 0)


def test_an_audit_of_answers_that_were_never_given_does_not_agree(
    invoke: Invoke, signed: Path, tmp_path: Path, keys: Keys
) -> None:
    """The answers are invented wherever they stand in the log: the bundle verifies, and the audit finds it out."""
    bundle = Path(shutil.copytree(signed, tmp_path / "bundle"))
    Forger(bundle).forge(gold_everywhere)
    seal_again(bundle, keys.key)
    assert invoke("verify", bundle, "--allowed-signers", keys.allowed).code == 0
    done = invoke("audit", bundle, "--dataset", EXAMPLE, "--out", tmp_path / "audit", "--share", "1")
    assert done.code == 4
    assert "does not agree" in done.out


# ------------------------------------------------------------------ bad input


def test_bad_input_is_one_line_and_exit_code_2(
    invoke: Invoke, plan_path: Path, finished: Path, signed: Path, keys: Keys, tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    one_line(invoke("preflight", "--plan", gone), str(gone), "cannot be read")
    one_line(invoke("preflight"), "--plan")
    one_line(invoke("canary"), "--plan or --profile")
    one_line(invoke("canary", "--profile", "h100"), "h100", "cpu-dev, gb10")
    one_line(invoke("run", "--plan", plan_path), "--out or --under")
    one_line(invoke("run", "--plan", plan_path, "--out", signed), "--out", "expected a new or empty folder")
    one_line(invoke("run", "--plan", plan_path, "--out", gone, "--key", keys.key), "--certify")
    one_line(invoke("run", "--plan", plan_path, "--out", gone, "--certify"), "--key or --unsigned")
    one_line(invoke("certify", finished, "--out", gone), "--key or --unsigned")
    one_line(invoke("certify", finished, "--out", gone, "--key", gone), "no such file")
    one_line(invoke("certify", gone, "--out", tmp_path / "b", "--unsigned"), "no such folder")
    one_line(invoke("certify", finished, "--out", signed, "--unsigned"), "never overwritten")
    one_line(invoke("certify", finished, "--out", gone, "--unsigned", "--latency", gone), "--latency")
    one_line(invoke("verify", gone), "expected the folder of a bundle")
    one_line(invoke("verify", signed, "--allowed-signers", gone), "--allowed-signers", "no such file")
    audit = ("audit", signed, "--dataset")
    one_line(invoke(*audit, EXAMPLE, "--out", gone, "--share", "0"), "--share")
    one_line(invoke(*audit, EXAMPLE, "--out", signed), "--out", "expected a new folder")
    one_line(invoke(*audit, ROOT / "tests" / "data" / "longmemeval", "--out", gone))
    one_line(invoke("verify", finished, "--no-such-flag"), "--no-such-flag")
    assert not gone.exists()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"dataset": "/no/such/world"}, "/no/such/world"),
        ({"backends": ["no-such-backend"]}, "no backend of this name"),
        ({"egos": ["nobody"]}, "nobody"),
    ],
)
def test_settings_of_a_run_that_cannot_be_are_told_before_anything_is_done(
    settings: dict[str, object], words: str, invoke: Invoke, tmp_path: Path
) -> None:
    plan = write_plan(tmp_path / "plan", **settings)
    one_line(invoke("run", "--plan", plan, "--out", tmp_path / "run"), words)
    assert not (tmp_path / "run").exists()


def test_an_audit_with_another_data_set_is_bad_input(invoke: Invoke, signed: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(EXAMPLE, tmp_path / "other"))
    sessions = other / "corpus_sessions.jsonl"
    sessions.write_text(sessions.read_text(encoding="utf-8").replace("the", "teh", 1), encoding="utf-8")
    done = invoke("audit", signed, "--dataset", other, "--out", tmp_path / "audit")
    one_line(done, "--dataset", "is not the data set of the bundle")


def test_an_audit_of_a_damaged_bundle_is_bad_input(invoke: Invoke, signed: Path, tmp_path: Path) -> None:
    bundle = Path(shutil.copytree(signed, tmp_path / "bundle"))
    (bundle / layout.REPORT).write_text("all is well")
    done = invoke("audit", bundle, "--dataset", EXAMPLE, "--out", tmp_path / "audit")
    one_line(done, "does not verify: report.md")


def test_a_profile_with_a_fault_is_one_line_that_names_it(invoke: Invoke, plan_path: Path, tmp_path: Path) -> None:
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


def test_a_profile_of_one_s_own_can_only_be_for_tests(invoke: Invoke, tmp_path: Path) -> None:
    """Told before a run, not after hours of it."""
    plan = write_plan(tmp_path)
    profile = tmp_path / "profile-quick.toml"
    profile.write_text(profile.read_text().replace('purpose = "test"', 'purpose = "certification"'))
    one_line(invoke("preflight", "--plan", plan), "purpose: a profile that is none of ours can only be")


# ------------------------------------------------------------------ what is shipped


def test_the_profiles_that_are_shipped_are_valid_and_named_as_their_files() -> None:
    assert known_profiles() == ["cpu-dev", "gb10"]
    for name in known_profiles():
        assert parse_profile(profile_text(name), name).name == name
