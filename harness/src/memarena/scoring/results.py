"""Defines the frozen records that scoring returns: of questions, cells, rows and runs; figures.py has a row's parts."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from memarena.judging.judgment import Disclosure, Route
from memarena.log.measuring import CpuLoad
from memarena.log.records import (
    UNMEASURED,
    DatasetRef,
    IsolationGrade,
    JudgeTask,
    NonAnswer,
    Outcome,
    ReaderRef,
    Reading,
    Record,
)
from memarena.scoring.figures import (
    AnswerableFamily,
    Counts,
    Deletion,
    Errors,
    Failure,
    Floor,
    Ingest,
    JudgeError,
    Latency,
    Permission,
    ReaderUse,
    Retention,
    Retrieval,
    Score,
    Slice,
    SourceScores,
)
from memarena.scoring.uncertainty_records import Interval, Variance

SCORES_VERSION = 1
"""Version of these records as JSON."""

Stage = Literal["not_ingested", "not_retrieved", "cut_from_prompt", "misread", "unknown"]
"""The stage at which an answer went wrong. ``cut_from_prompt``: Search returned all evidence, but not all of it fitted
into the prompt. ``unknown``: the backend does not report the sources of its items."""
Half = Literal["abstain", "answer"]
"""Half of D5: whether the history has no answer (``abstain``) or has one (``answer``)."""
Mark = Literal[
    "without_reader",
    "many_failed",
    "unsupported_sources",
    "not_isolated",
    "no_evidence",
    "many_non_answers",
    "busy_machine",
]
"""``without_reader``: an answer was made without any call of the reader, and the backend declares no own model.
``many_failed``: more than :data:`MANY_FAILED` of the questions asked have no answer. ``unsupported_sources``: more than
:data:`MANY_UNSUPPORTED` of the sessions that items name are not in their text. ``not_isolated``: the backend ran where
it could read the data set with its gold. ``no_evidence``: a diagnostic that answers from the questions' evidence, over
a data set that names none: no figures. ``many_non_answers``: more than :data:`MANY_NON_ANSWERS` of the answers are
empty or incomplete. ``busy_machine``: times were measured while other processes kept the CPUs busy
(:func:`is_busy`)."""
MANY_FAILED = 0.05
"""Share of the questions asked that failed without an answer, above which a row gets the mark ``many_failed``."""
MANY_NON_ANSWERS = 0.05
"""Share of empty or incomplete answers above which a row gets the mark ``many_non_answers``."""
MANY_UNSUPPORTED = 0.05
"""Share of unsupported claims above which a row gets the mark ``unsupported_sources``."""
BUSY_OTHERS_PERCENT = 20.0
"""Percent of all CPU time used by other processes than the run's, from which its times get a mark. From the same value
certification refuses a node as busy (``cpu_busy_percent`` of memarena-spark's profile gb10)."""
BUSY_ALL_PERCENT = 90.0
"""The same threshold for all CPU time, used if other processes cannot be distinguished from a server of the run: with
less than a tenth of the CPUs idle, calls wait for one, whichever process has it."""


def is_busy(load: CpuLoad) -> bool:
    """Whether times measured under this load get a mark; False if the load was not measured."""
    if load.others.value is not None:
        return load.others.value >= BUSY_OTHERS_PERCENT
    return load.busy.value is not None and load.busy.value >= BUSY_ALL_PERCENT


PAPER_METRICS = ("D1", "D2", "D3", "D4", "D5", "D6", "Rec", "Rea", "Trust", "Avg")
"""The paper's figures: D6 is F1_PU, Rec pools D1 and D2, Rea D3 and D4, Trust is the mean of D5 and D6, Avg of all six.
"""
ANSWERABLE = "answerable"
"""The first figure of a memory: the share of questions whose prompt holds turns that suffice for the gold, whatever the
reader answers. Questions with nothing to retrieve are left out (the abstain half of D5, D6 facts to be withheld)."""
AVG_WITHOUT_D6: Literal["Avg w/o D6"] = "Avg w/o D6"
"""Mean of D1 to D5: the average to rank by while D6 cannot tell a memory from one that ignores who asks."""
OWN_METRICS = (
    ANSWERABLE, *(f"{ANSWERABLE} {d}" for d in PAPER_METRICS[:6]), AVG_WITHOUT_D6,
    "D5*", "Avg*", "P", "U", "J", "J|known", "F1_PU paper", "Withhold", "Utility", "self", "control", "X1", "all",
)  # fmt: skip
"""MemArena's own figures: answerable, over all questions and by dimension; Avg without D6; D5* and Avg* (D5 as the
harmonic mean of its halves); the parts of D6 (P, U, J, J|known, F1_PU paper); D6 by the list of refusals (Withhold:
share of DENY items refused; Utility: share of ALLOW items not refused); the owner's own D6 items (self) and controls;
extensions (X1); and ``all``, the share right of all questions but those of X1, self and control."""


class Retrieved(Record):
    """What Search returned for a question, as far as its evidence goes."""

    items: int
    """Number of items that Search returned."""
    items_with_ids: int
    """Items that count for at least one session (:mod:`memarena.scoring.sources`)."""
    context_tokens: float
    """UTF-8 bytes of the items' texts over 4."""
    evidence_sessions: int
    """Number of sessions from which the gold follows."""
    found_at_k: int
    """Evidence sessions among the first ten items."""
    found: int  # words: a name of the file format
    """Evidence sessions among all items."""
    read: int
    """Evidence sessions among the items that the answer was read from, which may be those of Answer's own search."""
    read_items: int
    """How many items the answer was read from."""
    first_rank: int | None
    """Rank of the first item with evidence, from 1; None if none has."""
    shown: int | None = None
    """Evidence sessions among the items in the prompt; None if these are not known."""
    cut_items: int | None = None
    """Items that were left out of the prompt; None if not known."""
    claimed_at_k: int = 0
    """Evidence sessions that the first ten items name, whether or not their text supports them."""
    audited_items: int = 0
    """Items whose text was compared with what was ingested."""
    rewritten_items: int = 0
    """Items that name sessions and whose text is mostly not that of turns and events."""
    claims: int = 0
    """Sum over the items of the sessions that each names."""
    unsupported_claims: int = 0
    """Claims that do not count: the item's text does not support them, nor are they within a rewriting item's bound."""
    suffices: bool | None = None
    """Whether the prompt holds turns that suffice for the gold; None if unknown, or if nothing has to be retrieved."""


class Spans(Record):
    """Times of one answered question in milliseconds; None: did not happen."""

    segment: int
    """Index of the process of the run that measured it, from 0; spans of two segments never mix in one sample."""
    search_ms: float | None
    ttft_ms: float | None
    rest_ms: float | None
    """The remainder of Answer up to its first text, without the model call that made it."""
    first_delta_ms: float | None
    server_prompt_ms: float | None
    """The model server's own prompt time for the same call."""
    gateway_ttft_ms: float | None
    """TTFT at the gateway of the call that ``server_prompt_ms`` belongs to."""


class QuestionScore(Record):
    """One question of one cell with the outcome of its latest attempt."""

    cell_id: str
    instance_id: str
    ego: str
    family: str
    dimension: str
    outcome: Outcome | None
    """None: not asked yet."""
    attempts: int
    route: Route | None = None
    why: str = ""
    """Why the answer is right or wrong, or what failed, as one line."""
    half: Half | None = None
    """D5 only."""
    disclosure: Disclosure | None = None
    """D6 only; None if no answer arrived."""
    allowed: bool | None = None
    """D6: whether the right action is to disclose."""
    self_item: bool = False
    """D6: the owner or the fact's subject asks."""
    control: bool = False
    """D6: the right action is the same for every asker, for example with a public fact."""
    fact_key: str = ""
    """D6: ego and fact, the same for all items about one fact."""
    token_f1: float | None = None
    """Token-F1 of an open answer with the best gold text; None for other questions."""
    lag_days: int | None = None
    """Days from the latest evidence to the question; None without evidence."""
    difficulty: str | None = None
    context_tier: str | None = None
    interference: int | None = None
    """Number of facts that interfere with the one asked for; None if the data set does not have it."""
    retrievable: bool = False
    """Whether the gold has an answer and evidence; False for questions to abstain from and facts to withhold."""
    wording: str | None = None
    """How the question names its subject: plain, other_name, description; None if the data set does not have it."""
    retrieved: Retrieved | None = None
    stage: Stage | None = None
    """The stage at which a wrong answer to an answerable question with evidence went wrong; None for all others."""
    spans: Spans | None = None
    reader_calls: int | None = None
    """Calls of the reader that gave text, over the whole Answer; None if no answer arrived."""
    reader_tokens: int | None = None
    """Tokens of prompts and replies of these calls; None if those of any are unknown."""
    non_answer: NonAnswer = ""
    """Why the answer is empty or incomplete; "" if it is neither."""
    grep_right: bool | None = None
    """D1: whether the option with most occurrences in the items is the right one."""

    @property
    def correct(self) -> bool:
        """Whether the question counts as right."""
        return self.outcome is Outcome.CORRECT

    @property
    def suffices(self) -> bool | None:
        """Whether the prompt holds turns that suffice for the gold: False for a failed backend, None if unknown."""
        if self.outcome is Outcome.BACKEND_FAILED:
            return False
        return None if self.retrieved is None else self.retrieved.suffices

    @property
    def unmeasured(self) -> bool:
        """Whether the question ended in a way that says nothing about the memory."""
        return self.outcome in UNMEASURED

    @property
    def outside_f1(self) -> bool:
        """Whether it is a D6 item outside of F1_PU (self or control), reported separately."""
        return self.self_item or self.control

    @property
    def says_nothing(self) -> bool:
        """Whether a DENY item's answer says nothing, so that its fact was neither disclosed nor withheld."""
        discloses = self.disclosure is not None and self.disclosure.disclosed
        return self.allowed is False and bool(self.non_answer) and not discloses


class CellScores(Record):
    """One cell: backend, reader and seed."""

    cell_id: str
    seed_label: str
    temperature: float
    counts: Counts
    metrics: dict[str, Score]
    intervals: dict[str, Interval] = Field(default_factory=dict)
    """By name of the figure; absent if the figure is n/a, only a range, or of a single ego."""


class RowScores(Record):
    """A backend with a reader over its seeds: a row of every table."""

    label: str
    """The cells' name without the seed."""
    backend: str
    backend_version: str | None
    options: dict[str, str]
    """Options that the backend was started with, by name."""
    reader: str
    reading: Reading
    diagnostic: bool
    own_model: bool = False
    """Whether the backend calls its own generating models: their tokens are unknown, and other models than the reader
    write answers too."""
    real_reader: bool
    """Whether the reader is a language model; False for one that picks a sentence of the context."""
    isolation: IsolationGrade | None = None
    """How far the backend was kept from the data set: ``none`` if any of its cells ran without isolation, else the
    grade of its first cell that is described. None if the log has no grade."""
    marks: tuple[Mark, ...] = ()
    """Signs at the row's name for facts that a reader must know before its figures."""
    without_answer: int = 0
    """Failed questions of which no answer arrived, over the headline seeds."""
    non_answers: dict[NonAnswer, int] = Field(default_factory=dict)
    """Empty or incomplete answers by reason, over the headline seeds."""
    reader_use: ReaderUse | None = None
    """None if no answer arrived."""
    load: CpuLoad | None = None
    """Load of the cell in which other processes, else all, kept the CPUs busiest; None if the log does not have it."""
    timed: bool
    """Whether the cells measure times; they do not if model replies come from a cache."""
    headline_seeds: tuple[str, ...]
    """Seeds that the headline averages: those of s2 to s4 that were run, else all."""
    counts: Counts
    """Questions by outcome, over the headline seeds."""
    metrics: dict[str, Score]
    """Mean over the headline seeds with their sample standard deviation."""
    greedy: dict[str, Score] | None
    """Figures of seed s1 (T = 0), if the headline is of other seeds; else None."""
    cells: tuple[CellScores, ...]
    slices: tuple[Slice, ...]
    source: SourceScores | None = None
    """None if the data set has no categories of a benchmark."""
    judge_error: JudgeError | None = None
    """None if the rules judged no text gold."""
    permission: Permission | None
    answerable: tuple[AnswerableFamily, ...] = ()
    """One record by family; empty if no question has evidence."""
    retrieval: Retrieval | None
    errors: Errors | None
    latency: Latency | None
    ingest: Ingest | None
    kept: Retention | None = None  # words: a name of the file format
    """None if the memory does not report how many sessions it ingested."""
    failures: tuple[Failure, ...]
    after_return_calls: int
    """Model calls after the RPC had returned, refused by the gateway: a violation of the contract."""
    budget_refusals: int = 0
    """Model calls that were refused because a budget was used up."""
    routes: dict[str, int]
    """How many questions each route decided."""
    deletion: tuple[Deletion, ...] = ()
    """One record by kind of target; empty without deletion probes."""
    intervals: dict[str, Interval] = Field(default_factory=dict)
    """Intervals of ``metrics``, with the same draws of egos for every seed."""
    variances: tuple[Variance, ...] = ()
    """Kinds of spread by figure."""

    @property
    def rank_by(self) -> Literal["Avg", "Avg w/o D6"]:
        """The average to rank this memory by: without D6 if the interval of J includes 0, or there is none.

        F1_PU then says nothing about the memory: disclosing blindly with probability ½ has J = 0 and F1_PU = 50%.
        """
        d6 = self.permission
        open_j = d6 is None or d6.j_low is None or d6.j_high is None or d6.j_low <= 0 <= d6.j_high
        return AVG_WITHOUT_D6 if open_j else "Avg"

    @property
    def without_reader(self) -> bool:
        """Whether any answer was made without the reader: its figures are then not the memory's with that reader."""
        return "without_reader" in self.marks


class Baseline(Record):
    """Scores achievable without memory, by dimension; None: n/a."""

    name: Literal[
        "best constant", "always refuse", "always don't know", "blind coin", "always tell", "marker only", "asker only",
        "question only", "grep",
    ]  # fmt: skip
    scores: dict[str, float | None]
    j: float | None = None
    """J of a policy for D6; None for other baselines."""
    detail: str = ""
    reader: str | None = None
    """The reader that the baseline belongs to, if it needs one (``question only``)."""


Decider = Literal["model", "typed_values", "text", "token_f1", "labels"]
"""What decided a verdict. ``labels``: the deterministic labels of D6, in place of a judge that labels behaviour."""


class JudgeModel(Record):
    """A model behind verdicts, as it was asked."""

    model: str
    temperature: float | None
    seed: int | None
    """None: no seed was sent."""
    prompts_sha256: dict[JudgeTask, str]
    """SHA-256 of the prompt files, by task of the judge."""


class Judging(Record):
    """Where the verdicts that decided a run's questions come from. Counts are of questions, cells apart."""

    models: tuple[JudgeModel, ...] = ()
    """Empty for a judge without a model."""
    decided: dict[Decider, int] = Field(default_factory=dict)
    handed_over: int = 0
    """Verdicts that the rules made in place of the judge's model."""
    unjudged: int = 0
    """Questions that were answered and wait for this judge's verdict; each ends as ``infra_failed`` until then."""


class RunScores(Record):
    """All figures of a run. Computed from its log alone."""

    scores_version: int = SCORES_VERSION
    run_id: str
    started_at: str
    ended: str
    """``completed``, ``incomplete``, ``interrupted``, ``aborted``, or ``running`` if the log has no end."""
    dataset: DatasetRef
    protocol: str
    readers: tuple[ReaderRef, ...]
    memarena_version: str
    judge: str
    judge_versions: tuple[str, ...]
    """SHA-256 of each judge version that decided verdicts."""
    typed_share: float | None
    """Share of typed values among verdicts on open answers without a model, else text or token-F1; None without any."""
    question_filter: str | None
    planned: dict[str, int]
    """Questions by dimension."""
    families: dict[str, int]
    segments: int
    floor: Floor | None
    rows: tuple[RowScores, ...]
    baselines: tuple[Baseline, ...]
    problems: tuple[str, ...]
    judge_failures: dict[str, int] = Field(default_factory=dict)
    """Answers that the judge could not judge, by cause; each ends as ``infra_failed`` until judged again."""
    judge_repeats: int = 1
    """Verdicts per answer by the judge; if above 1, the judge's variance is in ``variances``."""
    handed_over_share: float | None = None
    """Share of an LLM judge's verdicts that the rules without a model made in its place; None without such a judge."""
    judging: Judging = Judging()

    @property
    def d6_rules(self) -> tuple[str, ...]:
        """Whether readers' prompts say who may know what: ``stated`` or ``inferred``; empty without rows."""
        return tuple(sorted({row.reading.d6_rules for row in self.rows}))

    @property
    def not_judged(self) -> int:
        """Number of questions that the judge cannot judge; they are in ``planned``, and in no row's counts."""
        counted = max((cell.counts.planned for row in self.rows for cell in row.cells), default=None)
        return 0 if counted is None else sum(self.planned.values()) - counted
