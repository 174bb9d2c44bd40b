"""Readers: starting, checking and scripting the model servers that answer over what a memory found."""

from memarena.readers.extractive import data_files
from memarena.readers.golden import count_template, golden_counts, template_fault
from memarena.readers.helpers import HELPER_ROLES, HelperRole, start_helper
from memarena.readers.scripted import NullReader, Script
from memarena.readers.sglang_settings import SglangSettings
from memarena.readers.starting import probe, start_reader
from memarena.readers.types import ReaderError, RunningReader
from memarena.readers.warming import warm_up

__all__ = [
    "HELPER_ROLES",
    "HelperRole",
    "NullReader",
    "ReaderError",
    "RunningReader",
    "Script",
    "SglangSettings",
    "count_template",
    "data_files",
    "golden_counts",
    "probe",
    "start_helper",
    "start_reader",
    "template_fault",
    "warm_up",
]
