"""Defines the meter records of a run: its meters, its phases and their energy, memory and disk of backends."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from memarena.log.base import Record

PhaseName = Literal["idle_before", "prepare", "cell", "ingest", "answer", "idle_after"]
"""``prepare``: readers probed, overhead measured; ``cell``: a whole cell; ``ingest`` and ``answer``: its days, its
questions."""


class MeterFigure(Record):
    """A figure of a meter: a value, void with a reason, or unavailable with a reason; never 0 for one that is missing.

    ``void`` was to be measured and cannot be published; ``unavailable`` is not given by this machine.
    """

    status: Literal["value", "void", "unavailable"]
    value: float | None = None
    unit: str = ""
    reason: str = ""

    @model_validator(mode="after")
    def _value_or_reason(self) -> Self:
        if self.status == "value" and (self.value is None or self.reason):
            raise ValueError("a value is a number without a reason")
        if self.status != "value" and (self.value is not None or not self.reason):
            raise ValueError(f"{self.status} needs a reason and no number")
        return self

    @classmethod
    def measured(cls, value: float, unit: str) -> Self:
        """Return a figure that can be published. ``unit``: W, J, %, B or s."""
        return cls(status="value", value=value, unit=unit)

    @classmethod
    def void(cls, reason: str) -> Self:
        """Return a figure that was to be measured and cannot be published."""
        return cls(status="void", reason=reason)

    @classmethod
    def unavailable(cls, reason: str) -> Self:
        """Return a figure that this machine does not give."""
        return cls(status="unavailable", reason=reason)


class MeterChannel(Record):
    """One quantity. ``reason`` says why this machine does not give it; empty where it does."""

    name: str
    unit: str
    reason: str = ""


class MeteringStarted(Record):
    """The meters of a run segment were opened."""

    kind: Literal["metering_started"] = "metering_started"
    meters: tuple[str, ...]
    """Meters as requested: ``nvml``, ``hwmon``, ``procfs``, ``replay:FILE``, …"""
    samples_file: str
    """Path within the run's folder; empty if there is nothing to sample."""
    period_ns: int
    system_channel: str
    """The rail that feeds the whole machine, if one was named or is known as ``sys_power``."""
    channels: tuple[MeterChannel, ...]
    """Channels that are sampled, and those that this machine does not have, with the reason."""


class CpuLoad(Record):
    """How busy the CPUs of the machine were during a cell, percent of all of them."""

    busy: MeterFigure
    """Load by all processes."""
    others: MeterFigure
    """Load by processes that the run did not start; unavailable if a server that the run used may be among them."""


class PhaseEnded(Record):
    """A phase is over. ``pieces`` are its spans of CLOCK_MONOTONIC in ns: days and questions may alternate."""

    kind: Literal["phase"] = "phase"
    phase: PhaseName
    cell_id: str | None = None
    samples_file: str
    pieces: tuple[tuple[int, int], ...]
    queries: int | None = None
    """Number of questions in the phase; None if it has no questions."""
    load: CpuLoad | None = None
    """Load during a whole cell; None for other phases, and in older logs."""


class RailMeasured(Record):
    """The energy of one power channel in a phase: ``gpu_rail_j`` is the GPU alone, ``sys_j`` the whole machine."""

    name: str
    """``gpu_rail_j``, ``sys_j``, or the rail's own name with ``rail_j``."""
    gross_j: MeterFigure
    mean_power_w: MeterFigure
    counter_difference_percent: MeterFigure
    """Difference of the integral from the device's own energy counter; above 3% gross, net and mean power are void."""
    idle_w: MeterFigure
    """Mean power over both idle windows."""
    idle_j: MeterFigure
    """Energy of the machine at rest in the same time."""
    net_j: MeterFigure
    """Gross minus idle; may be negative within the noise."""
    gross_j_per_query: MeterFigure
    net_j_per_query: MeterFigure


class ChannelMeasured(Record):
    """Mean and highest value of a channel in a phase: power, temperature, load, clock, memory."""

    channel: str
    unit: str
    mean: MeterFigure
    peak: MeterFigure


class PhaseMeasured(Record):
    """The energy of a phase, computed from its samples once the sampler has stopped."""

    kind: Literal["phase_measured"] = "phase_measured"
    phase: PhaseName
    cell_id: str | None = None
    samples_file: str
    start_mono_ns: int
    duration_s: float
    pieces: int
    queries: int | None = None
    rails: tuple[RailMeasured, ...]
    cpu_s: MeterFigure
    """Seconds of CPU over all cores of the machine, by all processes."""
    channels: tuple[ChannelMeasured, ...] = ()
    load: CpuLoad | None = None
    """Load of the CPUs as the run measured it at the end of the phase."""


class SearchesTimed(Record):
    """Searches timed separately from questions, after this many days of history."""

    kind: Literal["searches_timed"] = "searches_timed"
    cell_id: str
    ego: str
    namespace: str
    day: int
    """The last day that the memory has ingested."""
    queries: int
    """Number of different questions among the searches."""
    search_ns: tuple[int, ...]
    """Times from request sent to response received, in the order of the searches."""
    failures: dict[str, int]
    """Number of failed searches by gRPC code."""


class DeletionProbed(Record):
    """One Forget after the last question of an ego, with the searches before and after it."""

    kind: Literal["deletion_probed"] = "deletion_probed"
    cell_id: str
    ego: str
    namespace: str
    day: int
    target: Literal["session", "subject", "fact"]
    code: str
    """gRPC status name of Forget; if it is not ``OK``, no search followed."""
    message: str = ""
    turns: int
    """Number of turns of the target that were searched for."""
    found_before: int
    """Number of these turns that Search returned before Forget."""
    found_again: int
    """Number of turns of ``found_before`` that Search returned after Forget."""
    answered_again: int | None = None
    """Number of turns of ``found_before`` in the context of an Answer afterwards; None if the backend is not asked for
    answers."""
    controls: int
    """Number of turns of other sessions that Search returned before."""
    controls_lost: int
    """Number of these that Search did not return afterwards."""


class FootprintTaken(Record):  # words: a name of the file format
    """Memory and disk of a backend after a day came in, or at the end of a cell (``day`` None)."""

    kind: Literal["footprint"] = "footprint"
    cell_id: str
    ego: str | None = None
    day: int | None = None
    taken_mono_ns: int
    memory: MeterFigure
    """Bytes in use now: proportional set size of its processes, or memory of its control group."""
    memory_peak: MeterFigure
    """Highest value since it started, as recorded by the kernel."""
    disk: MeterFigure
    """Bytes of the files in its data folder, by allocated blocks."""
