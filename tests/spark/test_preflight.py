"""Tests the preflight: every refusal code is provoked once, and no unknown value passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from memarena_spark.checks.canaries import check_drift
from memarena_spark.facts import DeclaredOrder, GpuProcess, Image, Memory, Unknown
from memarena_spark.plans import Golden, LoadedPlan
from memarena_spark.preflight import preflight, still_well
from memarena_spark.refusal_codes import NODE

from .nodes import (
    ASKED,
    DIGEST,
    GIB,
    WELL_CANARY,
    WELL_EMBEDDER,
    WELL_GPU,
    WELL_READER,
    FakeNode,
    spark_plan,
)

OUT = Path("run")
GONE = Unknown(unknown="it does not say")
Change = dict[str, Any]

STRANGER = GpuProcess(pid=99, name="python3 train.py")
CACHE_ON = {"disable_radix_cache": "False", "version": "0.5.23"}
NO_VERSION = {"disable_radix_cache": "True"}

SICK: list[tuple[str, str, Change]] = [
    ("node-mismatch", "architecture is x86_64", {"identity_": {"architecture": "x86_64"}}),
    ("node-mismatch", "8 CPUs", {"identity_": {"cpu_count": 8}}),
    ("node-mismatch", "64.0 GiB of memory", {"identity_": {"memory_bytes": 64 * GIB}}),
    ("node-mismatch", "the GPU is NVIDIA H200", {"gpu_": {"name": "NVIDIA H200"}}),
    ("gpu-absent", "it does not say", {"gpu_": GONE}),
    ("driver", "the driver is 575.0, the plan pins 580.95.05", {"gpu_": {"driver": "575.0"}}),
    ("kernel", "the kernel is 6.12, the plan pins 6.11.0-nvidia", {"identity_": {"kernel": "6.12"}}),
    ("package", "memarena is 0.2.0, the plan pins 0.1.0", {"installed": {"memarena": "0.2.0"}}),
    ("package", "memarena is not installed", {"installed": {}}),
    ("image", "sglang runs sha256:00", {"images": {"sglang": Image(digest="sha256:" + "00" * 32, source="docker")}}),
    ("image", "no container sglang", {"images": {}}),
    ("gpu-busy", "process 99 is on the GPU: python3 train.py", {"gpu_": {"processes": (STRANGER,)}}),
    ("gpu-busy", "whose name cannot be read", {"gpu_": {"processes": (GpuProcess(pid=99, name=""),)}}),
    ("gpu-busy", "it does not say", {"gpu_": {"processes": GONE}}),
    ("gpu-slowdown", "active now: hardware slowdown", {"gpu_": {"slowdowns": ("hardware slowdown",)}}),
    ("gpu-slowdown", "it does not say", {"gpu_": {"slowdowns": GONE}}),
    ("gpu-clock", "the highest SM clock is 799 MHz", {"gpu_": {"max_sm_clock_mhz": 799.0}}),
    ("gpu-clock", "it does not say", {"gpu_": {"max_sm_clock_mhz": GONE}}),
    ("governor", "the governor is powersave", {"governors_": ("performance", "powersave")}),
    ("governor", "it does not say", {"governors_": GONE}),
    ("memory", "2.0 GiB are available", {"memory_": Memory(available_bytes=2 * GIB, swap_used_bytes=0)}),
    ("memory", "it does not say", {"memory_": GONE}),
    ("swap", "3 MiB of swap are in use", {"memory_": Memory(available_bytes=50 * GIB, swap_used_bytes=3 << 20)}),
    ("disk", "1.00 GiB are free at run", {"free": GIB}),
    ("disk", "it does not say", {"free": GONE}),
    ("out", "user 10001 may not write in run", {"forbidden": "user 10001 may not write in run"}),
    ("busy", "the CPUs are 85% busy", {"busy": 85.0}),
    ("busy", "it does not say", {"busy": GONE}),
    ("clock-sync", "not synchronised", {"synchronised": False}),
    ("clock-sync", "it does not say", {"synchronised": GONE}),
    ("power-source", "runs on its battery", {"battery": True}),
    ("power-source", "it does not say", {"battery": GONE}),
    ("temperature", "soc is at 88 °C", {"sensors": {"soc": 88.0, "gpu": 75.0}}),
    ("temperature", "it does not say", {"sensors": GONE}),
    ("embedder-unreachable", "it does not say", {"embedder_": GONE}),
    ("embedder-on-cpu", "600 of 1000 bytes are on the GPU", {"embedder_": {"vram_bytes": 600}}),
    ("embedder-cold", "took 1.40 s", {"embedder_": {"warm_s": 1.4}}),
    ("embedder-late", "started 50 s after the model server", {"embedder_": {"started_at_unix": 250.0}}),
    ("order-unknown", "when the embedder was started", {"embedder_": {"started_at_unix": GONE}}),
    ("order-unknown", "when the model server was started", {"reader_": {"started_at_unix": GONE}}),
    ("embedder-late", "is not declared before", {"embedder_": {"started_at_unix": DeclaredOrder(place=1)},
                                                "reader_": {"started_at_unix": DeclaredOrder(place=0)}}),
    ("order-unknown", "of the other a declared place", {"embedder_": {"started_at_unix": DeclaredOrder(place=0)}}),
    ("reader-unreachable", "it does not say", {"reader_": GONE}),
    ("reader-flags", "disable_radix_cache is False, the plan says True", {"reader_": {"details": CACHE_ON}}),
    ("reader-flags", "version is not told, the plan says 0.5.23", {"reader_": {"details": NO_VERSION}}),
    ("reader-flags", "the server is llama.cpp", {"reader_": {"kind": "llama.cpp"}}),
    ("reader-probe", "the reply is empty", {"reader_": {"probe_failure": "the reply is empty"}}),
    ("reader-asked", "moved by 3 in 35 s", {"counts_at": lambda now: {ASKED: 7.0 + now // 10}}),
    ("reader-asked", "moved by 1 in 35 s", {"counts_at": lambda now: {ASKED: 7.0} | ({"new": 1.0} if now > 9 else {})}),
    ("reader-asked", "it does not say", {"counts_at": GONE}),
    ("reader-remote", "is not on this machine's loopback", {"reach": "elsewhere"}),
    ("server-exposed", "http://127.0.0.1:30000 answers on every address", {"open": True}),
    ("canary-failed", "it does not say", {"canary_": GONE}),
    ("canary-slow", "94 TFLOP/s, expected at least 95% of the golden 100", {"canary_": {"tflops": 94.0}}),
    ("canary-clock", "799 MHz, expected at least 95% of the golden 2400", {"canary_": {"clock_mhz": 799.0}}),
    ("canary-clock", "it does not say", {"canary_": {"clock_mhz": GONE}}),
]  # fmt: skip


def sick(change: Change) -> FakeNode:
    """Return a faultless fake node with this change."""
    node = FakeNode()
    for name, value in change.items():
        if isinstance(value, dict) and name not in {"installed", "images", "sensors"}:
            value = getattr(node, name).model_copy(update=value)  # noqa: PLW2901
        setattr(node, name, value)
    return node


def test_a_node_without_faults_passes() -> None:
    result = preflight(FakeNode(), spark_plan(), OUT)
    assert (result.passed, result.refusals) == (True, ())


@pytest.mark.parametrize(("code", "reason", "change"), SICK, ids=[f"{c}-{n}" for n, (c, _, _) in enumerate(SICK)])
def test_each_fault_is_refused_with_its_code_only(code: str, reason: str, change: Change) -> None:
    result = preflight(sick(change), spark_plan(), OUT)
    assert {r.code for r in result.refusals} == {code}
    assert any(reason in r.reason for r in result.refusals), result.refusals
    assert all(r.remedy == NODE[code] for r in result.refusals)


def test_every_code_is_provoked_here_or_by_the_tests_of_lock_golden_values_and_heat() -> None:
    elsewhere = {"locked", "canary-golden", "thermal"}
    assert {code for code, _, _ in SICK} | elsewhere == set(NODE)


@pytest.mark.parametrize(("backend", "passed"), [("bm25", True), ("b=127.0.0.1:50051", False), ("b=image:b", False)])
def test_a_server_open_to_containers_is_refused_if_the_backend_may_run_in_one(backend: str, passed: bool) -> None:
    loaded = spark_plan()
    run = loaded.plan.run.model_copy(update={"backends": (backend,)})
    plan = loaded.model_copy(update={"plan": loaded.plan.model_copy(update={"run": run})})
    assert preflight(FakeNode(open=True), plan, OUT).passed is passed


def test_a_declared_start_order_is_accepted() -> None:
    order = {
        "embedder_": {"started_at_unix": DeclaredOrder(place=0)},
        "reader_": {"started_at_unix": DeclaredOrder(place=1)},
    }
    assert preflight(sick(order), spark_plan(), OUT).passed


@pytest.mark.parametrize(
    ("canary", "code", "reason"),
    [
        ({"tflops": 36.5}, "canary-slow", "36.5 TFLOP/s, expected at least the profile's 60"),
        ({"clock_mhz": 799.0}, "canary-clock", "799 MHz, expected at least the profile's 1500 MHz"),
        ({"clock_mhz": GONE}, "canary-clock", "it does not say"),
    ],
)
def test_low_golden_values_do_not_lower_the_profiles_minimum(canary: Change, code: str, reason: str) -> None:
    """The profile's minimum applies whatever golden values a plan has, and if it has none."""
    loaded = spark_plan()
    for golden in (Golden(tflops=1.0, clock_mhz=1.0), None):
        plan = loaded.plan.model_copy(update={"golden": golden})
        result = preflight(sick({"canary_": canary}), loaded.model_copy(update={"plan": plan}), OUT).refusals
        reasons = {r.code: r.reason for r in result}
        assert reason in reasons[code]
        assert set(reasons) - {code} == (set() if golden else {"canary-golden"})


def test_all_reasons_are_reported_at_once() -> None:
    node = sick({"synchronised": False, "battery": True, "canary_": {"tflops": 1.0}})
    assert [r.code for r in preflight(node, spark_plan(), OUT).refusals] == [
        "clock-sync",
        "power-source",
        "canary-slow",
    ]


def test_a_plan_without_golden_values_is_refused_with_the_measured_ones() -> None:
    loaded = spark_plan()
    plan = loaded.plan.model_copy(update={"golden": None})
    (refused,) = preflight(FakeNode(), loaded.model_copy(update={"plan": plan}), OUT).refusals
    assert refused.code == "canary-golden"
    assert "it now does 100 TFLOP/s" in refused.reason


def test_values_without_a_requirement_in_the_profile_are_not_checked() -> None:
    """The same faulty node under cpu-dev: only what that profile requires counts."""
    from memarena_spark.profiles import parse_profile, profile_text

    loaded = spark_plan()
    bare = loaded.plan.model_copy(update={"pins": loaded.plan.pins.model_copy(update={"driver": None}), "golden": None})
    loaded = LoadedPlan(
        plan=bare.model_copy(update={"embedder": None, "reader_server": None}),
        plan_text="",
        profile=parse_profile(profile_text("cpu-dev"), "cpu-dev"),
        profile_text="",
    )
    node = sick(
        {"gpu_": GONE, "synchronised": GONE, "battery": True, "busy": 100.0, "sensors": GONE, "governors_": GONE}
    )
    assert preflight(node, loaded, OUT).refusals == ()


def test_conditions_are_checked_again_after_a_run() -> None:
    loaded = spark_plan()
    assert still_well(FakeNode(), loaded) == ()
    node = sick({"embedder_": {"vram_bytes": 0}, "memory_": Memory(available_bytes=0, swap_used_bytes=1 << 30)})
    assert [r.code for r in still_well(node, loaded)] == ["embedder-on-cpu", "swap"]


@pytest.mark.parametrize(("after", "refused"), [(97.5, False), (96.5, True), (103.5, True), (102.5, False)])
def test_a_canary_that_drifts_by_more_than_three_percent_voids(after: float, refused: bool) -> None:
    settings = spark_plan().profile.canary
    later = WELL_CANARY.model_copy(update={"tflops": after})
    assert [r.code for r in check_drift(WELL_CANARY, later, settings)] == (["canary-drift"] if refused else [])


def test_a_canary_that_cannot_be_told_is_no_canary_without_drift() -> None:
    settings = spark_plan().profile.canary
    assert [r.code for r in check_drift(WELL_CANARY, GONE, settings)] == ["canary-drift"]
    assert [r.code for r in check_drift(GONE, WELL_CANARY, settings)] == ["canary-drift"]


def test_the_complete_state_of_the_node_is_recorded() -> None:
    state = preflight(FakeNode(), spark_plan(), OUT).state
    assert state.gpu == WELL_GPU
    assert state.embedder == WELL_EMBEDDER
    assert state.reader_server == WELL_READER
    assert state.images["sglang"] == Image(digest=DIGEST, source="docker")
    assert state.packages["memarena"] == "0.1.0"
    assert state.packages["torch"] is None
