"""Which flags of ``memarena judge`` go with which of its tasks: one that would do nothing is refused, not ignored."""

from __future__ import annotations

from collections.abc import Mapping

import typer

from memarena import judging

_MODEL = "--endpoint"
_NEEDS: Mapping[str, tuple[str, ...]] = {
    "--model": (_MODEL,),
    "--api-key-env": (_MODEL,),
    "--concurrency": (_MODEL,),
    "--temperature": (_MODEL,),
    "--model-seed": (_MODEL,),
    "--tries": (_MODEL,),
    "--timeout-s": (_MODEL,),
    "--longest-wait-s": (_MODEL,),
    "--budget-usd": (_MODEL,),
    "--max-tokens": (_MODEL,),
    "--usd-per-mtok-in": (_MODEL,),
    "--usd-per-mtok-out": (_MODEL,),
    "--repeat": (_MODEL,),
    "--buckets": (_MODEL,),
    "--dataset": ("--calibrate", "--answers"),
    "--phrasings": ("--calibrate",),
    "--of": ("--labels",),
    "--seed": ("--calibrate", "--sample"),
    "--format": ("--calibrate", "--labels", "--answers"),
    "--answers": ("--dataset",),
}
"""What has to stand beside a flag, one of several."""
_NOT_WITH: Mapping[str, tuple[str, ...]] = {
    "--calibrate": ("--sample", "--labels", "--repeat", "--buckets"),
    "--sample": ("--labels", _MODEL),
    "--labels": (_MODEL,),
    "--answers": ("--calibrate", "--sample", "--labels", "--repeat", "--buckets"),
}
"""What has nothing to do beside a flag."""
_PARAMETERS: Mapping[str, str] = {"name": "--judge", "calibrating": "--calibrate", "output": "--format"}


def check_flags(context: typer.Context) -> None:
    """Raise JudgeError, naming the flag, for one that was typed and would have no effect."""
    given = [_flag(name) for name in context.params if name != "run" and _typed(context, name)]
    for flag in given:
        needed = _NEEDS.get(flag, ())
        if needed and not set(needed) & set(given):
            raise judging.JudgeError(f"{flag}: expected {' or '.join(needed)} beside it")
        barred = [other for other in _NOT_WITH.get(flag, ()) if other in given]
        if barred and flag in ("--calibrate", "--sample") and barred[0] in ("--sample", "--labels"):
            raise judging.JudgeError("--calibrate, --sample, --labels: expected one of them at a time")
        if barred:
            raise judging.JudgeError(f"{barred[0]}: does nothing beside {flag}; leave it out")
    for flag in ("--calibrate", "--answers"):
        if flag in given and "--judge" in given and _MODEL not in given:
            raise judging.JudgeError(
                f"--judge: with {flag} expected {_MODEL} too; the judge without a model needs no name"
            )


def _typed(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name not in ("DEFAULT", "DEFAULT_MAP")


def _flag(name: str) -> str:
    return _PARAMETERS.get(name, f"--{name.replace('_', '-')}")
