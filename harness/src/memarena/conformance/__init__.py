"""Checks any backend against SPEC.md from outside, by its address alone (the conformance suite for vendors)."""

from memarena.conformance.backend_under_test import Patience
from memarena.conformance.check import Check, CheckResult
from memarena.conformance.checks import all_checks
from memarena.conformance.errors import ConformanceError
from memarena.conformance.junit import write_junit
from memarena.conformance.life_size import LifeSize
from memarena.conformance.printing import check_line, result_line, shared_causes, summary_line
from memarena.conformance.scripted_models import RealModel
from memarena.conformance.suite import Settings, SuiteResult, restart_by, run_suite, select

__all__ = [
    "Check",
    "CheckResult",
    "ConformanceError",
    "LifeSize",
    "Patience",
    "RealModel",
    "Settings",
    "SuiteResult",
    "all_checks",
    "check_line",
    "restart_by",
    "result_line",
    "run_suite",
    "select",
    "shared_causes",
    "summary_line",
    "write_junit",
]
