"""What scoring returns: frozen records of questions, cells, rows and runs; figures.py has what a row is made of."""

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
"""Where a wrong answer went wrong. ``cut_from_prompt``: all the evidence was found, but it did not all fit into the
prompt. ``unknown``: the backend does not say where its items come from."""
Half = Literal["abstain", "answer"]
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
a data set that names none: no figures. ``many_non_answers``: more than :data:`MANY_NON_ANSWERS` of the answers say
nothing, or not all. ``busy_machine``: times were measured while others kept the CPUs busy (:func:`is_busy`)."""
MANY_FAILED = 0.05
MANY_NON_ANSWERS = 0.05
MANY_UNSUPPORTED = 0.05
BUSY_OTHERS_PERCENT = 20.0
"""Share of all CPU time that others than the run used, from which its times carry a mark: at the same share
certification refuses a node as busy (``cpu_busy_percent`` of memarena-spark's profile gb10)."""
BUSY_ALL_PERCENT = 90.0
"""The same for all CPU time, where others cannot be told from a server of the run: with less than a tenth of the CPUs
idle, calls wait for one, whoever has it."""


def is_busy(load: CpuLoad) -> bool:
    """Whether times measured under this load carry a mark; not where it was not measured."""
    if load.others.value is not None:
        return load.others.value >= BUSY_OTHERS_PERCENT
    return load.busy.value is not None and load.busy.value >= BUSY_ALL_PERCENT


PAPER_METRICS = ("D1", "D2", "D3", "D4", "D5", "D6", "Rec", "Rea", "Trust", "Avg")
"""As the paper: D6 as F1_PU, Recall over D1 and D2, Reasoning over D3 and D4, Trust of D5 and D6, Avg of the six."""
ANSWERABLE = "answerable"
"""The first figure of a memory: share of the questions whose prompt holds turns that suffice for the gold, whatever the
reader makes of them. Without questions that ask for nothing (the abstain half of D5, facts of D6 to be withheld)."""
AVG_WITHOUT_D6: Literal["Avg w/o D6"] = "Avg w/o D6"
"""Mean of D1 to D5: the average to rank by while D6 cannot tell a memory from one that ignores who asks."""
OWN_METRICS = (
    ANSWERABLE, *(f"{ANSWERABLE} {d}" for d in PAPER_METRICS[:6]), AVG_WITHOUT_D6,
    "D5*", "Avg*", "P", "U", "J", "J|known", "F1_PU paper", "Withhold", "Utility", "self", "control", "X1", "all",
)  # fmt: skip
"""Next to them: answerable, over all and by dimension; Avg without D6; D5* and Avg* (halves of D5 as harmonic mean), D6
apart, D6 by the list of refusals (Withhold: share of DENY items refused; Utility: share of ALLOW items that are not),
the owner's own D6 items, extensions, and the share right of all that score (without X1, controls and the owner's own D6
items)."""


class Retrieved(Record):
    """What Search returned for a question, as far as its evidence goes."""

    items: int
    items_with_ids: int
    """Items that count for a session: their text bears one out, or they name one that counts."""
    context_tokens: float
    """UTF-8 bytes of the items' texts over 4."""
    evidence_sessions: int
    found_at_k: int
    """Evidence sessions among the first ten items."""
    found: int  # words: a name of the file format
    """Evidence sessions among all items."""
    read: int
    """Evidence sessions among the items that the answer was read from, which may come from its own search."""
    read_items: int
    """How many items those were."""
    first_rank: int | None
    """Rank of the first item with evidence, from 1; None if none has."""
    shown: int | None = None
    """Evidence sessions among the items that the prompt holds; None where that is not known."""
    cut_items: int | None = None
    """Items that were left out of the prompt; None where that is not known."""
    claimed_at_k: int = 0
    """Evidence sessions that the first ten items name, whatever their text holds."""
    audited_items: int = 0
    """Items whose text was compared with what was ingested."""
    rewritten_items: int = 0
    """Items that name sessions and whose text is not that of turns and events."""
    claims: int = 0
    """Sessions that the items name."""
    unsupported_claims: int = 0
    """Of these, those that neither the text nor the bound of an item that rewrites bears out."""
    suffices: bool | None = None
    """Whether the prompt holds turns that suffice for the gold; None where that is not known, or nothing has to be
    retrieved."""


class Spans(Record):
    """Times of one answered question in milliseconds; None: did not happen."""

    segment: int
    """Which process of the run measured it, from 0; spans of two segments never mix in one sample."""
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
    """Why it is right or wrong, or what failed: one line."""
    half: Half | None = None
    disclosure: Disclosure | None = None
    """D6; None where no answer arrived."""
    allowed: bool | None = None
    """D6: whether the right action is to disclose."""
    self_item: bool = False
    control: bool = False
    """D6: everybody who is asked for gets the same answer, such as with a public fact."""
    fact_key: str = ""
    """D6: ego and fact, to tell which items are about the same fact."""
    token_f1: float | None = None
    lag_days: int | None = None
    difficulty: str | None = None
    context_tier: str | None = None
    interference: int | None = None
    """Facts in the data set that interfere with the one asked for; None where it does not say."""
    retrievable: bool = False
    """Whether its gold has an answer, and evidence: not of questions to abstain from, nor of facts to withhold."""
    wording: str | None = None
    """How the question names what it asks for: plain, other_name, description; None where the data set does not say."""
    retrieved: Retrieved | None = None
    stage: Stage | None = None
    """Where a wrong answer to an answerable question went wrong, where the items' ids tell."""
    spans: Spans | None = None
    reader_calls: int | None = None
    """Calls of the reader that gave text, over the whole Answer; None where no answer arrived."""
    reader_tokens: int | None = None
    """Tokens read and written by them; None where those of any are unknown."""
    non_answer: NonAnswer = ""
    """Why the answer says nothing, or not all; empty where it says something."""
    grep_right: bool | None = None
    """D1: whether the option with most occurrences in the items is the right one."""

    @property
    def correct(self) -> bool:
        """Whether it counts as right."""
        return self.outcome is Outcome.CORRECT

    @property
    def suffices(self) -> bool | None:
        """Whether the prompt holds turns that suffice for the gold; a failed backend gave none. None: unknown."""
        if self.outcome is Outcome.BACKEND_FAILED:
            return False
        return None if self.retrieved is None else self.retrieved.suffices

    @property
    def unmeasured(self) -> bool:
        """Whether it ended in a way that says nothing about the memory."""
        return self.outcome in UNMEASURED

    @property
    def outside_f1(self) -> bool:
        """Whether it is a D6 item outside of F1_PU, reported apart."""
        return self.self_item or self.control

    @property
    def says_nothing(self) -> bool:
        """Whether a DENY item's answer says nothing, so that its fact was neither told nor withheld."""
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
    """By figure; left out where the figure is n/a, only a range, or of a single ego."""


class RowScores(Record):
    """A backend with a reader over its seeds: a row of every table."""

    label: str
    """The cells' name without the seed."""
    backend: str
    backend_version: str | None
    options: dict[str, str]
    reader: str
    reading: Reading
    diagnostic: bool
    own_model: bool = False
    """Generating models of the backend's own are called: tokens are unknown, and the reader is not all that reads."""
    real_reader: bool
    isolation: IsolationGrade | None = None
    """How far the backend was kept from the data set, the weakest of its cells; None where the log does not say."""
    marks: tuple[Mark, ...] = ()
    """What a reader of the row must know before its figures."""
    without_answer: int = 0
    """Questions asked that ended without an answer, whoever failed; over the headline seeds."""
    non_answers: dict[NonAnswer, int] = Field(default_factory=dict)
    """Answers that say nothing, or not all, by reason; over the headline seeds."""
    reader_use: ReaderUse | None = None
    """None where no answer arrived."""
    load: CpuLoad | None = None
    """CPUs during the cell in which others, or all, kept them busiest; None where the log does not say."""
    timed: bool
    headline_seeds: tuple[str, ...]
    """Seeds behind the headline: s2 to s4 as far as they were run, else all that were."""
    counts: Counts
    """Over the headline seeds."""
    metrics: dict[str, Score]
    """Mean over the headline seeds with their sample standard deviation."""
    greedy: dict[str, Score] | None
    """Seed s1 (T = 0) apart, where the headline is of other seeds."""
    cells: tuple[CellScores, ...]
    slices: tuple[Slice, ...]
    source: SourceScores | None = None
    """None where the data set has no categories of a benchmark."""
    judge_error: JudgeError | None = None
    """None where the rules decided no gold in text."""
    permission: Permission | None
    answerable: tuple[AnswerableFamily, ...] = ()
    """By family; empty where no question has evidence."""
    retrieval: Retrieval | None
    errors: Errors | None
    latency: Latency | None
    ingest: Ingest | None
    kept: Retention | None = None  # words: a name of the file format
    """None where the memory does not say what it was given."""
    failures: tuple[Failure, ...]
    after_return_calls: int
    """Model calls after the RPC had returned, refused by the gateway: a violation of the contract."""
    budget_refusals: int = 0
    """Model calls that were refused because a budget was spent."""
    routes: dict[str, int]
    """How many questions each route decided."""
    deletion: tuple[Deletion, ...] = ()
    """By kind of target; empty where nothing was to be forgotten."""
    intervals: dict[str, Interval] = Field(default_factory=dict)
    """Of ``metrics``, the same draw of egos for every seed."""
    variances: tuple[Variance, ...] = ()
    """Kinds of spread by figure."""

    @property
    def rank_by(self) -> Literal["Avg", "Avg w/o D6"]:
        """The average to rank this memory by: without D6 while the interval of J holds 0, or there is none.

        F1_PU then says nothing of the memory: disclosing blindly with probability ½ has J = 0 and F1_PU = 50%.
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
    """J of a policy of D6; None for the others."""
    detail: str = ""
    reader: str | None = None
    """The reader that it belongs to, where it needs one (``question only``)."""


Decider = Literal["model", "typed_values", "text", "token_f1", "labels"]
"""What a verdict rests on. ``labels``: the deterministic labels of D6, in place of a judge that labels behaviour."""


class JudgeModel(Record):
    """A model behind verdicts, as it was asked."""

    model: str
    temperature: float | None
    seed: int | None
    """None: no seed was sent."""
    prompts_sha256: dict[JudgeTask, str]
    """Of the prompt files in use, by what was asked."""


class Judging(Record):
    """Where the verdicts that decided a run's questions come from. Counts are of questions, cells apart."""

    models: tuple[JudgeModel, ...] = ()
    """Empty for a judge without a model."""
    decided: dict[Decider, int] = Field(default_factory=dict)
    handed_over: int = 0
    """Of them, those that the rules made in place of the judge's model."""
    unjudged: int = 0
    """Questions that were answered and wait for this judge's verdict; each ends as ``infra_failed`` until then."""


class RunScores(Record):
    """All figures of a run. Computed from its log alone."""

    scores_version: int = SCORES_VERSION
    run_id: str
    started_at: str
    ended: str
    """``completed``, ``incomplete``, ``interrupted``, ``aborted``, or ``running`` where no process said."""
    dataset: DatasetRef
    protocol: str
    readers: tuple[ReaderRef, ...]
    memarena_version: str
    judge: str
    judge_versions: tuple[str, ...]
    """SHA-256 of what decided the verdicts used."""
    typed_share: float | None
    """Share of typed values among verdicts made without a model, the rest being token-F1; None without any."""
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
    """Verdicts per answer by the judge; above 1 its own variance is in ``variances``."""
    handed_over_share: float | None = None
    """Share of an LLM judge's verdicts that the rules without a model made in its place; None without such a judge."""
    judging: Judging = Judging()

    @property
    def d6_rules(self) -> tuple[str, ...]:
        """Whether readers' prompts say who may know what: ``stated`` or ``inferred``; empty without rows."""
        return tuple(sorted({row.reading.d6_rules for row in self.rows}))

    @property
    def not_judged(self) -> int:
        """Questions that the judge does not judge at all; they are in ``planned``, and in no row's counts."""
        counted = max((cell.counts.planned for row in self.rows for cell in row.cells), default=None)
        return 0 if counted is None else sum(self.planned.values()) - counted
