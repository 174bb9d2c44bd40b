"""Fixtures for tests of certification: real runs on small worlds, made once for the session."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from memarena.execution.backends.manifests import choose_backend
from memarena_spark import backends, running
from memarena_spark.backends import ConformanceReport, code_of
from memarena_spark.bundle.certify import certify
from memarena_spark.cli import main as command
from memarena_spark.files import write_whole
from memarena_spark.locking import VARIABLE
from memarena_spark.machine import ThisMachine
from memarena_spark.node import Node
from memarena_spark.plans import Plan, load_plan
from memarena_spark.running import run_certification

from tests.support.model_script import Script
from tests.support.model_server import ModelServer

from ..support.summed import put_body
from .commands import Done, Invoke

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "tests" / "data" / "example"
FAULTY = ROOT / "tests" / "execution" / "faulty_backend.py"
QUICK = Path(__file__).parent / "profile-quick.toml"


@pytest.fixture(scope="session", autouse=True)
def own_lock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A lock file for these tests alone, so that they block no run on this machine."""
    path = tmp_path_factory.mktemp("lock") / "node.lock"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(path))
        yield path


@pytest.fixture(scope="session", autouse=True)
def contracts_held_once() -> Iterator[None]:
    """Run the conformance suite once for each backend; later runs get a copy of the first report.

    The suite takes more than half of a small run's time and has the same result for the same code and settings.
    """
    reports: dict[tuple[str, str, str], tuple[ConformanceReport, bytes]] = {}

    def hold(name: str, node: Node, out: Path, plan: Plan) -> ConformanceReport:
        settings = plan.run.settings.get(choose_backend(name).name, {})
        key = (name, code_of(choose_backend(name), node).digest, repr((settings, plan.advertise)))
        if key not in reports:
            report = backends.hold_to_contract(name, node, out, plan)
            reports[key] = (report, (out / report.file).read_bytes())
        report, junit = reports[key]
        write_whole(out / report.file, junit)
        return report

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "hold_to_contract", hold)
        yield


def write_plan(folder: Path, **run: object) -> Path:
    """Write a plan with the quick profile; ``run`` are its fields."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(QUICK, folder / QUICK.name)
    settings = {
        "dataset": str(EXAMPLE),
        "backends": ["bm25"],
        "readers": [{"spec": "extractive"}],
        "floor_samples": 11,
        "limit": 12,
        "meters": ["procfs", "constant:gpu_power=20 W"],
        **run,
    }
    path = folder / "plan.yaml"
    path.write_text(yaml.safe_dump({"schema": 1, "profile": QUICK.name, "run": settings}), encoding="utf-8")
    return path


def silent(_: str) -> None:
    """Ignore a line of output."""


@pytest.fixture(scope="session")
def plan_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_plan(tmp_path_factory.mktemp("plan"))


@pytest.fixture(scope="session")
def finished(plan_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real run that can be certified: bm25 with the extractive reader."""
    out = tmp_path_factory.mktemp("finished") / "run"
    record = run_certification(ThisMachine(), load_plan(plan_path), out, silent)
    assert (record.outcome, record.left) == ("completed", 0)
    return out


@dataclass(frozen=True)
class Studied:
    """Material of a latency study: a certifiable run, and the log of another run, for a study of both."""

    run: Path
    other: Path


@pytest.fixture(scope="session")
def studied(tmp_path_factory: pytest.TempPathFactory) -> Studied:
    """Runs of bm25 (certifiable) and vanilla with a scripted server that replies like a language model."""
    folder = tmp_path_factory.mktemp("studied")
    with ModelServer(lambda *_: Script(delay_s=0.2)) as reader:
        for backend in ("bm25", "vanilla"):
            plan = write_plan(folder / backend, backends=[backend], readers=[{"spec": reader.base_url}])
            record = run_certification(ThisMachine(), load_plan(plan), folder / backend / "run", silent)
            assert (record.outcome, record.left) == ("completed", 0)
    return Studied(folder / "bm25" / "run", folder / "vanilla" / "run" / "run")


@pytest.fixture(scope="session")
def uncertifiable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that must not be certified: a diagnostic backend, a failing one, a warm cache, few questions."""
    folder = tmp_path_factory.mktemp("uncertifiable")
    manifest = folder / "faulty" / "backend.toml"
    manifest.parent.mkdir()
    manifest.write_text(
        'schema = 1\n[[backend]]\nname = "faulty"\nkind = "competitor"\n'
        f'command = ["{{python}}", "{FAULTY}", "own-raise:3", "--listen", "127.0.0.1:0", '
        '"--address-file", "{address_file}", "--data-dir", "{data_dir}"]\n'
    )

    with ModelServer(lambda *_: Script(cached_tokens=7)) as reader:
        plan = write_plan(
            folder, backends=["oracle", str(manifest)], readers=[{"spec": reader.base_url}], limit=4, meters=["none"]
        )
        record = run_certification(ThisMachine(), load_plan(plan), folder / "run", silent)
    assert record.outcome == "completed"
    return folder / "run"


def rewrite_log(path: Path, kind: str, change: Callable[[dict[str, object]], None], *, first: bool = True) -> None:
    """Change records of a log in the file: the first of a kind, or all of them.

    The log's writer only appends, so this imitates a person with access to the file.
    """
    with closing(sqlite3.connect(path)) as log:
        rows = log.execute("SELECT seq, body FROM records WHERE kind = ? ORDER BY seq", (kind,)).fetchall()
    for seq, body in rows[:1] if first else rows:
        content = json.loads(body)
        change(content)
        put_body(path, seq, json.dumps(content))


@dataclass(frozen=True)
class Keys:
    """A signing key, another key, and the file of allowed signers with the first."""

    key: Path
    stranger: Path
    allowed: Path


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    folder = tmp_path_factory.mktemp("keys")
    for name in ("key", "stranger"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / name)]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    allowed = folder / "allowed_signers"
    allowed.write_text(f"spark-1 {(folder / 'key.pub').read_text()}")
    return Keys(folder / "key", folder / "stranger", allowed)


@pytest.fixture(scope="session")
def signed(finished: Path, keys: Keys, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A signed bundle. Tests that change it take a copy."""
    bundle = tmp_path_factory.mktemp("signed") / "bundle"
    certify(finished, bundle, keys.key)
    return bundle


@pytest.fixture
def copy_of(tmp_path: Path) -> Callable[[Path], Path]:
    """Return a function that copies a folder into the test's own."""

    def copy(folder: Path) -> Path:
        return Path(shutil.copytree(folder, tmp_path / f"copy-{folder.name}"))

    return copy


@pytest.fixture
def invoke(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Return a function that runs a command line in this process."""

    def run(*arguments: str | Path) -> Done:
        monkeypatch.setattr(sys, "argv", ["memarena-spark", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            command.main()
        output = capsys.readouterr()
        return Done(int(str(ended.value.code)), output.out, output.err)

    return run
