"""Tests the commands ``judge``, ``score``, ``report`` and ``show`` through their command lines."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from memarena.cli.main import main
from memarena.log.records import QuestionAsked, Verdict
from memarena.log.store import LogWriter, read_records

from ..support import golden_judged, golden_run
from ..support.logs import write_log

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    return shutil.copytree(golden_run.SMALL_RUN, tmp_path / "run")


@pytest.fixture
def memarena(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Return a function that runs the command and returns (exit code, standard output, standard error)."""

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["memarena", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        code = ended.value.code
        return (code if isinstance(code, int) else 0), out, err

    return call


@pytest.mark.parametrize("output", ["table", "md", "latex", "html", "json"])
def test_report_prints_every_format_and_writes_the_same_to_a_file(
    memarena: Command, run_dir: Path, tmp_path: Path, output: str
) -> None:
    code, out, err = memarena("report", run_dir, "--format", output)
    assert (code, err) == (0, "")
    assert "bm25" in out
    if output == "json":
        assert json.loads(out)["runs"][0]["run_id"] == "run-test"
    assert memarena("report", run_dir, "--format", output, "--out", tmp_path / "report") == (0, "", "")
    assert (tmp_path / "report").read_text(encoding="utf-8") == out


def test_report_accepts_several_runs_and_refuses_one_given_twice(
    memarena: Command, run_dir: Path, tmp_path: Path
) -> None:
    records = [
        r.model_copy(update={"run_id": "another"}) if r.kind == "run_started" else r for r in read_records(run_dir)
    ]
    other_run = write_log(tmp_path / "other", records)
    _, out, _ = memarena("report", run_dir, other_run, "--format", "json")
    assert [run["run_id"] for run in json.loads(out)["runs"]] == ["run-test", "another"]
    copy = shutil.copytree(run_dir, tmp_path / "copy")
    message = f"error: report: run run-test is given twice, as {run_dir} and as {copy}\n"
    assert memarena("report", run_dir, other_run, copy) == (2, "", message)


def test_score_prints_the_dimensions(memarena: Command, run_dir: Path) -> None:
    code, out, _ = memarena("score", run_dir)
    assert code == 0
    assert "Dimensions" in out
    assert "Retrieval" not in out


def test_reports_work_while_the_run_goes_on_and_write_nothing(memarena: Command, run_dir: Path) -> None:
    records_before = len(list(read_records(run_dir)))
    with LogWriter(run_dir):
        assert memarena("report", run_dir)[0] == 0
        assert memarena("score", run_dir)[0] == 0
    assert len(list(read_records(run_dir))) == records_before


def test_a_run_that_has_only_just_begun_can_be_reported(memarena: Command, tmp_path: Path) -> None:
    records = [r for r in golden_run.records() if not isinstance(r, QuestionAsked) and r.kind != "run_ended"]
    code, out, _ = memarena("report", write_log(tmp_path / "begun", records))
    assert code == 0
    assert "running, or killed; 0 of 152 questions asked" in out


def test_judging_appends_verdicts_once_and_changes_no_figure(memarena: Command, run_dir: Path) -> None:
    report_before = memarena("report", run_dir, "--format", "json")[1]
    _, out, err = memarena("judge", run_dir)
    assert out.startswith("62 verdicts appended by judge value")
    assert err.startswith("warning: ") and "golds of open answers are text alone" in err
    assert memarena("judge", run_dir)[1].startswith("0 verdicts appended")
    assert memarena("report", run_dir, "--format", "json")[1] == report_before


def test_show_lists_failures_of_a_cell_or_family_one_line_each(memarena: Command, run_dir: Path) -> None:
    _, out, _ = memarena("show", run_dir, "--failures", "--cell", "hazy@small/s1", "--family", "d7_qa")
    assert [line.split()[:4] for line in out.splitlines() if line.startswith("  ")] == [
        ["infra", "failed", "hazy@small/s1", "qa_1"],
        ["wrong", "hazy@small/s1", "qa_2", "d7_qa"],
    ]


def test_every_figure_of_the_families_can_be_traced_to_answers_that_give_it(memarena: Command, run_dir: Path) -> None:
    report = json.loads(memarena("report", run_dir, "--format", "json")[1])
    figures = [
        (row["label"], part)
        for row in report["runs"][0]["rows"]
        for part in row["slices"]
        if part["score"]["value"] is not None
    ]
    assert {part["by"] for _, part in figures} >= {"family", "dimension", "lag", "difficulty", "tier"}
    assert len(figures) > 60
    for label, part in figures[::5]:
        counts = part["counts"]
        questions = counts["correct"] + counts["wrong"] + counts["backend_failed"]
        _, out, _ = memarena("show", run_dir, "--answers", "--cell", label, f"--{part['by']}", part["key"])
        assert out.startswith(f"{counts['correct']} of {questions} questions asked were answered right"), (label, part)


def test_the_command_that_a_table_names_works(memarena: Command, run_dir: Path) -> None:
    _, out, _ = memarena("report", run_dir, "--format", "md")
    commands = [line.split("`")[1] for line in out.splitlines() if line.startswith("- list these answers: `")]
    assert len(commands) > 8
    for command in commands:
        code, listing, err = memarena(*command.replace("RUN", str(run_dir)).split()[1:])
        assert (code, err) == (0, ""), command
        assert "questions asked were answered right" in listing


def test_the_command_of_a_column_lists_the_answers_that_it_counts(memarena: Command, judged_dir: Path) -> None:
    """A share of the table times the number of the row's answers is the number that the column's command lists."""
    _, out, _ = memarena("report", judged_dir, "--judge", "acme", "--format", "md")
    of_columns = 0
    for part in out.split("\n## "):
        filters_by_column = dict(
            pair.rstrip("`").split(" `")
            for line in part.splitlines()
            if line.startswith("- for the answers of one column, add: ")
            for pair in line.removeprefix("- for the answers of one column, add: ").split("; ")
        )
        if not filters_by_column:
            continue
        [command] = [line.split("`")[1] for line in part.splitlines() if line.startswith("- list these answers: `")]
        for filters in filters_by_column.values():
            arguments = f"{command} {filters} --judge acme".replace("RUN", str(judged_dir)).split()[1:]
            code, listing, err = memarena(*arguments)
            assert (code, err) == (0, ""), arguments
            assert "questions asked were answered right" in listing
            of_columns += 1
    assert of_columns > 12


@pytest.mark.parametrize(("fixture", "judge"), [("run_dir", "value"), ("judged_dir", "acme")])
def test_every_figure_of_d6_can_be_traced_to_the_answers_that_it_counts(
    memarena: Command, request: pytest.FixtureRequest, fixture: str, judge: str
) -> None:
    folder = request.getfixturevalue(fixture)
    report = json.loads(memarena("report", folder, "--judge", judge, "--format", "json")[1])

    def listed(*filters: str) -> list[str]:
        _, out, _ = memarena("show", folder, "--judge", judge, "--answers", "--cell", row["label"], *filters)
        return [line for line in out.splitlines() if line.startswith("  ")]

    rows = [row for row in report["runs"][0]["rows"] if row["permission"]]
    assert len(rows) >= (1 if judge == "acme" else 3)
    for row in rows:
        d6 = row["permission"]
        assert (len(listed("--action", "deny")), len(listed("--action", "allow"))) == (d6["deny"], d6["allow"])
        for action, labels in (("deny", d6["deny_labels"]), ("allow", d6["allow_labels"])):
            for label, count in labels.items():
                name = "--outcome" if label.endswith("_failed") else "--label"
                lines = listed("--action", action, name, label)
                assert len(lines) == count, (row["label"], action, label)
                assert all(label.endswith("_failed") or f"{action.upper()}: " in line for line in lines)
            unkept = sum(n for label, n in labels.items() if label == "disclosed" or label.endswith("_failed"))
            assert len(listed("--action", action, "--label", "kept")) == sum(labels.values()) - unkept
        for ground, count in d6["buckets"].items():
            assert len(listed("--ground", ground)) == count, (row["label"], ground)
        errors = row["errors"] or {}
        for stage, count in errors.items():
            assert len(listed("--stage", stage)) == count, (row["label"], stage)
        assert len(listed("--stage", "any")) == sum(errors.values())


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--cell", "bm25@small", "--dimension", "D2"], "2 of 3 questions asked were answered right (66.7%)"),
        (["--cell", "bm25@small/s2", "--dimension", "D2"], "1 of 1 questions asked were answered right (100.0%)"),
        (["--cell", "hazy@small", "--outcome", "backend_failed"], "0 of 2 questions asked were answered right (0.0%)"),
        (
            ["--cell", "hazy@small", "--family", "d7_qa"],
            "0 of 2 questions asked were answered right (0.0%), 1 with infra",
        ),
        (["--cell", "hazy@small", "--stage", "not_retrieved"], "0 of 5 questions asked were answered right (0.0%)"),
        (["--cell", "oracle@small", "--label", "disclosed"], "8 of 14 questions asked were answered right (57.1%)"),
        (["--cell", "bm25@small", "--difficulty", "easy"], "5 of 6 questions asked were answered right (83.3%)"),
        (["--cell", "bm25@small", "--label", "disclose_wrong"], "0 of 0 questions asked were answered right"),
    ],
)
def test_answers_can_be_filtered_by_the_parts_of_figures(
    memarena: Command, run_dir: Path, arguments: list[str], expected: str
) -> None:
    code, out, _ = memarena("show", run_dir, "--answers", *arguments)
    assert code == 0
    assert out.startswith(expected), out.splitlines()[0]
    lines = [line for line in out.splitlines() if line.startswith("  ")]
    assert len(lines) == int(expected.split()[2])


def test_a_range_may_be_typed_with_a_hyphen(memarena: Command, tmp_path: Path) -> None:
    records = [
        r.model_copy(update={"instance": r.instance.model_copy(update={"metadata": {"interference": 3}})})
        if r.kind == "question"
        else r
        for r in golden_run.records()
    ]
    run = write_log(tmp_path / "run", records)
    for name, typed, printed in (("--lag", "1-3", "1–3"), ("--interference", "2-4", "2–4")):
        code, out, err = memarena("show", run, "--answers", name, typed)
        assert (code, err) == (0, "")
        assert out.count("\n") > 40
        assert memarena("show", run, "--answers", name, printed)[1] == out


def test_show_prints_the_trace_of_a_question_in_one_cell_or_all(memarena: Command, run_dir: Path) -> None:
    _, trace_of_one_cell, _ = memarena("show", run_dir, "--question", "temp_1", "--cell", "bm25@small/s3")
    assert trace_of_one_cell.count("Question temp_1 in ") == 1
    assert "On Tuesday, 14 January." in trace_of_one_cell
    _, every, _ = memarena("show", run_dir, "--question", "temp_1")
    assert every.count("Question temp_1 in ") == 8


@pytest.fixture
def judged_dir(tmp_path: Path) -> Path:
    return shutil.copytree(golden_judged.JUDGED_RUN, tmp_path / "judged")


def test_show_prints_every_judges_verdict_on_a_question(memarena: Command, judged_dir: Path) -> None:
    def shown(question: str, judge: str = "acme") -> list[str]:
        _, out, _ = memarena("show", judged_dir, "--question", question, "--judge", judge)
        lines = " ".join(out.split()).replace("Judge acme", "\nJudge acme").replace("Judge value", "\nJudge value")
        return lines.splitlines()[1:]

    temporal, rules = shown("temp_1")
    assert temporal.startswith("Judge acme (aaaaaaaaaaaa) wrong by llm, score 0.00: another one than the key")
    assert "model acme/judge-1, T = 0, seed 7, 1 call, 812 + 61 tokens, $0.00016" in temporal
    assert "right by llm, score 1.00, repeat 1" in temporal
    assert rules.startswith("Judge value (")
    handed = shown("qa_2")[0]
    assert "right by text" in handed
    assert "decided instead by the value judge 0123456789ab: the judge gives no usable reply" in handed
    assert shown("conf_1")[0].strip().endswith("failed (answer): rate limit: HTTP 429: slow down")
    [secret] = shown("perm_4")
    assert "behaviour refuse" in secret
    assert "withheld because: no access: it names whom it is for" in secret
    turned = [line.strip() for line in shown("temp_1", "value")]
    assert turned == [rules.strip(), temporal.strip()], "the judge that was chosen comes first, then the others"


@pytest.mark.parametrize("output", ["table", "md", "latex", "html", "json"])
def test_a_model_judge_is_described_in_every_format(memarena: Command, judged_dir: Path, output: str) -> None:
    _, out, _ = memarena("report", judged_dir, "--judge", "acme", "--full", "--format", output)
    # LaTeX output separates two hyphens in a row, which would become a dash.
    out = out.replace("{-}", "-")
    assert "acme/judge-1" in out
    for digest in ("a" * 64, "b" * 64, "c" * 64, "d" * 64):
        assert digest in out
    if output != "json":
        text = " ".join(out.replace("\\_", "_").split())
        assert "6 by its model, 1 by typed values, 1 by the rules for golds in text" in text
        assert "every verdict rests on typed values" not in text
        assert "memarena judge RUN --judge acme" in text
        assert "--resume" not in text, "which repairs nothing here"
        return
    run = json.loads(out)["runs"][0]
    assert run["judging"]["models"][0]["temperature"] == 0.0
    assert run["judging"]["models"][0]["seed"] == 7
    assert run["judging"]["decided"] == {"model": 6, "text": 1, "typed_values": 1}
    assert (run["judging"]["handed_over"], run["judging"]["unjudged"]) == (2, 1)
    assert run["judge_failures"] == {"rate_limit": 1}


def test_a_run_judged_by_rules_only_is_reported_as_such(memarena: Command, tmp_path: Path) -> None:
    records = [
        r.model_copy(update={"route": "value", "handed_over": "all of it speaks to its marker"})
        if isinstance(r, Verdict)
        else r
        for r in golden_judged.records()
    ]
    _, out, _ = memarena("report", write_log(tmp_path / "run", records), "--judge", "acme", "--full")
    text = " ".join(out.split())
    assert "verdicts 8: 4 by typed values, 4 by the deterministic labels of D6; " in text
    assert "decided by the rules instead 8 (100.0%)" in text


def _rounded(value: object) -> object:
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    return round(value, 6) if isinstance(value, float) else value


@pytest.fixture(scope="module")
def calibration(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The error rates of the judges, which take some seconds and are the same for each format of a report."""
    run_dir = shutil.copytree(golden_run.SMALL_RUN, tmp_path_factory.mktemp("calibration") / "run")
    command = [sys.executable, "-m", "memarena", "judge", str(run_dir), "--calibrate", "--format", "json"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("output", ["table", "md", "latex", "html", "json"])
def test_a_calibration_is_among_the_methods_in_every_format(
    memarena: Command, run_dir: Path, calibration: str, tmp_path: Path, output: str
) -> None:
    (tmp_path / "calibration.json").write_text(calibration, encoding="utf-8")
    code, out, err = memarena("report", run_dir, "--format", output, "--calibration", tmp_path / "calibration.json")
    assert (code, err) == (0, "")
    if output == "json":
        [reported] = json.loads(out)["calibrations"]
        for key, value in json.loads(calibration).items():
            assert key == "kappa" or reported[key] == _rounded(value), "figures of a report have six decimals"
        return
    assert "Error rates of judges on synthetic answers" in out
    assert "another version of value" not in " ".join(out.split())
    answers = json.loads(calibration)["answers"]
    assert f"{answers:,} synthetic answers made from gold" in " ".join(out.split())


def test_a_sample_labelled_by_people_is_in_every_format_by_dimension(
    memarena: Command, run_dir: Path, tmp_path: Path
) -> None:
    sample = run_dir / "annotations" / "sample.json"
    sample.parent.mkdir()
    assert memarena("judge", run_dir, "--sample", sample)[0] == 0
    assert "Agreement with people" not in memarena("report", run_dir, "--full")[1], "no person labelled anything yet"
    sample_content = json.loads(sample.read_text())
    labels = {item["item"]: item["choices"][n % 2] for n, item in enumerate(sample_content["items"])}
    blank = json.loads((sample.parent / "labels.json").read_text())
    label_content = blank | {"annotators": dict.fromkeys(("anna", "ben", "eve"), labels)}
    (tmp_path / "labels.json").write_text(json.dumps(label_content))
    assert memarena("annotate", run_dir, "--import", tmp_path / "labels.json")[0] == 0
    [[people]] = json.loads(memarena("report", run_dir, "--format", "json")[1])["people"]
    parts = {part["name"]: part for part in people["parts"]}
    assert list(parts) == ["D2", "D3", "D4", "D5", "right or wrong", "behaviour (D6)"]
    assert sum(parts[name]["items"] for name in list(parts)[:4]) == parts["right or wrong"]["items"]
    options = ("--labels", tmp_path / "labels.json", "--of", sample, "--format", "json")
    [binary, behaviour] = json.loads(memarena("judge", run_dir, *options)[1])
    assert parts["behaviour (D6)"]["kappa"] == round(behaviour["majority_with_judge"]["kappa"], 6)
    of_d3 = binary["dimensions"][1]["agreement"]["majority_with_judge"]
    for output in ("table", "latex"):
        agreement_text = memarena("report", run_dir, "--format", output, "--table", "agreement-with-people")[1]
        assert f"{of_d3['kappa']:.3f}" in agreement_text.replace("$-$", "-")
        assert "3 annotators, judge value" in agreement_text


def test_a_calibration_of_another_version_of_the_judge_is_marked(
    memarena: Command, run_dir: Path, calibration: str, tmp_path: Path
) -> None:
    older = json.loads(calibration)
    older["judges"][0]["version"] = "0" * 64
    (tmp_path / "calibration.json").write_text(json.dumps(older), encoding="utf-8")
    _, out, _ = memarena("report", run_dir, "--calibration", tmp_path / "calibration.json")
    assert "calibrated was another version of value (000000000000)" in " ".join(out.split())


@pytest.mark.parametrize("output", ["table", "md", "json"])
def test_a_closed_pipe_ends_a_report_without_a_message(run_dir: Path, output: str) -> None:
    """A pipe that is closed early (``| head``) ends the command without a message.

    A short report is written at the very end, a long one before; rich handles the closed pipe in its own way.
    """
    command = [sys.executable, "-m", "memarena", "report", str(run_dir), "--format", output]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert (process.wait(60), process.stderr.read()) == (141, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["report", "RUN", "--calibration", "EMPTY/none.json"],
            "--calibration EMPTY/none.json: cannot be read: No such",
        ),
        (["report", "RUN", "--calibration", "RUN/run.sqlite"], "--calibration RUN/run.sqlite: file: invalid json"),
        (["show", "RUN", "--question", "nope"], "--question nope: no such question in RUN"),
        (["show", "RUN", "--question", "qa_1", "--cell", "x"], "--cell x: no such cell; there are: bm25@small/s1"),
        (["show", "RUN", "--failures", "--cell", "x"], "--cell x: no such cell"),
        (["show", "RUN", "--failures", "--family", "x"], "--family x: no question of this family; there are: d10_"),
        (["show", "RUN", "--question", "perm_1", "--cell", "bm25@extractive/s1"], "not asked yet"),
        (["show", "RUN"], "expected one of --failures, --answers and --question ID"),
        (
            ["show", "RUN", "--failures", "--question", "qa_1"],
            "expected one of --failures, --answers and --question ID",
        ),
        (["report", "RUN", "--format", "pdf"], "--format pdf: expected one of table, md, latex, html, json"),
        (["score", "RUN", "--format", "html"], "--format html: expected one of table, md, json"),
        (["report", "RUN", "--out", "EMPTY"], "--out EMPTY: expected a file, this is a folder"),
        (["report", "RUN", "--out", "RUN/run.sqlite"], "this is the name of a run's log, which is never overwritten"),
        (["report", "RUN", "--out", "RUN/no/r.md"], "--out RUN/no/r.md: cannot be written: No such file"),
        (["report", "RUN", "--out", "/dev/full"], "--out /dev/full: cannot be written: No space left on device"),
        (["report", "RUN", "--format", "html", "--out", "/dev/full"], "--out /dev/full: cannot be written: No space"),
        (["report", "RUN", "--against", "me"], "--against me: expected published; two runs are compared by"),
        (
            ["show", "RUN", "--answers", "--dimension", "D9"],
            "--dimension D9: no question of this dimension; there are: D1",
        ),
        (
            ["show", "RUN", "--answers", "--stage", "x"],
            "--stage x: expected one of not_ingested, not_retrieved, cut_from_prompt, misread, unknown, any",
        ),
        (["show", "RUN", "--answers", "--action", "DENY"], "--action DENY: expected one of deny, allow, self"),
        (
            ["show", "RUN", "--failures", "--difficulty", "x"],
            "--difficulty x: no question has it; there are: easy, hard, medium",
        ),
        (["show", "RUN", "--question", "qa_1", "--family", "d7_qa"], "--family: goes with --failures or --answers"),
        (["score", "RUN", "--judge", "gpt"], "--judge gpt: no verdict by this judge in the log; there are: none"),
        (["judge", "RUN", "--judge", "gpt"], "--judge gpt: unknown judge; "),
        (["report", "EMPTY"], "EMPTY: no run log (run.sqlite) in this folder"),
        (["judge", "EMPTY"], "EMPTY: no run log (run.sqlite) in this folder"),
    ],
)
def test_bad_input_gives_one_line_and_exit_code_2(
    memarena: Command, run_dir: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "empty").mkdir()
    names = {"RUN": str(run_dir), "EMPTY": str(tmp_path / "empty")}
    code, out, err = memarena(*(a.replace("RUN", names["RUN"]).replace("EMPTY", names["EMPTY"]) for a in arguments))
    assert (code, out) == (2, "")
    for name, path in names.items():
        message = message.replace(name, path)
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert message in err
