"""Meter records of a run: which meters there are, when each phase was, its energy, the backends' memory."""

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
        """A figure that can be published. ``unit``: W, J, %, B or s."""
        return cls(status="value", value=value, unit=unit)

    @classmethod
    def void(cls, reason: str) -> Self:
        """A figure that was to be measured and cannot be published."""
        return cls(status="void", reason=reason)

    @classmethod
    def unavailable(cls, reason: str) -> Self:
        """A figure that this machine does not give."""
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
    """As they were asked for: ``nvml``, ``hwmon``, ``procfs``, ``replay:FILE``, …"""
    samples_file: str
    """Path within the run's folder; empty where there is nothing to sample."""
    period_ns: int
    system_channel: str
    """The rail that feeds the whole machine, where one was named or is known as ``sys_power``."""
    channels: tuple[MeterChannel, ...]
    """What is sampled, and what this machine does not give, each with its reason."""


class CpuLoad(Record):
    """How busy the CPUs of the machine were during a cell, percent of all of them."""

    busy: MeterFigure
    """By whatever process."""
    others: MeterFigure
    """By processes that the run did not start; unavailable where these cannot be told from a server that it asked."""


class PhaseEnded(Record):
    """A phase is over. ``pieces`` are its spans of CLOCK_MONOTONIC in ns: days and questions may alternate."""

    kind: Literal["phase"] = "phase"
    phase: PhaseName
    cell_id: str | None = None
    samples_file: str
    pieces: tuple[tuple[int, int], ...]
    queries: int | None = None
    """Questions asked in it; None where it asks none."""
    load: CpuLoad | None = None
    """Of a whole cell; None for other phases, and in logs of before."""


class RailMeasured(Record):
    """The energy of one power channel in a phase: ``gpu_rail_j`` is the GPU alone, ``sys_j`` the whole machine."""

    name: str
    """``gpu_rail_j``, ``sys_j``, or the rail's own name with ``rail_j``."""
    gross_j: MeterFigure
    mean_power_w: MeterFigure
    counter_difference_percent: MeterFigure
    """The integral against the device's own energy counter; above 3% everything else is void."""
    idle_w: MeterFigure
    """Mean power over both idle windows."""
    idle_j: MeterFigure
    """What the node at rest would have used in the same time."""
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
    """Seconds of CPU over all cores of the machine, whoever used them."""
    channels: tuple[ChannelMeasured, ...] = ()
    load: CpuLoad | None = None
    """As the run noted it when the phase was over."""


class SearchesTimed(Record):
    """Searches timed separately from questions, after this many days of history."""

    kind: Literal["searches_timed"] = "searches_timed"
    cell_id: str
    ego: str
    namespace: str
    day: int
    """The last day that is in the memory."""
    queries: int
    """Different questions among the searches."""
    search_ns: tuple[int, ...]
    """Request sent to response received, in the order asked."""
    failures: dict[str, int]
    """Searches that failed, by code."""


class DeletionProbed(Record):
    """One Forget after the last question of an ego, with what was looked for before and afterwards."""

    kind: Literal["deletion_probed"] = "deletion_probed"
    cell_id: str
    ego: str
    namespace: str
    day: int
    target: Literal["session", "subject", "fact"]
    code: str
    """gRPC status name of Forget, ``OK`` included; after another nothing was looked for again."""
    message: str = ""
    turns: int
    """Turns of the target that were looked for."""
    found_before: int
    """Of these, found by Search before."""
    found_again: int
    """Of these, found by Search afterwards."""
    answered_again: int | None = None
    """Of ``found_before``, among what an Answer was read from afterwards; None where the backend has no Answer."""
    controls: int
    """Turns of other sessions that were found before."""
    controls_lost: int
    """Of these, not found afterwards."""


class FootprintTaken(Record):  # words: a name of the file format
    """Memory and disk of a backend after a day came in, or at the end of a cell (``day`` None)."""

    kind: Literal["footprint"] = "footprint"
    cell_id: str
    ego: str | None = None
    day: int | None = None
    taken_mono_ns: int
    memory: MeterFigure
    """Bytes in use now: proportional set size of its processes, or its control group's."""
    memory_peak: MeterFigure
    """Highest so far since it started, as the kernel notes it."""
    disk: MeterFigure
    """Bytes of the files in its data folder, by allocated blocks."""
