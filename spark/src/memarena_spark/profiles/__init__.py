"""Reads node profiles: versioned TOML files with the requirements on a machine for certification.

Times and energy can be compared only between machines of the same profile. A profile that is not of this package can
only have the purpose ``test``, so that no operator certifies by easier requirements.
"""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

from memarena.log.base import Record
from pydantic import Field, ValidationError

from memarena_spark.errors import FileError, SparkError

_Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class MachineDemands(Record):
    """The kind of machine that the profile is for."""

    architectures: Annotated[tuple[str, ...], Field(min_length=1)]
    cpu_count_at_least: Annotated[int, Field(ge=1)]
    memory_gib_at_least: _NotNegative
    gpu: str | None = None
    """Name of the GPU as NVML gives it; None: none is needed, and none is looked at."""


class Limits(Record):
    """Limits of free memory and disk, load, temperature and clocks. None: recorded if it can be read, not judged."""

    available_memory_gib: _NotNegative
    free_disk_gib: _NotNegative
    swap_used_mib: _NotNegative | None = None
    cpu_busy_percent: _Positive | None = None
    temperature_c: _Positive | None = None
    max_sm_clock_mhz: _Positive | None = None
    """Least value of the GPU's highest SM clock, by which a lowered clock limit is detected."""
    governors: tuple[str, ...] | None = None


class Demands(Record):
    """Conditions that hold or do not."""

    clock_sync: bool
    mains_power: bool
    gpu_alone: bool
    """No process on the GPU but those that the plan names."""
    no_slowdown: bool
    pinned_versions: bool
    """The plan must pin driver and kernel."""
    reader_server: bool
    """The plan must name the model server, whose flags are read back; every reader must be this server."""
    embedder: bool
    """The plan must name the embedding server, which is checked after the model server has loaded."""
    warm_up: Annotated[int, Field(ge=0)]
    """Least number of requests to each reader before anything is timed."""
    protocol: Literal["interleaved", "end_of_horizon"] | None = None
    """The only protocol whose times are certified; None: either."""
    golden_prompt_tokens: bool
    """Every reader's chat template must be compared with golden token counts."""
    real_reader: bool
    """A reader without a model certifies nothing."""
    containers: bool = False
    """Every backend must run as a container, started by the run or reached at an address and known by its image."""
    signature: bool
    """A bundle must be signed."""


class Thermal(Record):
    """When a machine's temperature counts as stable (below 0.5 °C a minute)."""

    required: bool
    """Whether temperatures must be readable."""
    slope_c_per_min: _Positive
    window_s: _Positive
    every_s: _Positive
    wait_s: _Positive
    """Longest wait for a stable temperature."""


class CanarySettings(Record):
    """The compute canary (a fixed matrix multiplication), and the limits that its speed must keep."""

    device: Literal["cpu", "cuda"]
    dtype: Literal["float32", "bfloat16"]
    size: Annotated[int, Field(ge=64, le=32768)]
    seconds: _Positive
    tflops_at_least: _NotNegative
    """Least TFLOP/s: below it, something is broken on any node of this profile."""
    clock_mhz_at_least: _Positive | None = None
    """Least clock while the device multiplies. None: recorded, not judged."""
    golden_required: bool
    """Whether the plan must give this node's golden values."""
    golden_share: Annotated[float, Field(gt=0, le=1)]
    """Share of the golden TFLOP/s and of the golden clock that must be reached."""
    drift_percent: _Positive | None = None
    """Greatest difference of the canary after the run from that before, in percent. None: recorded, not judged."""


class AuditFloors(Record):
    """Least shares of greedy answers (temperature 0) that must be the same when an audit asks again."""

    same_outcome: Annotated[float, Field(gt=0, le=1)]
    """Share of questions that are right both times, or wrong both times."""
    same_answer: Annotated[float, Field(gt=0, le=1)]
    """Share of answers that are equal word for word."""


class NodeProfile(Record):
    """A kind of node. ``purpose`` is written into every bundle: only ``certification`` certifies times and energy."""

    schema_version: Literal[1] = Field(alias="schema")
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
    version: Annotated[int, Field(ge=1)]
    purpose: Literal["certification", "development", "test"]
    description: str
    machine: MachineDemands
    limits: Limits
    demands: Demands
    thermal: Thermal
    canary: CanarySettings
    idle_s: _NotNegative
    """Seconds of rest with models resident before and after the run; below 120 s there is no net energy."""
    least_samples: Annotated[int, Field(ge=1)]
    """Timed answers that every row needs: 11 for p50, 64 for p90, 130 for p95."""
    required_energy: tuple[str, ...] = ()
    """Rails whose gross energy must be a value (``gpu_rail_j``, ``sys_j``)."""
    audit: AuditFloors


def known_profiles() -> list[str]:
    """Return the names of the profiles that this package contains."""
    return sorted(p.name.partition(".")[0] for p in files(__package__).iterdir() if p.name.endswith(".toml"))


def profile_text(name_or_path: str, folder: Path = Path()) -> str:
    """Return the text of a profile: of this package's by name, else of the file at that path (relative to ``folder``).

    Raises :class:`~memarena_spark.errors.SparkError` if there is none, or it cannot be read.
    """
    own_files = [p for p in files(__package__).iterdir() if p.name.endswith(".toml")]
    newest = max((p for p in own_files if p.name.partition(".")[0] == name_or_path), key=lambda p: p.name, default=None)
    if newest is not None:
        return newest.read_text(encoding="utf-8")
    path = folder / name_or_path
    if not name_or_path.endswith(".toml"):
        raise SparkError(f"profile {name_or_path}: expected {', '.join(known_profiles())} or the path of a .toml file")
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SparkError(f"profile {path}: cannot be read: {error}") from error


def parse_profile(text: str, source: str) -> NodeProfile:
    """Parse a profile. Raises :class:`~memarena_spark.errors.SparkError` naming file and field."""
    try:
        return NodeProfile.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise FileError(source, f"not valid TOML: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise FileError(source, f"{field}: {first['msg']}") from error


def is_ours(text: str) -> bool:
    """Whether a profile's text equals, byte for byte, that of a profile of this package."""
    return any(p.read_text(encoding="utf-8") == text for p in files(__package__).iterdir() if p.name.endswith(".toml"))
