"""Evaluates judges for ``memarena judge``: calibration on synthetic answers, agreement with human labels."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path

import typer
from memarena_dataset.io.reading import open_dataset
from memarena_dataset.printing import write_err, write_out
from memarena_dataset.programs import EXIT_INCOMPLETE
from rich.console import Console
from rich.table import Table

from memarena import judging
from memarena.cli.judge_progress import JudgeProgress
from memarena.evaluation import draw_sample_of, labels_of_judge
from memarena.execution.planning.questions import evidence_texts, plan_questions
from memarena.judging.calibration import (
    LabelRates,
    Phrasings,
    Rates,
    SyntheticAnswer,
    agreement,
    by_text_judge,
    by_value_judge,
    grouped,
    label_rates,
    labels_by_rules,
    make_answers,
    make_framed,
    phrasings_sha256,
    rates,
    synthetic_behaviours,
)
from memarena.judging.calibration.framed_golds import MAX_QUESTIONS_PER_FAMILY
from memarena.judging.human.labels import TrackAgreement, agreements, blank_labels, read_labels, read_sample
from memarena.judging.llm import AskedJudge, JudgeWords, ModelJudge, UnloggedAnswer, ask_about
from memarena.log.records import EvidenceSession, Question
from memarena.log.store import read_records
from memarena.report.tables.calibration import CalibratedJudge, Calibration, Kappa, LabelErrors, SyntheticRates

FORMATS = ("table", "json")
PHRASINGS: tuple[Phrasings, ...] = ("held_out",)
LEAST_ANSWERS = 300
"""Right answers, and as many wrong ones, to make for each family if only rules judge."""
FRAMED_FOR_MODELS = 40
"""Questions of a family whose gold is put into two frames each, if a model judges, since each answer is a call."""


@dataclass(frozen=True)
class Source:
    """Questions with their evidence sessions by id, from a run's log or from data sets."""

    questions: tuple[Question, ...]
    evidence: Mapping[str, EvidenceSession]


def questions_of(run: Path | None, datasets: Sequence[Path]) -> Source:
    """Read questions for synthetic answers. Raises JudgeError unless either a run or data sets are given."""
    if (run is None) == (not datasets):
        raise judging.JudgeError("--calibrate: expected either a RUN or --dataset DIR (repeatable)")
    questions: list[Question] = []
    evidence: dict[str, EvidenceSession] = {}
    if run is not None:
        for record in read_records(run, "question", "evidence"):
            if record.kind == "question":
                questions.append(record)
            elif record.kind == "evidence":
                evidence[record.session.session_id] = record.session
        return Source(tuple(questions), evidence)
    with ExitStack() as stack:
        for path in datasets:
            dataset = stack.enter_context(open_dataset(path))
            planned = plan_questions(dataset, dataset.instances, "interleaved", 0)
            questions += planned
            evidence |= {e.session.session_id: e.session for e in evidence_texts(dataset, planned)}
    return Source(tuple(questions), evidence)


def calibrate(source: Source, phrasings: str, seed: int, output: str, candidate: AskedJudge | None) -> None:
    """Print the error rates of judges by family and kind, κ between judges, and errors of their labels in D6.

    A candidate judges every answer, those to the abstain half, D1 and D6 too, and labels behaviour. Exits with code 3
    if it left answers unjudged.
    """
    _check(output, phrasings)
    chosen = next(p for p in PHRASINGS if p == phrasings)
    # Each answer is a call of a judge with a model: there it is a few of each kind per question.
    min_answers = LEAST_ANSWERS if candidate is None else 0
    max_framed, frames = (MAX_QUESTIONS_PER_FAMILY, None) if candidate is None else (FRAMED_FOR_MODELS, 2)
    synthetic = [
        *make_answers(source.questions, source.evidence, chosen, seed, min_answers=min_answers),
        *make_framed(source.questions, source.evidence, seed, max_framed, frames),
    ]
    if not synthetic:
        raise judging.JudgeError("--calibrate: no question but those that a rubric decides: no answer can be made")
    by_rules: list[bool | None] = [by_value_judge(p) for p in synthetic]
    verdicts = {judging.JUDGE_NAME: by_rules, "text": [by_text_judge(p) for p in synthetic]}
    behaviours = list(synthetic_behaviours(source.questions, seed, per_label=2 if candidate is None else 1))
    labels = {judging.JUDGE_NAME: label_rates(behaviours, labels_by_rules(behaviours))}
    words = None
    if candidate is not None:
        asked = [UnloggedAnswer(p.question, p.evidence, p.answer, p.answer) for p in synthetic]
        asked += [UnloggedAnswer(p.question, (), p.answer, p.answer) for p in behaviours]
        words = ask_about(asked, candidate, JudgeProgress())
        verdicts[candidate.judge.name] = words.correct[: len(synthetic)]
        model_labels = [words.label(index) for index in range(len(synthetic), len(asked))]
        labels[candidate.judge.name] = label_rates(behaviours, model_labels)
    if output == "json":
        judges = _judges(candidate, words)
        calibration = _calibration(synthetic, verdicts, labels, chosen, seed, judges)
        write_out(json.dumps(calibration.model_dump(mode="json"), indent=2) + "\n")
    else:
        _print_calibration(synthetic, verdicts, labels, f"phrasings {phrasings}, seed {seed}, {len(synthetic)} answers")
    if candidate is not None and words is not None:
        say_what_it_took(candidate.judge, words)
        if words.unjudged:
            raise typer.Exit(EXIT_INCOMPLETE)


def calibration_summary(source: Source, seed: int = 0) -> str:
    """Return one line on the rules' error rates on synthetic answers made from golds."""
    synthetic = list(make_framed(source.questions, source.evidence, seed))
    if not synthetic:
        return "calibration: no question but those that a rubric decides"
    verdicts = [by_value_judge(p) for p in synthetic]
    total, kinds = rates(synthetic, verdicts), grouped(synthetic, verdicts, _kind)
    shares = {
        kind: kind_rates.false_reject_rate or kind_rates.false_accept_rate or 0.0 for kind, kind_rates in kinds.items()
    }
    worst = max(shares, key=lambda kind: shares[kind])
    worst_in = f"; most often of {worst!r} ({_percent(shares[worst])})" if shares[worst] else ""
    return (
        f"calibration: the judge {judging.JUDGE_NAME} ({judging.value_judge_version()[:12]}) calls "
        f"{total.false_rejects:,} of {total.right:,} right answers wrong ({_percent(total.false_reject_rate)}) and "
        f"{total.false_accepts:,} of {total.wrong:,} wrong ones right ({_percent(total.false_accept_rate)}){worst_in}; "
        "`memarena judge --calibrate` has all kinds"
    )


def _print_calibration(
    synthetic: Sequence[SyntheticAnswer],
    verdicts: Mapping[str, Sequence[bool | None]],
    labels: Mapping[str, Mapping[str, LabelRates]],
    made_of: str,
) -> None:
    console = _console()
    console.print(_table("Synthetic answers by family", synthetic, verdicts, _family))
    console.print(_table("Synthetic answers by kind", synthetic, verdicts, _kind))
    for name, label_rates_ in labels.items():
        console.print(_labels_table(name, label_rates_))
    for first, second in combinations(verdicts, 2):
        console.print(f"κ {first} with {second}: {_number(agreement(verdicts[first], verdicts[second]))}")
    console.print(
        f"{made_of}; FA: wrong answers taken for right; FR: right answers taken for wrong; "
        "a judge's answers without a usable reply count in neither"
    )


def _console() -> Console:
    """Return a console for standard output, 120 columns wide if it is not a terminal, to fit names of judges."""
    console = Console()
    return console if console.is_terminal else Console(width=120)


def say_what_it_took(judge: ModelJudge, words: JudgeWords) -> None:
    """Print cost and missing verdicts to standard error, since standard output may be JSON."""
    cost = "" if words.usd is None else f", ${words.usd:.4f}"
    write_err(f"{judge.name}: {words.prompt_tokens} + {words.completion_tokens} tokens{cost}\n")
    if words.unjudged:
        causes = [f"{cause} {count}" for cause, count in sorted(words.failed.items())]
        reasons = "; ".join(part for part in (", ".join(causes), words.stopped) if part)
        write_err(f"{judge.name} left {words.unjudged} of {len(words.correct)} answers unjudged: {reasons}\n")


def _family(answer: SyntheticAnswer) -> str:
    return answer.question.instance.family.value


def _kind(answer: SyntheticAnswer) -> str:
    return f"{'right' if answer.right else 'wrong'}: {answer.kind}"


def _table(
    title: str,
    synthetic: Sequence[SyntheticAnswer],
    verdicts: Mapping[str, Sequence[bool | None]],
    key: Callable[[SyntheticAnswer], str],
) -> Table:
    """Return a table of false rejects (FR) and false accepts (FA) of each judge; ``key`` groups the answers."""
    table = Table(title=title)
    for column in ("", "right", "wrong"):
        table.add_column(column, justify="right" if column else "left", no_wrap=True)
    for name in verdicts:
        table.add_column(f"{name} FR", justify="right")
        table.add_column(f"{name} FA", justify="right")
    by_judge = {name: grouped(synthetic, words, key) for name, words in verdicts.items()}
    for group, counts in grouped(synthetic, [p.right for p in synthetic], key).items():
        cells = [group, str(counts.right), str(counts.wrong)]
        for name in verdicts:
            cells += [
                _percent(by_judge[name][group].false_reject_rate),
                _percent(by_judge[name][group].false_accept_rate),
            ]
        table.add_row(*cells)
    return table


def _labels_table(judge: str, labels: Mapping[str, LabelRates]) -> Table:
    table = Table("D6 label", "synthetic", "others", "missed", "falsely given", title=f"Labels of D6 by {judge}")
    for label, r in labels.items():
        table.add_row(label, str(r.synthetic), str(r.others), _percent(r.missed_rate), _percent(r.false_rate))
    return table


def _percent(share: float | None) -> str:
    return "n/a" if share is None else f"{100 * share:.1f}%"


def _number(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.3f}"


def _judges(candidate: AskedJudge | None, words: JudgeWords | None) -> list[CalibratedJudge]:
    judges = [
        CalibratedJudge(name=judging.JUDGE_NAME, version=judging.value_judge_version()),
        CalibratedJudge(name="text", version=""),
    ]
    if candidate is not None and words is not None:
        judge = candidate.judge
        judges.append(
            CalibratedJudge(
                name=judge.name,
                version=judge.version,
                model=judge.model,
                temperature=judge.temperature,
                seed=judge.seed,
                failures=dict(sorted(words.failed.items())),
                unjudged=words.unjudged,
                stopped=words.stopped,
                prompt_tokens=words.prompt_tokens,
                completion_tokens=words.completion_tokens,
                usd=words.usd,
            )
        )
    return judges


def _calibration(
    synthetic: Sequence[SyntheticAnswer],
    verdicts: Mapping[str, Sequence[bool | None]],
    labels: Mapping[str, Mapping[str, LabelRates]],
    phrasings: Phrasings,
    seed: int,
    judges: Sequence[CalibratedJudge],
) -> Calibration:
    def shown(rates: Rates) -> SyntheticRates:
        shares = {"false_reject_rate": rates.false_reject_rate, "false_accept_rate": rates.false_accept_rate}
        return SyntheticRates.model_validate({**asdict(rates), **shares})

    def by(key: Callable[[SyntheticAnswer], str]) -> dict[str, dict[str, SyntheticRates]]:
        return {name: {k: shown(r) for k, r in grouped(synthetic, verdicts[name], key).items()} for name in verdicts}

    def by_label(judge: str) -> dict[str, LabelErrors]:
        return {
            k: LabelErrors.model_validate({**asdict(r), "missed_rate": r.missed_rate, "false_rate": r.false_rate})
            for k, r in labels[judge].items()
        }

    return Calibration(
        phrasings=phrasings,
        seed=seed,
        answers=len(synthetic),
        phrasings_sha256=phrasings_sha256(phrasings),
        value_judge_version=judging.value_judge_version(),
        judges=tuple(judges),
        by_family=by(_family),
        by_kind=by(_kind),
        behaviour_labels=by_label(judging.JUDGE_NAME),
        behaviour_labels_by_model={name: by_label(name) for name in labels if name != judging.JUDGE_NAME},
        kappa=tuple(
            Kappa(one=a, two=b, kappa=agreement(verdicts[a], verdicts[b])) for a, b in combinations(verdicts, 2)
        ),
    )


def _check(output: str, phrasings: str) -> None:
    if output not in FORMATS:
        raise judging.JudgeError(f"--format {output}: expected one of {', '.join(FORMATS)}")
    if phrasings not in PHRASINGS:
        raise judging.JudgeError(f"--phrasings {phrasings}: expected one of {', '.join(PHRASINGS)}")


# ------------------------------------------------------------------ people


def write_sample(run: Path, out: Path, judge: str, seed: int) -> None:
    """Draw a sample and write it, with a file of blank labels. Raises JudgeError if a file exists."""
    labels_out = out.with_name("labels.json" if out.name == "sample.json" else f"{out.stem}.labels.json")
    for path in (out, labels_out):
        if path.exists():
            raise judging.JudgeError(f"--sample {path}: this file exists already; expected a new one")
    sample = draw_sample_of(run, judge, seed)
    for path, content in ((out, sample), (labels_out, blank_labels(sample))):
        try:
            path.write_text(content.model_dump_json(indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            raise judging.JudgeError(f"--sample {path}: cannot be written: {error.strerror}") from error
    binary = sum(i.track == "binary" for i in sample.items)
    write_out(f"{out}: {binary} open answers, {len(sample.items) - binary} of D6; to be labelled in {labels_out}\n")


def read_people(run: Path, sample_path: Path, paths: Sequence[Path], judge: str, output: str) -> None:
    """Print the agreement of annotators with each other and with a judge."""
    if output not in FORMATS:
        raise judging.JudgeError(f"--format {output}: expected one of {', '.join(FORMATS)}")
    sample = read_sample(sample_path)
    sample.check_run(run, f"--of {sample_path}")
    people = read_labels(paths, sample)
    tracks = agreements(sample, people, judge, labels_of_judge(run, sample, judge))
    if output == "json":
        write_out(json.dumps([asdict(t) for t in tracks], indent=2) + "\n")
        return
    console = _console()
    for track in tracks:
        console.print(_people_table(track))
        if len(track.dimensions) > 1:
            console.print(_dimensions_table(track))
        console.print(f"Fleiss' κ {_number(track.fleiss)} over {track.fleiss_items} items that all labelled; ")
        if track.majority_with_judge is None:
            console.print("no majority: it takes three annotators")
        else:
            console.print(
                f"{track.majority_items} items with a majority; left out: {track.without_majority} on which three or "
                f"more did not agree, {track.too_few_labels} with fewer than three labels"
            )


def _dimensions_table(track: TrackAgreement) -> Table:
    table = Table(
        "", "items", "pair", "of them", "agree", "Cohen's κ", "Fleiss' κ", title="Right or wrong by dimension"
    )
    for part in track.dimensions:
        part_agreement = part.agreement
        pairs = [part_agreement.majority_with_judge] if part_agreement.majority_with_judge else part_agreement.pairs
        for pair in pairs:
            names = f"{pair.one} with {pair.two}"
            shown = (str(pair.items), _percent(pair.agree), _number(pair.kappa), _number(part_agreement.fleiss))
            table.add_row(part.dimension, str(part_agreement.items), names, *shown)
    return table


def _people_table(track: TrackAgreement) -> Table:
    table = Table(
        "", "items", "agree", "Cohen's κ", title="Right or wrong" if track.track == "binary" else "D6 behaviour"
    )
    pairs = (*track.pairs, *([track.majority_with_judge] if track.majority_with_judge else []))
    for pair in pairs:
        table.add_row(f"{pair.one} with {pair.two}", str(pair.items), _percent(pair.agree), _number(pair.kappa))
    return table
