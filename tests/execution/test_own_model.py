"""Tests that reports mark a backend that declares its own model (capability OWN_MODEL)."""

from __future__ import annotations

import json
from pathlib import Path

import grpc
import pytest
from memarena.cli.main import app
from memarena.execution.engine import execute
from memarena.execution.planning.parsing import parse_config
from memarena.execution.planning.request import RunRequest
from memarena_proto import memory_backend_pb2 as pb
from typer.testing import CliRunner

from .capture import CapturingBackend

pytestmark = pytest.mark.usefixtures("shared_extractive_reader")

EXAMPLE = Path(__file__).parents[1] / "data" / "example"


class OwnModel(CapturingBackend):
    """Answers without the harness's reader, and declares it."""

    def Describe(self, request: pb.DescribeRequest, context: grpc.ServicerContext) -> pb.DescribeResponse:
        response = super().Describe(request, context)
        response.capabilities.append(pb.CAPABILITY_OWN_MODEL)
        return response


def test_reports_mark_a_model_of_the_backend_s_own(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with OwnModel() as own, CapturingBackend() as other:
        values = {
            "dataset": EXAMPLE,
            "backends": [f"own={own.address}", f"other={other.address}"],
            "readers": [{"spec": "extractive"}],
            "floor_samples": 0,
        }
        assert execute(RunRequest(out=out, config=parse_config(values, "test"))).reason == "completed"
    texts = {}
    for form in ("table", "html", "json"):
        options = ["--full"] if form == "table" else []
        file = tmp_path / f"report.{form}"
        assert (
            CliRunner().invoke(app, ["report", str(out), *options, "--format", form, "--out", str(file)]).exit_code == 0
        )
        texts[form] = file.read_text(encoding="utf-8")
    for form in ("table", "html"):  # ‡: calls models of its own; §: answers without a model
        assert "other §" in texts[form]
        assert "own ‡ §" not in texts[form]
        flat = " ".join(texts[form].split())
        assert "own model: own (‡) calls models of its own" in flat
        assert "own ‡" in flat and "other ‡" not in flat
    efficiency = texts["table"].split("Efficiency of one answer")[1].splitlines()
    # No call of its model passed through the gateway, so its time to the first token is unknown.
    assert "n/a" in next(line for line in efficiency if line.startswith("own ‡")).split()
    rows = {row["backend"]: row for row in json.loads(texts["json"])["runs"][0]["rows"]}
    assert (rows["own"]["own_model"], rows["other"]["own_model"]) == (True, False)
