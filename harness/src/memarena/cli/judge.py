"""``memarena judge``: judges a run, calibrates judges, draws samples for people and reads their labels."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from memarena_dataset.printing import write_err, write_out
from memarena_dataset.programs import EXIT_INCOMPLETE
from memarena_dataset.text_golds import text_gold_warning

from memarena import judging
from memarena.cli import judge_trust
from memarena.cli.judge_answers import judge_answers
from memarena.cli.judge_progress import JudgeProgress
from memarena.evaluation import judge_run
from memarena.judging.llm import AskedJudge, Batch, Budget, Judged, ModelJudge, Patience, Prices, judge_with_model
from memarena.log.store import read_records

DEFAULT_MODEL = "openai/gpt-4o-mini-2024-07-18"
"""The judge of published figures."""


EndpointOption = Annotated[
    str | None, typer.Option(help="A judge with a model: URL of an OpenAI-compatible API, for example https://…/v1.")
]


def judge(
    context: typer.Context,
    run: Annotated[Path | None, typer.Argument(metavar="[RUN]", help="Folder of a run.")] = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--judge", help="Name of the judge: `value` needs no model; with --endpoint a name of your choice."
        ),
    ] = None,
    endpoint: EndpointOption = None,
    model: Annotated[str, typer.Option(help="Model behind --endpoint.")] = DEFAULT_MODEL,
    api_key_env: Annotated[str | None, typer.Option(help="Environment variable that holds the API key.")] = None,
    concurrency: Annotated[int, typer.Option(min=1, max=1024, help="Calls side by side.")] = 32,
    repeat: Annotated[int, typer.Option(min=1, max=100, help="Verdicts per answer; more than one shows variance.")] = 1,
    temperature: Annotated[float, typer.Option(min=0, max=2, help="Of the judge's model.")] = 0.0,
    model_seed: Annotated[int, typer.Option(help="Sent to the model; -1 sends none.")] = 0,
    buckets: Annotated[bool, typer.Option(help="Also ask on what ground protected facts were kept.")] = True,
    tries: Annotated[int, typer.Option(min=1, max=50, help="Calls per answer before it is given up.")] = 5,
    timeout_s: Annotated[float, typer.Option(min=0.1, help="Seconds to wait for one reply.")] = 60.0,
    longest_wait_s: Annotated[float, typer.Option(min=0, help="Longest pause between two tries.")] = 60.0,
    budget_usd: Annotated[float | None, typer.Option(min=0, help="Stop before this is exceeded; needs prices.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Stop before so many tokens are used.")] = None,
    usd_per_mtok_in: Annotated[float | None, typer.Option(min=0, help="Price of a million prompt tokens.")] = None,
    usd_per_mtok_out: Annotated[float | None, typer.Option(min=0, help="Price of a million reply tokens.")] = None,
    calibrating: Annotated[
        bool, typer.Option("--calibrate", help="Rates of error on synthetic answers; of --endpoint's judge too.")
    ] = False,
    dataset: Annotated[
        list[Path] | None,
        typer.Option(
            help="With --calibrate: a data set to make answers for; repeatable. With --answers: what was asked."
        ),
    ] = None,
    phrasings: Annotated[str, typer.Option(help="With --calibrate: held_out.")] = "held_out",
    answers: Annotated[
        Path | None, typer.Option(help="Judge this file of rows {instance_id, answer} against --dataset.")
    ] = None,
    sample: Annotated[
        Path | None, typer.Option(help="Draw 500 answers for people to judge into this new file (sample.json).")
    ] = None,
    labels: Annotated[
        list[Path] | None, typer.Option(help="Files of labels: agreement of people and judge; repeatable.")
    ] = None,
    of: Annotated[Path | None, typer.Option(help="With --labels: the sample that was labelled.")] = None,
    seed: Annotated[int, typer.Option(help="With --calibrate and --sample: the same seed draws the same.")] = 0,
    output: Annotated[
        str, typer.Option("--format", help="With --calibrate and --labels: table or json; with --answers: also jsonl.")
    ] = "table",
) -> None:
    """Append the verdicts that are missing to a run's log. Calibrate a judge; draw and read human samples.

    A judge says whether an answer is right. The judge `value` follows rules
    and needs no model; report and score compute its verdicts on the way.

    Examples:
      memarena judge runs/first
      memarena judge runs/first --judge mine --endpoint https://HOST/v1
      memarena judge --calibrate --dataset DIR
    """
    check_flags(context)
    budget = _budget(budget_usd, max_tokens, usd_per_mtok_in, usd_per_mtok_out)
    sent_seed = None if model_seed < 0 else model_seed
    patience = Patience(tries=tries, timeout_s=timeout_s, longest_wait_s=longest_wait_s)
    server_judge = None
    if endpoint is not None:
        model_judge = ModelJudge(_judge_name(name, model), model, temperature, sent_seed)
        server_judge = AskedJudge(model_judge, endpoint, _key(api_key_env), concurrency, patience, budget)
    if answers is not None:
        if run is not None:
            raise judging.JudgeError("--answers: expected no RUN with it: the file replaces it")
        judge_answers(answers, dataset or [], output, server_judge)
        return
    if calibrating:
        judge_trust.calibrate(judge_trust.questions_of(run, dataset or []), phrasings, seed, output, server_judge)
        return
    if run is None:
        raise judging.JudgeError("judge: expected the folder of a RUN")
    if sample is not None:
        judge_trust.write_sample(run, sample, name or judging.JUDGE_NAME, seed)
    elif labels:
        _read_people(run, of, labels, name, output)
    elif server_judge is None:
        _judge_by_value(run, name or judging.JUDGE_NAME)
    else:
        _judge_by_model(run, server_judge, repeat, buckets=buckets)


def _read_people(run: Path, of: Path | None, labels: list[Path] | None, name: str | None, output: str) -> None:
    if of is None:
        raise judging.JudgeError("--labels: expected --of SAMPLE.json with it")
    judge_trust.read_people(run, of, labels or [], name or judging.JUDGE_NAME, output)


def _judge_by_model(run: Path, server_judge: AskedJudge, repeats: int, *, buckets: bool) -> None:
    batch = Batch(
        run_dir=run,
        judge=server_judge.judge,
        url=server_judge.url,
        api_key=server_judge.api_key,
        concurrency=server_judge.concurrency,
        repeats=repeats,
        buckets=buckets,
        patience=server_judge.patience,
        budget=server_judge.budget,
    )
    _say(batch.judge, judge_with_model(batch, JudgeProgress()))


def _judge_by_value(run: Path, name: str) -> None:
    """Append the missing verdicts of the judge without a model."""
    if name != judging.JUDGE_NAME:
        raise judging.JudgeError(
            f"--judge {name}: unknown judge; without a model there is: {judging.JUDGE_NAME}; "
            "a judge with a model needs --endpoint"
        )
    count = judge_run(run)
    golds = (question.instance.gold for question in read_records(run, "question") if question.kind == "question")
    if warning := text_gold_warning(golds):
        write_err(f"warning: {warning}\n")
    version = judging.value_judge_version()[:12]
    write_out(f"{count} verdicts appended by judge {name} ({version})\n")


def _judge_name(name: str | None, model: str) -> str:
    judge_name = name or model.rsplit("/", 1)[-1]
    if judge_name == judging.JUDGE_NAME:
        raise judging.JudgeError(f"--judge {judge_name}: that is the judge without a model; choose another name")
    return judge_name


def _key(variable: str | None) -> str | None:
    if variable is None:
        return None
    if not os.environ.get(variable):
        raise judging.JudgeError(f"--api-key-env {variable}: no such environment variable, or it is empty")
    return os.environ[variable]


def _budget(usd: float | None, tokens: int | None, price_in: float | None, price_out: float | None) -> Budget:
    if (price_in is None) != (price_out is None):
        raise judging.JudgeError("--usd-per-mtok-in, --usd-per-mtok-out: expected both prices or none")
    prices = None if price_in is None or price_out is None else Prices(price_in, price_out)
    if usd is not None and prices is None:
        raise judging.JudgeError("--budget-usd: expected --usd-per-mtok-in and --usd-per-mtok-out with it")
    return Budget(usd, tokens, prices)


_FAILURES = {
    "timeout": "no answer in time",
    "connection": "its server cannot be reached",
    "rate_limit": "its server asks for fewer calls",
    "server_error": "its server failed",
    "refused": "its server refused the call",
    "malformed": "its reply cannot be read",
}
"""By cause of failure: its explanation in messages."""


def _say(judge: ModelJudge, judged: Judged) -> None:
    """Print the counts and costs of judging; exit with 3 if answers are still to be judged."""
    cost = "" if judged.usd is None else f", ${judged.usd:.4f}"
    write_out(
        f"{judged.verdicts} verdicts and {judged.buckets} grounds appended by judge {judge.name} "
        f"({judge.version[:12]}); {judged.handed_over} of them were decided without its model; "
        f"{judged.prompt_tokens} + {judged.completion_tokens} tokens{cost}\n"
    )
    if judged.failed:
        causes = ", ".join(f"{_FAILURES[cause]}: {count}" for cause, count in sorted(judged.failed.items()))
        write_err(f"the judge gave no verdict on {judged.failed.total()} answers ({causes})\n")
    if judged.open_jobs:
        why = f"stopped: {judged.stopped}; " if judged.stopped else ""
        write_err(f"{why}{judged.open_jobs} still to be judged; the same command goes on with them\n")
        raise typer.Exit(EXIT_INCOMPLETE)


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
"""By flag: other flags, of which at least one must be used with it."""
_NOT_WITH: Mapping[str, tuple[str, ...]] = {
    "--calibrate": ("--sample", "--labels", "--repeat", "--buckets"),
    "--sample": ("--labels", _MODEL),
    "--labels": (_MODEL,),
    "--answers": ("--calibrate", "--sample", "--labels", "--repeat", "--buckets"),
}
"""By flag: other flags that must not be used with it."""
_PARAMETERS: Mapping[str, str] = {"name": "--judge", "calibrating": "--calibrate", "output": "--format"}


def check_flags(context: typer.Context) -> None:
    """Raise JudgeError, which names the flag, if a flag was used that would have no effect."""
    used = [_flag(name) for name in context.params if name != "run" and _typed(context, name)]
    for flag in used:
        needed = _NEEDS.get(flag, ())
        if needed and not set(needed) & set(used):
            raise judging.JudgeError(f"{flag}: expected {' or '.join(needed)} with it")
        barred = [other for other in _NOT_WITH.get(flag, ()) if other in used]
        if barred and flag in ("--calibrate", "--sample") and barred[0] in ("--sample", "--labels"):
            raise judging.JudgeError("--calibrate, --sample, --labels: expected one of them at a time")
        if barred:
            raise judging.JudgeError(f"{barred[0]}: does nothing with {flag}; leave it out")
    for flag in ("--calibrate", "--answers"):
        if flag in used and "--judge" in used and _MODEL not in used:
            raise judging.JudgeError(
                f"--judge: with {flag} expected {_MODEL} too; the judge without a model needs no name"
            )


def _typed(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name not in ("DEFAULT", "DEFAULT_MAP")


def _flag(name: str) -> str:
    return _PARAMETERS.get(name, f"--{name.replace('_', '-')}")
