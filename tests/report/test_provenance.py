"""Tests provenance: a report states the settings of each part of a run, so that the run can be repeated."""

from __future__ import annotations

from memarena.log.records import NamedConfiguration
from memarena.report.provenance import provenance_of, provenance_sections

from ..support.logs import make_cell, make_manifest, make_reader


def test_provenance_names_configuration_backend_settings_and_helper_models() -> None:
    cells = [
        make_cell("recent").model_copy(update={"backend_options": {"k": "5"}, "backend_settings": {"FLUSH": "day"}}),
        make_cell("boxed").model_copy(update={"backend_image": "boxed:2", "backend_image_id": "sha256:beef"}),
        make_cell("remote").model_copy(update={"backend_address": "10.0.0.2:50051"}),
        make_cell("bm25"),
    ]
    manifest = make_manifest(cells, [make_reader()]).model_copy(
        update={
            "configuration": NamedConfiguration(name="distractors", sha256="c0ffee"),
            "helpers": {"embedder": make_reader()},
        }
    )
    (facts, *_) = provenance_sections([provenance_of("run-1", "2026-01-01T00:00:00+00:00", manifest)])
    lines = [str(line) for line in facts.lines if str(line).startswith(("set by", "backend", "embedder"))]
    assert lines == [
        "set by     distractors, sha256 c0ffee; flags override it",
        "backend    recent: k=5, FLUSH=day",
        "backend    boxed: image boxed:2 (sha256:beef)",
        "backend    remote: at 10.0.0.2:50051",
        "backend    bm25: default settings",
        f"embedder   {lines[-1].removeprefix('embedder   ')}",
    ]
    assert make_reader().model in lines[-1]
