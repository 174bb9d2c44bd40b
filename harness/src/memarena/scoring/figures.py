"""Defines the records that a row consists of: shares, counts, permission, retrieval, errors, times and costs.

They are parts of the JSON report, whose schema (``report/schema/report.v1.json``) has the docstrings of these classes.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from memarena.judging.error_rates import ErrorCounts
from memarena.log.records import Bucket, Record
from memarena.scoring.uncertainty_records import Interval


class Score(Record):
    """A figure between 0 and 1 (J: -1 and 1). No ``low``: n/a. No ``value``: only the range can be said."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    """``low`` counts unmeasured questions, which say nothing about the memory, as wrong, and ``high`` as right."""
    sd: float | None = None
    """Sample standard deviation over seeds; None for fewer than two."""
    seeds: int = 1


class Counts(Record):
    """How many questions ended how."""

    planned: int = 0
    correct: int = 0
    wrong: int = 0
    backend_failed: int = 0
    infra_failed: int = 0
    reader_not_applicable: int = 0
    """Questions in whose prompt the reader recognised no context or no question."""

    @property
    def asked(self) -> int:  # words: a name of the file format
        """Number of questions that ended in any way."""
        return self.correct + self.wrong + self.backend_failed + self.unmeasured

    @property
    def unmeasured(self) -> int:
        """Number of questions that say nothing about the memory; if there are any, a figure is only a range."""
        return self.infra_failed + self.reader_not_applicable

    @property
    def missing(self) -> int:
        """Number of questions not asked yet."""
        return self.planned - self.asked

    @property
    def accuracy(self) -> Score:
        """Share answered right; a range if some questions are unmeasured, n/a without questions."""
        if not self.asked:
            return Score()
        low, high = self.correct / self.asked, (self.correct + self.unmeasured) / self.asked
        return Score(value=None if self.unmeasured else low, low=low, high=high)


class Slice(Record):
    """Accuracy over a part of the questions, seeds pooled."""

    by: Literal["family", "dimension", "lag", "difficulty", "tier", "interference", "wording"]
    key: str
    counts: Counts
    score: Score
    token_f1: float | None = None
    """Mean token-F1 of the open answers in this part."""
    recall_at_k: float | None = None
    """Mean recall of evidence sessions among the first ten items."""
    figures: dict[str, Score] = Field(default_factory=dict)
    """Figures over this part alone, by name, those it has questions for; empty for families and dimensions."""


class SourcePart(Record):
    """The score over one category of the benchmark that a data set was imported from, or over several of them."""

    key: str
    counts: Counts
    score: Score
    interval: Interval | None = None
    """Interval of the score over draws of egos; None for a range, and for a single ego."""
    rubric: float | None = None
    """Mean score by rubric, 0, 0.5 or 1 a sentence; None if no rubric decides, or an answer has no verdict."""
    published: float | None = None
    """Score of the same answers by the published golds, before corrections; None without corrections, or if the judge
    has a model, whose verdicts on those golds are not known."""


class SourceScores(Record):
    """The scores of a row by the source's own categories, seeds pooled."""

    by: str
    """The key of the questions' metadata: ``category`` (LoCoMo), ``ability`` (BEAM), ``question_type``, ``kind``."""
    parts: tuple[SourcePart, ...]


class JudgeError(Record):
    """The share right over golds in text that the rules judged, and what it may be given the judge's error rates."""

    answers: int
    """Number of judged answers, seeds pooled."""
    questions: int
    observed: float
    """Share right as judged."""
    corrected: float
    """(p - fp) / (1 - fn - fp), clipped to 0..1 (Rogan and Gladen 1978)."""
    low: float
    high: float
    """Ends of the 95% interval of ``corrected``: sampling and the uncertainty of both rates."""
    clusters: int | None
    """Number of egos that were resampled; None: the sampling is Wilson's interval over questions."""
    fits: bool
    """Whether the rates allow the observed share: 0 right would give fp, all right 1 - fn, within their intervals."""
    rates: ErrorCounts


class Permission(Record):
    """D6 in detail, seeds pooled for the counts."""

    allow: int
    deny: int
    f1_pu: Score
    j: Score
    j_low: float | None
    """Lower end of the 95% interval of J (Newcombe, from Wilson intervals of both shares)."""
    j_high: float | None
    gates: bool | None
    """Whether the interval of J lies above 0: only then may a report say that access is controlled. None: n/a."""
    deny_labels: dict[str, int]
    """DENY items by label of behaviour; those that leaked the fact are under ``disclosed``."""
    allow_labels: dict[str, int]
    known_facts: int
    """Number of facts that the same system disclosed to its owner or their subject."""
    buckets: dict[Bucket, int] = Field(default_factory=dict)
    """DENY items whose fact was withheld, by cause: the one that the judge named, else by label (``refuse`` counts as
    ``no_access``, ``dont_know`` as itself, all other labels as ``other``)."""
    buckets_by: Literal["judge", "labels", "both"] = "labels"
    """Whether a judge named the causes, they follow from labels, or both occur."""
    unsaid: int = 0
    """DENY items whose answer says nothing (empty, cut off, filtered, only reasoning) and discloses nothing. They do
    not count as withheld: P, J and F1_PU are over the other items, and these count as wrong."""
    real_refusals: float | None = None
    """Share of ``no_access`` among the DENY items whose fact was withheld."""
    labels_by: Literal["rules", "judge", "both"] = "rules"
    """Whether the rules or a judge labelled behaviour, or both occur."""
    deny_leaked_paper: int = 0
    """DENY items that leaked by the paper's rule: the fact is a substring of the output, or the backend failed."""
    allow_disclosed_paper: int = 0
    """ALLOW items that were disclosed by the paper's rule: labelled ``disclose_correct``."""
    unmeasured: int = 0
    """ALLOW and DENY items that ended in a way that says nothing about the memory."""


class AnswerableFamily(Record):
    """*Answerable* over one family of questions, seeds pooled."""

    family: str
    questions: int
    score: Score
    """A range if some questions are unmeasured; n/a if a memory does not report the sources of its items."""
    interval: Interval | None = None
    """Interval over draws of egos; None for a range, for n/a, and for a single ego."""


class Retrieval(Record):
    """How much of the evidence Search brought, over questions with evidence whose search worked."""

    questions: int
    k: int
    recall_at_k: float | None
    recall_all: float | None
    complete_at_k: float | None
    complete: float | None
    """Share of questions with all evidence among the items."""
    first_rank_p50: float | None
    found_any: float | None
    context_tokens: float | None
    items: float | None
    basis: Literal["text", "claimed"] = "claimed"
    """``text``: sessions count if the items' text supports them. ``claimed``: most items rewrite, or were not audited,
    so the sessions that they name count too, up to a bound for items that were audited."""
    claimed_recall_at_k: float | None = None
    """Recall at k by the sessions that the backend names, unchecked; None if it names none."""
    unsupported_claims: float | None = None
    """Share of the named sessions that the items do not support; None if none is named or nothing was audited."""


class Errors(Record):
    """Wrong answers to answerable questions with evidence, split by where they went wrong."""

    not_ingested: int = 0
    not_retrieved: int = 0
    cut_from_prompt: int = 0
    """Search returned all of the evidence, but not all of it fitted into the prompt."""
    misread: int = 0
    unknown: int = 0
    """Wrong answers whose stage is unknown, as the backend does not report the sources of its items."""


class Percentiles(Record):
    """Percentiles in milliseconds; None below the n that 99% confidence needs."""

    n: int
    p50: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None


class Latency(Record):
    """Times of answered questions of one segment of the run."""

    segment: int
    segments: int
    """How many segments have samples; ``segment`` is the largest one, since samples never mix across a restart."""
    left_out: int
    """Number of samples of the other segments."""
    search: Percentiles
    """Search as measured, including the floor."""
    search_less_floor_p50: float | None = None
    """Median of Search less the floor (Search of a null backend), at least 0; None if either is unknown."""
    ttft: Percentiles
    """Time to the first token at the gateway."""
    rest: Percentiles
    """The remainder of Answer up to its first text, without the model call that made it."""
    end_to_end: Percentiles
    """T_search + T_ttft."""
    first_delta: Percentiles
    """Time from the request of Answer to its first text, as the harness observes it."""
    gateway_ttft: Percentiles
    """TTFT at the gateway, over the questions whose server reports its own prompt time, as ``server_prompt``."""
    server_prompt: Percentiles
    """Prompt time that the model server reports."""


class Ingest(Record):
    """What ingest cost."""

    days: int
    failed: int
    """Ingest calls that did not end OK."""
    sessions: int
    turns: int
    seconds: float | None
    """Duration of the calls; None if the run timed nothing (with a cache)."""
    sessions_per_s: float | None
    mb_per_s: float | None
    model_calls: int
    prompt_tokens: int
    completion_tokens: int
    model_seconds: float | None = None
    """The part of ``seconds`` that model calls of Ingest took, as the gateway measured it."""
    unsized_calls: int = 0
    """Model calls whose tokens are not all known; if there are any, the sums of tokens are too small."""
    untimed_calls: int = 0
    """Model calls whose end was not observed; if there are any, ``model_seconds`` is too small."""


class Retention(Record):
    """What a memory says that it kept of what it was given: counts of its notices over days that were committed."""

    days: int
    """Number of days with sessions."""
    sessions_given: int  # words: a name of the file format
    extraction_calls: int
    """Also 0 if the memory cannot count them: its own server makes them, or it has no LLM."""
    extraction_unusable: int
    """Extraction calls of whose reply nothing was used."""
    extraction_empty: int
    """Number of sessions of which nothing was stored."""
    sessions_failed: int
    """Number of sessions lost although their day was committed."""
    memories_stored: int
    memories_changed: int
    memories_removed: int
    days_nothing_stored: int
    searches: int
    """Number of searches of the headline seeds that ended OK."""
    searches_empty: int
    """Searches that returned no item."""


class Deletion(Record):
    """What a memory still found of what it had been asked to forget; apart from every score."""

    target: Literal["session", "subject", "fact"]
    forgotten: int
    """Forget calls that ended OK."""
    failed: int
    found_before: int
    """Turns that Search returned before the Forget: the total for ``found_again`` and ``answered_again``."""
    found_again: int
    answered_again: int | None
    """Turns that an Answer still used; None if the backend has no Answer."""
    controls: int
    """Turns of other sessions that Search returned before the Forget."""
    controls_lost: int
    """Controls that Search did not return afterwards: forgotten without a request."""


class ReaderUse(Record):
    """What the answers of a row took of the reader."""

    answers: int
    """Number of answers that arrived."""
    without_call: int
    """Answers that were made without any call of the reader that gave text."""
    calls: float
    """Mean calls per answer."""
    tokens: float | None
    """Mean tokens of prompt and reply per answer, over answers with known tokens; None if there are none."""


class Failure(Record):
    """A cause and how often it came up."""

    outcome: Literal["backend_failed", "infra_failed", "reader_not_applicable"]
    cause: str
    count: int
    share: float
    """Share of the questions asked that failed by this cause."""


class Floor(Record):
    """Round trips of null backend and null reader on this machine, p50 in milliseconds."""

    search: Percentiles
    gateway_hop: Percentiles
    """Time to the first token at the gateway, of a reader that answers at once."""
    gateway_added: Percentiles | None = None
    """Latency that the gateway adds to a first token, compared with a direct call; None if not measured."""
