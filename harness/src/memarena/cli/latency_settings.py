"""From the flags of ``memarena latency`` and a configuration file to what its runs do."""

from __future__ import annotations

from pathlib import Path

from memarena.cli.run_config import settled
from memarena.cli.run_flags import RunFlags
from memarena.cli.setting_flags import FlagValues
from memarena.configs import read_file
from memarena.execution.planning.config import RunConfig
from memarena.latency.errors import LatencyError
from memarena.latency.study import IDLE_S, PHASE1, SET_BY_THE_STUDY, WARM_UP
from memarena.log.records import NamedConfiguration


def study_settings(flags: FlagValues, file: Path | None) -> tuple[RunConfig, NamedConfiguration | None]:
    """What phase 1 of a study does: flags win over the file, and both over the study's own defaults.

    Raises :class:`LatencyError` for a file that sets what the study decides by itself, RunError naming file and field,
    or the flag, for any value that cannot be.
    """
    in_file = {} if file is None else read_file(file).run
    for name in SET_BY_THE_STUDY:
        if name in in_file:
            raise LatencyError(f"--config {file}: {name}: set by the study itself ({SET_BY_THE_STUDY[name]})")
    defaults = {"backend": ",".join(PHASE1), "idle_s": IDLE_S, "warm_up": WARM_UP}
    own = {name: value for name, value in defaults.items() if name not in in_file}
    config, configuration = settled(RunFlags(name=None if file is None else str(file), settings={**own, **flags}))
    if config is None:
        raise LatencyError("memarena latency run: nothing was asked for")
    return config, configuration
