"""A memory that calls models of its own says so, and every report of it does."""

from __future__ import annotations

import json
from pathlib import Path

import grpc
from memarena.cli.main import app
from memarena.execution.engine import execute
from memarena.execution.planning.parsing import parse_config
from memarena.execution.planning.request import RunRequest
from memarena_proto import memory_backend_pb2 as pb
from typer.testing import CliRunner

from .capture import CapturingBackend

EXAMPLE = Path(__file__).parents[1] / "data" / "example"


class OwnModel(CapturingBackend):
    """Answers without the caller's reader, and declares it."""

    def Describe(self, request: pb.DescribeRequest, context: grpc.ServicerContext) -> pb.DescribeResponse:
        told = super().Describe(request, context)
        told.capabilities.append(pb.CAPABILITY_OWN_MODEL)
        return told


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
    shown = {}
    for form in ("table", "html", "json"):
        whole = ["--full"] if form == "table" else []
        file = tmp_path / f"report.{form}"
        assert (
            CliRunner().invoke(app, ["report", str(out), *whole, "--format", form, "--out", str(file)]).exit_code == 0
        )
        shown[form] = file.read_text(encoding="utf-8")
        # A model of its own is said by its own sign; the other answers without a model and says nothing.
        assert form == "json" or ("other §" in shown[form] and "own ‡ §" not in shown[form])
    for form in ("table", "html"):
        flat = " ".join(shown[form].split())
        assert "own model: own (‡) calls models of its own" in flat
        assert "own ‡" in flat and "other ‡" not in flat
    efficiency = shown["table"].split("Efficiency of one answer")[1].splitlines()
    assert next(line for line in efficiency if line.startswith("own ‡")).split().count("n/a") >= 1
    rows = {row["backend"]: row for row in json.loads(shown["json"])["runs"][0]["rows"]}
    assert (rows["own"]["own_model"], rows["other"]["own_model"]) == (True, False)
