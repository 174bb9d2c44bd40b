"""What a row is made of: shares and counts, and by subject permission, retrieval, errors, times and costs."""

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
    """``low`` and ``high``: all questions that say nothing about the memory wrong, or all right."""
    sd: float | None = None
    """Sample standard deviation over seeds, where there are two or more."""
    seeds: int = 1


class Counts(Record):
    """How many questions ended how."""

    planned: int = 0
    correct: int = 0
    wrong: int = 0
    backend_failed: int = 0
    infra_failed: int = 0
    reader_not_applicable: int = 0
    """The reader finds no context or no question in the prompt of the backend."""

    @property
    def asked(self) -> int:  # words: a name of the file format
        """Questions that ended in any way."""
        return self.correct + self.wrong + self.backend_failed + self.unmeasured

    @property
    def unmeasured(self) -> int:
        """Questions that say nothing about the memory: with any, there is no figure, only a range."""
        return self.infra_failed + self.reader_not_applicable

    @property
    def missing(self) -> int:
        """Questions not asked yet."""
        return self.planned - self.asked

    @property
    def accuracy(self) -> Score:
        """Share answered right, as a range where some say nothing about the memory; n/a without questions."""
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
    """Mean token-F1 of the open answers in it."""
    recall_at_k: float | None = None
    """Mean recall of evidence sessions among the first ten items."""
    figures: dict[str, Score] = Field(default_factory=dict)
    """Every figure over this part alone, as far as it has questions for one; empty by family and by dimension."""


class SourcePart(Record):
    """The score over one category of the benchmark that a data set was imported from, or over several of them."""

    key: str
    counts: Counts
    score: Score
    interval: Interval | None = None
    """Of the score, over draws of egos; None for a range, and of a single ego."""
    rubric: float | None = None
    """Mean score by rubric, each sentence with 0, 0.5 or 1; None where none decides, or an answer has no verdict."""
    published: float | None = None
    """The same answers by the golds as published, before corrections; None without corrections, or where the judge has
    a model, whose word on those golds is not known."""


class SourceScores(Record):
    """The scores of a row by the source's own categories, seeds pooled."""

    by: str
    """The key of the questions' metadata: ``category`` (LoCoMo), ``ability`` (BEAM), ``question_type``, ``kind``."""
    parts: tuple[SourcePart, ...]


class JudgeError(Record):
    """The share right over golds in text that the rules judged, and what it may be given the judge's error rates."""

    answers: int
    """Seeds pooled."""
    questions: int
    observed: float
    """Share right as judged."""
    corrected: float
    """(p - fp) / (1 - fn - fp), clipped to 0..1 (Rogan and Gladen 1978)."""
    low: float
    high: float
    """Ends of its 95% interval: sampling and the uncertainty of both rates."""
    clusters: int | None
    """Egos behind the sampling; None: Wilson's interval over questions."""
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
    """Whether the interval lies above 0: only then may a report say that access is controlled. None: n/a."""
    deny_labels: dict[str, int]
    """Behaviour on DENY items by label; those that leaked the fact are under ``disclosed``."""
    allow_labels: dict[str, int]
    known_facts: int
    """Facts that the same system disclosed to its owner."""
    buckets: dict[Bucket, int] = Field(default_factory=dict)
    """DENY items whose fact was withheld, by cause, as the judge named it, else by label (``refuse`` is ``no_access``,
    ``dont_know`` itself, the rest ``other``)."""
    buckets_by: Literal["judge", "labels", "both"] = "labels"
    """Whether causes were named by a judge, taken from labels, or some each."""
    unsaid: int = 0
    """DENY items whose answer says nothing (empty, cut off, filtered, spent on reasoning) and tells nothing: they are
    no withheld secrets, so P, J and F1_PU are over the others, and they count as wrong."""
    real_refusals: float | None = None
    """Share of ``no_access`` among the DENY items whose fact was withheld."""
    labels_by: Literal["rules", "judge", "both"] = "rules"
    """Whether behaviour labels are deterministic, a judge's, or some each."""
    deny_leaked_paper: int = 0
    """DENY items whose fact is a substring of the output, or whose backend failed: leaked, as the paper counts."""
    allow_disclosed_paper: int = 0
    """ALLOW items labelled ``disclose_correct``: disclosed, as the paper counts."""
    unmeasured: int = 0
    """Items of both that ended in a way that says nothing about the memory."""


class AnswerableFamily(Record):
    """*Answerable* over one family of questions, seeds pooled."""

    family: str
    questions: int
    score: Score
    """A range where some say nothing about the memory; n/a where a memory does not say where its items come from."""
    interval: Interval | None = None
    """Over draws of egos; None for a range, n/a, and of a single ego."""


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
    """``text``: sessions count where the items' words bear them out. ``claimed``: most items rewrite, or were not
    audited, so that what they name counts, within a bound where they were."""
    claimed_recall_at_k: float | None = None
    """Recall at k by what the backend names, unchecked; None where it names nothing."""
    unsupported_claims: float | None = None
    """Share of the sessions named that the items cannot bear out; None where none is named or nothing was audited."""


class Errors(Record):
    """Wrong answers to answerable questions with evidence, split by where they went wrong."""

    not_ingested: int = 0
    not_retrieved: int = 0
    cut_from_prompt: int = 0
    """Retrieved, cut from the prompt: all of it found by Search, not all of it shown to the reader."""
    misread: int = 0
    unknown: int = 0
    """Wrong answers to such questions where the backend does not say where its items come from."""


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
    """How many segments have samples; this is the largest one, since samples never mix across a restart."""
    left_out: int
    """Samples of the other segments."""
    search: Percentiles
    """Search as measured, with the floor."""
    search_less_floor_p50: float | None = None
    """Median of Search less that of a null backend on the same machine, not below 0. None if one is unknown."""
    ttft: Percentiles
    rest: Percentiles
    end_to_end: Percentiles
    """T_search + T_ttft."""
    first_delta: Percentiles
    gateway_ttft: Percentiles
    """Over questions whose server reports its own prompt time, as the next."""
    server_prompt: Percentiles


class Ingest(Record):
    """What ingest cost."""

    days: int
    failed: int
    """Calls that did not end OK."""
    sessions: int
    turns: int
    seconds: float | None
    """None where the run timed nothing (a cache)."""
    sessions_per_s: float | None
    mb_per_s: float | None
    model_calls: int
    prompt_tokens: int
    completion_tokens: int
    model_seconds: float | None = None
    """Of ``seconds``, what models took over the calls of Ingest, as the gateway saw it."""
    unsized_calls: int = 0
    """Model calls whose tokens are not all known: the sums of tokens are then too small."""
    untimed_calls: int = 0
    """Model calls whose end was not observed: ``model_seconds`` is then too small."""


class Retention(Record):
    """What a memory says that it kept of what it was given: counts of its notices over days that were committed."""

    days: int
    """Days with sessions."""
    sessions_given: int  # words: a name of the file format
    extraction_calls: int
    """0 also where the memory does not count them: a server of its own makes them, or it has no LLM."""
    extraction_unusable: int
    """Of these, replies of which nothing was used."""
    extraction_empty: int
    """Sessions of which nothing was stored."""
    sessions_failed: int
    """Sessions lost although their day was committed."""
    memories_stored: int
    memories_changed: int
    memories_removed: int
    days_nothing_stored: int
    searches: int
    """Searches of the headline seeds that ended OK."""
    searches_empty: int
    """Of these, without an item."""


class Deletion(Record):
    """What a memory still found of what it had been asked to forget; apart from every score."""

    target: Literal["session", "subject", "fact"]
    forgotten: int
    """Forget calls that ended OK."""
    failed: int
    found_before: int
    """Turns that Search found before: the n of the next two."""
    found_again: int
    answered_again: int | None
    """Turns that an Answer was still read from; None where the backend has no Answer."""
    controls: int
    """Turns of other sessions that Search found before."""
    controls_lost: int
    """Of these, not found afterwards: forgotten without having been asked to."""


class ReaderUse(Record):
    """What the answers of a row took of the reader."""

    answers: int
    """Answers that arrived."""
    without_call: int
    """Of these, made without any call of the reader that gave text."""
    calls: float
    """Mean calls per answer."""
    tokens: float | None
    """Mean tokens read and written per answer, over those whose tokens are known; None where no answer's are."""


class Failure(Record):
    """A cause and how often it came up."""

    outcome: Literal["backend_failed", "infra_failed", "reader_not_applicable"]
    cause: str
    count: int
    share: float
    """Of the questions asked."""


class Floor(Record):
    """Round trips of null backend and null reader on this machine, p50 in milliseconds."""

    search: Percentiles
    gateway_hop: Percentiles
    gateway_added: Percentiles | None = None
    """What the gateway adds to a first token, compared with a direct call; None where that was not measured."""
