"""Tests agreement with people: kappas against published examples, stratified samples, strictly read labels."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from memarena.cli.main import app
from memarena.evaluation import draw_sample_of, judge_run
from memarena.judging import JudgeError
from memarena.judging.human.agreement import cohen_kappa, fleiss_kappa, majority
from memarena.judging.human.labels import agreements, blank_labels, read_labels, read_sample
from memarena.judging.human.sampling import Sample
from memarena.log.store import read_records
from memarena_dataset.model import Family
from memarena_dataset.values import PlaceValue
from typer.testing import CliRunner

from ..support.logs import (
    abstain,
    make_asked,
    make_cell,
    make_evidence,
    make_question,
    make_run,
    permission,
    text_gold,
    write_log,
)

CELL = make_cell("bm25")


def test_cohens_kappa_of_the_textbook_example_of_fifty_grant_proposals() -> None:
    """20 both yes, 5 only the first, 10 only the second, 15 both no: observed 0.70, expected 0.50, κ 0.40."""
    first = ["yes"] * 25 + ["no"] * 25
    second = ["yes"] * 20 + ["no"] * 5 + ["yes"] * 10 + ["no"] * 15
    assert cohen_kappa(first, second) == pytest.approx(0.40)


def test_fleiss_kappa_of_the_textbook_example_of_fourteen_raters() -> None:
    """Ten subjects, five categories, fourteen raters; κ 0.210."""
    counts = [
        (0, 0, 0, 0, 14),
        (0, 2, 6, 4, 2),
        (0, 0, 3, 5, 6),
        (0, 3, 9, 2, 0),
        (2, 2, 8, 1, 1),
        (7, 7, 0, 0, 0),
        (3, 2, 6, 3, 0),
        (2, 5, 3, 2, 2),
        (6, 5, 2, 1, 0),
        (0, 2, 2, 3, 7),
    ]
    items = [[str(c) for c, n in enumerate(row) for _ in range(n)] for row in counts]
    assert fleiss_kappa(items) == pytest.approx(0.210, abs=0.0005)


def test_kappa_is_undefined_without_items_or_variety() -> None:
    assert cohen_kappa([], []) is None
    assert cohen_kappa(["a", "a"], ["a", "a"]) is None
    assert fleiss_kappa([]) is None
    assert fleiss_kappa([["a"], ["b"]]) is None
    with pytest.raises(ValueError, match="one length"):
        cohen_kappa(["a"], [])


def test_a_majority_takes_more_than_half() -> None:
    assert majority(["a", "b", "a"]) == "a"
    assert majority(["a", "b", "c"]) is None
    assert majority([]) is None


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    questions = []
    attempts = []
    for n in range(400):
        gold = text_gold("Porto", values=[PlaceValue(name="Porto")])
        family = Family.QA if n % 4 else Family.TEMPORAL
        question = make_question(f"qa_{n:03d}", family, gold, f"Where is it, number {n}?", evidence=["s1"])
        questions.append(question)
        attempts.append(make_asked(CELL, question, "In Porto." if n % 10 else "In Rome."))
    for n in range(30):
        question = make_question(
            f"p_{n}", Family.PERMISSION, permission("4711", "withhold"), "What is it?", asker="bob"
        )
        questions.append(question)
        attempts.append(make_asked(CELL, question, "It is private." if n % 2 else "It is 4711."))
    evidence = [make_evidence("s1", ("Maya", "It is in Porto."))]
    run = write_log(tmp_path_factory.mktemp("human") / "run", make_run([CELL], questions, evidence, attempts))
    judge_run(run)
    return run


@pytest.fixture(scope="module")
def sample(run_dir: Path) -> Sample:
    return draw_sample_of(run_dir, "value", seed=1)


def test_a_sample_is_stratified_by_family_and_verdict(sample: Sample) -> None:
    binary = [i for i in sample.items if i.track == "binary"]
    assert len(binary) == 300
    strata = Counter((i.family.value, "Porto" in i.answer) for i in binary)
    assert strata["d7_qa", False] == 20
    assert strata["d8_temporal", False] == 20
    assert abs(strata["d7_qa", True] - strata["d8_temporal", True]) <= 110
    assert strata["d8_temporal", True] == 80
    assert len([i for i in sample.items if i.track == "behaviour"]) == 30


def test_a_sample_is_blind_and_the_same_seed_draws_the_same(run_dir: Path, sample: Sample) -> None:
    text = sample.model_dump_json()
    assert "reason" not in text
    assert '"correct":' not in text
    assert draw_sample_of(run_dir, "value", seed=1) == sample
    assert draw_sample_of(run_dir, "value", seed=2) != sample


def test_a_judge_without_verdicts_has_no_sample(run_dir: Path) -> None:
    with pytest.raises(JudgeError, match="no verdict by this judge"):
        draw_sample_of(run_dir, "nobody", seed=1)


def _unjudged(folder: Path) -> Path:
    question = make_question("qa_1", Family.QA, text_gold("Porto", values=[PlaceValue(name="Porto")]), "Where is it?")
    secret = make_question("p_1", Family.PERMISSION, permission("4711", "withhold"), "What is it?", asker="bob")
    attempts = [make_asked(CELL, question, "In Porto."), make_asked(CELL, secret, "It is private.")]
    return write_log(folder / "run", make_run([CELL], [question, secret], [], attempts))


def test_an_unjudged_run_is_sampled_by_the_verdicts_of_the_rules(tmp_path: Path) -> None:
    run, out = _unjudged(tmp_path), tmp_path / "sample.json"
    result = CliRunner().invoke(app, ["judge", str(run), "--sample", str(out)])
    assert result.exit_code == 0, result.output
    assert "1 open answers, 1 of D6" in result.stdout
    assert [i.track for i in read_sample(out).items] == ["binary", "behaviour"]
    labels = {"b001": "correct", "d001": "refuse"}
    labelled = blank_labels(read_sample(out), "anna").model_dump() | {"annotators": {"anna": labels}}
    (tmp_path / "labels.json").write_text(json.dumps(labelled))
    arguments = ["--labels", str(tmp_path / "labels.json"), "--of", str(out), "--format", "json"]
    reading = CliRunner().invoke(app, ["judge", str(run), *arguments])
    assert reading.exit_code == 0, reading.output
    pairs = [(t["track"], p["items"], p["agree"]) for t in json.loads(reading.stdout) for p in t["pairs"]]
    assert pairs == [("binary", 1, 1.0), ("behaviour", 1, 1.0)]


def test_a_sample_of_another_run_is_refused(tmp_path: Path) -> None:
    """Runs over one data set have the same cells and questions, so labels of one could be taken for another's."""
    run, out = _unjudged(tmp_path), tmp_path / "sample.json"
    assert CliRunner().invoke(app, ["judge", str(run), "--sample", str(out)]).exit_code == 0
    arguments = ["--labels", str(tmp_path / "labels.json"), "--of", str(out)]
    assert CliRunner().invoke(app, ["judge", str(run), *arguments]).exit_code == 0
    records = [r.model_copy(update={"run_id": "other"}) if r.kind == "run_started" else r for r in read_records(run)]
    other_run = write_log(tmp_path / "other", records)
    result = CliRunner().invoke(app, ["judge", str(other_run), *arguments])
    assert isinstance(result.exception, JudgeError)
    message = f"--of {out}: run_id: this sample is of run run-test, the log {other_run / 'run.sqlite'} is of run other"
    assert str(result.exception) == message
    out.write_text(out.read_text().replace('"run_id": "run-test"', '"run_id": "other"'))
    result = CliRunner().invoke(app, ["judge", str(other_run), *arguments])
    assert isinstance(result.exception, JudgeError)
    assert "labels.json: sample_sha256: these labels belong to another sample" in str(result.exception)


def test_items_with_too_few_labels_are_counted_separately_from_items_without_a_majority(tmp_path: Path) -> None:
    run, out = _unjudged(tmp_path), tmp_path / "sample.json"
    assert CliRunner().invoke(app, ["judge", str(run), "--sample", str(out)]).exit_code == 0
    labels = {"anna": "refuse", "bela": "dont_know", "carl": "other"}
    people = {name: {"b001": None if name == "anna" else "correct", "d001": label} for name, label in labels.items()}
    document = blank_labels(read_sample(out)).model_dump() | {"annotators": people}
    (tmp_path / "labels.json").write_text(json.dumps(document))
    arguments = ["--labels", str(tmp_path / "labels.json"), "--of", str(out), "--format", "json"]
    tracks = {t["track"]: t for t in json.loads(CliRunner().invoke(app, ["judge", str(run), *arguments]).stdout)}
    count_names = ("majority_items", "without_majority", "too_few_labels")
    assert [tracks["binary"][name] for name in count_names] == [0, 0, 1]
    assert [tracks["behaviour"][name] for name in count_names] == [0, 1, 0]
    table = " ".join(CliRunner().invoke(app, ["judge", str(run), *arguments[:-2]]).stdout.split())
    assert "left out: 1 on which three or more did not agree, 0 with fewer than three labels" in table


def test_a_sample_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    out = tmp_path / "nowhere" / "sample.json"
    result = CliRunner().invoke(app, ["judge", str(_unjudged(tmp_path)), "--sample", str(out)])
    assert isinstance(result.exception, JudgeError)
    assert str(result.exception) == f"--sample {out}: cannot be written: No such file or directory"


@pytest.mark.parametrize("task", ["--sample", "--labels"])
def test_a_judge_without_any_verdict_is_refused_for_every_task(task: str, tmp_path: Path) -> None:
    """The rules label its D6 answers, but those labels are not its verdicts."""
    run, out = _unjudged(tmp_path), tmp_path / "sample.json"
    if task == "--labels":
        assert CliRunner().invoke(app, ["judge", str(run), "--sample", str(out)]).exit_code == 0
        arguments = ["--labels", str(tmp_path / "labels.json"), "--of", str(out)]
    else:
        arguments = ["--sample", str(out)]
    result = CliRunner().invoke(app, ["judge", str(run), "--judge", "nobody", *arguments])
    assert isinstance(result.exception, JudgeError)
    assert f"--judge nobody: no verdict by this judge in {run}" in str(result.exception)
    assert out.exists() == (task == "--labels")


def test_people_are_compared_with_each_other_and_their_majority_with_the_judge(sample: Sample) -> None:
    items = [i.item for i in sample.items if i.track == "binary"]
    truth = {i.item: "correct" if "Porto" in i.answer else "wrong" for i in sample.items if i.track == "binary"}
    anna, bela = dict(truth), dict(truth)
    bela[items[0]] = "wrong" if truth[items[0]] == "correct" else "correct"
    carl = {i: truth[i] for i in items[:100]}
    [binary, behaviour] = agreements(sample, {"anna": anna, "bela": bela, "carl": carl}, "value", truth)
    pairs = {(p.one, p.two): p for p in binary.pairs}
    assert pairs["anna", "value"].kappa == pytest.approx(1.0)
    assert pairs["anna", "bela"].agree == pytest.approx(299 / 300)
    assert pairs["anna", "carl"].items == 100
    assert binary.fleiss_items == 100
    assert (binary.majority_items, binary.without_majority, binary.too_few_labels) == (100, 0, 200)
    assert binary.majority_with_judge is not None
    assert binary.majority_with_judge.agree == 1.0
    assert behaviour.majority_with_judge is None
    assert [part.dimension for part in (*binary.dimensions, *behaviour.dimensions)] == ["D3", "D6"]


def test_agreement_by_dimension_is_over_its_own_items_and_an_extension_is_not_sampled(tmp_path: Path) -> None:
    families = {Family.METADATA: "m", Family.QA: "q", Family.TEMPORAL: "t", Family.WITNESS: "x"}
    gold = text_gold("Porto", values=[PlaceValue(name="Porto")])
    questions = [
        make_question(f"{name}{n}", family, gold, "Where?") for family, name in families.items() for n in "123"
    ]
    attempts = [
        make_asked(CELL, q, "In Rome." if q.instance.instance_id.endswith("3") else "In Porto.") for q in questions
    ]
    sample = draw_sample_of(write_log(tmp_path / "run", make_run([CELL], questions, [], attempts)), "value", seed=0)
    assert Counter(i.family for i in sample.items) == {Family.METADATA: 3, Family.QA: 3, Family.TEMPORAL: 3}
    judge = {i.item: "correct" if "Porto" in i.answer else "wrong" for i in sample.items}
    by_id = {i.instance_id: i.item for i in sample.items}
    people = {name: dict(judge) for name in ("anna", "bela", "carl")}
    for name in (
        "anna",
        "bela",
    ):  # two of three annotators: their majority agrees with the judge on 2 of 3 items of D2: κ 0.4 for (c, w, w)
        people[name][by_id["m2"]] = "wrong"
    [track] = agreements(sample, people, "value", judge)
    agreement = {p.dimension: (p.agreement.items, p.agreement.majority_with_judge) for p in track.dimensions}
    assert [(name, items, pair and pair.agree) for name, (items, pair) in agreement.items()] == [
        ("D2", 3, pytest.approx(2 / 3)),
        ("D3", 6, 1.0),
    ]
    assert agreement["D2"][1] is not None
    assert agreement["D2"][1].kappa == pytest.approx(0.4)
    assert track.items == 9
    assert track.dimensions[1].agreement.fleiss == pytest.approx(1.0)


def test_labels_are_read_back_without_open_ones(sample: Sample, tmp_path: Path) -> None:
    (tmp_path / "sample.json").write_text(sample.model_dump_json())
    assert read_sample(tmp_path / "sample.json") == sample
    blank = json.loads(blank_labels(sample, "anna").model_dump_json())
    blank["annotators"]["anna"]["b001"] = "wrong"
    (tmp_path / "labels.json").write_text(json.dumps(blank))
    assert read_labels([tmp_path / "labels.json"], sample) == {"anna": {"b001": "wrong"}}


BROKEN: dict[str, tuple[dict[str, object], str]] = {
    "another sample": ({"sample_sha256": "0" * 64}, "belong to another sample"),
    "an unknown item": ({"annotators": {"anna": {"b999": "wrong"}}}, r"anna\.b999: the sample has no such item"),
    "an unknown label": ({"annotators": {"anna": {"b001": "maybe"}}}, "'maybe': expected one of correct, wrong"),
    "an unknown field": ({"surprise": 1}, "surprise"),
    "nobody": ({"annotators": {}}, "annotators: expected at least one"),
    "somebody without a name": ({"annotators": {" ": {"b001": "wrong"}}}, "annotators: expected a name .* got ' '"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_invalid_labels_are_refused_by_file_and_field(name: str, sample: Sample, tmp_path: Path) -> None:
    change, message = BROKEN[name]
    path = tmp_path / "labels.json"
    path.write_text(json.dumps({"sample_sha256": sample.sha256(), "annotators": {}, **change}))
    with pytest.raises(JudgeError, match=message) as error:
        read_labels([path], sample)
    assert str(path) in str(error.value)


TWICE = {
    "annotators.anna.b001": '{"sample_sha256": "SHA", "annotators": {"anna": {"b001": "wrong", "b001": "correct"}}}',
    "annotators.anna": '{"sample_sha256": "SHA", "annotators": {"anna": {"b001": "wrong"}, "anna": {}}}',
    "sample_sha256": '{"sample_sha256": "0", "annotators": {"anna": {}}, "sample_sha256": "SHA"}',
}


@pytest.mark.parametrize("field", TWICE)
def test_a_duplicate_field_in_a_file_of_labels_is_refused(field: str, sample: Sample, tmp_path: Path) -> None:
    """A JSON parser would silently use the last of the two."""
    path = tmp_path / "labels.json"
    path.write_text(TWICE[field].replace("SHA", sample.sha256()))
    with pytest.raises(JudgeError) as error:
        read_labels([path], sample)
    assert str(error.value) == f"{path}: {field}: stands twice; expected each field once"


def test_a_duplicate_in_a_sample_is_named_by_its_index(sample: Sample, tmp_path: Path) -> None:
    path = tmp_path / "sample.json"
    path.write_text(sample.model_dump_json().replace('"item":"b002"', '"item":"x","item":"b002"'))
    with pytest.raises(JudgeError, match=r"sample\.json: items\.1\.item: stands twice"):
        read_sample(path)


def test_an_annotator_in_two_files_is_refused(sample: Sample, tmp_path: Path) -> None:
    for name in ("one.json", "two.json"):
        (tmp_path / name).write_text(blank_labels(sample, "anna").model_dump_json())
    with pytest.raises(JudgeError, match="is in another file too"):
        read_labels([tmp_path / "one.json", tmp_path / "two.json"], sample)


def test_the_abstain_half_is_sampled_too_with_the_rules_verdict(tmp_path: Path) -> None:
    questions = [
        make_question(f"n{i}", Family.CONFABULATION, abstain("364 euros"), f"What did it cost, {i}?") for i in range(4)
    ]
    answers = ["364 euros", "I don't know.", "I have no record of that.", "It was 364 euros."]
    attempts = [make_asked(CELL, q, a) for q, a in zip(questions, answers, strict=True)]
    run = write_log(tmp_path / "run", make_run([CELL], questions, [], attempts))
    out = tmp_path / "sample.json"
    sampling = CliRunner().invoke(app, ["judge", str(run), "--sample", str(out)])
    assert sampling.exit_code == 0, sampling.output
    sample = read_sample(out)
    assert sorted(item.answer for item in sample.items) == sorted(answers)
    assert all("never said" in item.gold and "364 euros" in item.gold for item in sample.items)
    labels = {i.item: "wrong" if "364" in i.answer else "correct" for i in sample.items}
    path = tmp_path / "labels.json"
    path.write_text(json.dumps({"sample_sha256": sample.sha256(), "annotators": {"anna": labels}}), encoding="utf-8")
    result = CliRunner().invoke(app, ["judge", str(run), "--labels", str(path), "--of", str(out), "--format", "json"])
    assert result.exit_code == 0, result.output
    assert '"kappa": 1.0' in result.output
