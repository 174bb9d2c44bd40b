"""Tests plans: an error names the faulty field in one line, and the shipped plans can be filled in and read."""

from __future__ import annotations

from pathlib import Path

import pytest
from memarena_spark.plans import load_plan

from .commands import Invoke, one_line
from .conftest import EXAMPLE, ROOT

RUN = "run: {dataset: a, backends: [b], readers: [{spec: c}]}\n"
SPARK = """
schema: 1
profile: gb10
pins: {driver: a, kernel: b}
reader_server: {url: "http://127.0.0.1:30000", model: m}
embedder: {url: "http://127.0.0.1:11434", model: bge-m3}
golden: {tflops: 90, clock_mhz: 2300}
run:
  dataset: a
  backends: [b]
  readers: [{spec: "http://127.0.0.1:30000/v1", model: m, golden_prompt_tokens: {plain: 20}}]
  embedder: {spec: "http://127.0.0.1:11434/v1", model: bge-m3}
  protocol: end_of_horizon
  warm_up: 8
"""
"""A valid plan."""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "expected a mapping"),
        ("schema: 1\nprofile: [", "not valid YAML"),
        ("schema: 1\nprofile: quick.toml", "run: missing"),
        (f"{RUN}schema: 2\nprofile: quick.toml", "schema: "),
        (f"{RUN}schema: 1\nprofile: h100", "profile h100: expected"),
        (f"{RUN}schema: 1\nprofile: no.toml", "no.toml: cannot be read"),
        (f"{RUN}schema: 1\nprofile: gb10", "pins.driver: the profile"),
        (
            f"{RUN}schema: 1\nprofile: gb10\npins: {{driver: a, kernel: b}}",
            "reader_server: the profile gb10 demands it",
        ),
        (
            f"{RUN}schema: 1\nprofile: gb10\npins: {{images: {{sglang: latest}}}}",
            "pins.images.sglang: expected text of the form",
        ),
        (f"{RUN}schema: 1\nprofile: cpu-dev\nsurprise: 1", "surprise: "),
        (f"{RUN}schema: 1\nprofile: cpu-dev\nembedder: {{url: ftp://x, model: m}}", "embedder.url: "),
    ],
)
def test_a_plan_with_a_fault_gives_one_line_that_names_it(
    text: str, words: str, invoke: Invoke, tmp_path: Path
) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(text)
    one_line(invoke("preflight", "--plan", path), words)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            'spec: "http://127.0.0.1:30000/v1"',
            'spec: "http://10.9.9.9:1234"',
            "run.readers.0.spec: expected the reader_",
        ),
        ('spec: "http://127.0.0.1:30000/v1"', 'spec: "http://127.0.0.1:0"', "run.readers.0.spec: reader http"),
        ('spec: "http://127.0.0.1:30000/v1"', "spec: embedded", "run.readers.0.spec: expected the reader_server's"),
        ("model: m, golden", "model: n, golden", "run.readers.0.model: expected the reader_server's, m, got n"),
        ("model: m, golden", "golden", "run.readers.0.model: expected the reader_server's, m, got none"),
        (", golden_prompt_tokens: {plain: 20}", "", "run.readers.0.golden_prompt_tokens: the profile gb10 demands it"),
        ("11434/v1", "11435/v1", "run.embedder.spec: expected the embedder's, http://127.0.0.1:11434, got"),
        ('11434/v1", model: bge-m3', '11434/v1", model: e5', "run.embedder.model: expected the embedder's, bge-m3"),
        ('embedder: {url: "http://127.0.0.1:11434", model: bge-m3}', "", "embedder: the profile gb10 demands it"),
        ("warm_up: 8", "warm_up: 7", "run.warm_up: the profile gb10 demands 8 or more, got 7"),
        ("protocol: end_of_horizon", "", "run.protocol: the profile gb10 demands end_of_horizon, got interleaved"),
        ("warm_up: 8", "warm_up: 8\n  floor_samples: 0", "run.floor_samples: expected 11 or more, got 0"),
        ("tflops: 90", "tflops: 1.0", "golden.tflops: gb10 gives 60 or more, got 1"),
        ("clock_mhz: 2300", "clock_mhz: 1.0", "golden.clock_mhz: gb10 gives 1500 or more, got 1"),
        (", clock_mhz: 2300", "", "golden.clock_mhz: the profile gb10 demands it"),
    ],
)
def test_a_plan_that_lacks_a_requirement_of_its_profile_is_refused_when_read(
    old: str, new: str, words: str, invoke: Invoke, tmp_path: Path
) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(SPARK)
    assert load_plan(path).profile.name == "gb10"
    assert old in SPARK
    path.write_text(SPARK.replace(old, new, 1))
    one_line(invoke("preflight", "--plan", path), words)


def test_a_plan_without_golden_values_is_read(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(SPARK.replace("golden: {tflops: 90, clock_mhz: 2300}", ""))
    assert load_plan(path).plan.golden is None


# ------------------------------------------------------------------ what is shipped


def test_the_plan_for_this_machine_is_valid() -> None:
    loaded = load_plan(ROOT / "spark" / "plans" / "cpu-dev.yaml")
    assert loaded.plan.run.dataset.resolve() == EXAMPLE


def test_the_plan_for_a_spark_is_valid_once_its_brackets_are_filled_in(invoke: Invoke, tmp_path: Path) -> None:
    text = (ROOT / "spark" / "plans" / "gb10.yaml").read_text()
    path = tmp_path / "plan.yaml"
    path.write_text(text)
    for bracket, value, field in (
        ('"<tokens>"', "20", "run.readers.0.golden_prompt_tokens"),
        ("<64 hex digits>", "ab" * 32, "pins.images.sglang"),
        ('"<TFLOP/s>"', "91.6", "golden.tflops"),
        ('"<MHz>"', "2281", "golden.clock_mhz"),
    ):
        one_line(invoke("preflight", "--plan", path), field)
        text = text.replace(bracket, value)
        path.write_text(text)
    loaded = load_plan(path)
    assert loaded.profile.name == "gb10"
    assert loaded.plan.reader_server is not None
    assert loaded.plan.reader_server.flags["disable_radix_cache"] == "True"
