"""Tests that no command silently drops the first value of an option that is given twice."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from memarena_masim.cli import app as masim
from memarena_spark.cli.main import app as spark
from typer.testing import CliRunner


@pytest.mark.parametrize(
    ("app", "arguments", "option"),
    [
        (masim, ("generate", "--seed", "1", "--seed=2"), "--seed"),
        (masim, ("generate", "--preset", "tiny", "--seed", "1", "--preset", "s"), "--preset"),
        (spark, ("verify", "bundle", "--allowed-signers", "a", "--allowed-signers", "b"), "--allowed-signers"),
    ],
)
def test_an_option_given_twice_is_refused(
    tmp_path: Path, app: typer.Typer, arguments: tuple[str, ...], option: str
) -> None:
    out = ("--out", str(tmp_path / "out")) if app is masim else ()
    result = CliRunner().invoke(app, [*arguments, *out])
    assert result.exit_code == 2
    assert f"{option}: given more than once" in result.output
    assert not (tmp_path / "out").exists()
