"""Readers: starting, checking and scripting the model servers that answer over what a memory found."""

from memarena.readers.extractive import data_files
from memarena.readers.scripted import NullReader, Script
from memarena.readers.starting import probe, start_reader
from memarena.readers.types import ReaderError, RunningReader

__all__ = ["NullReader", "ReaderError", "RunningReader", "Script", "data_files", "probe", "start_reader"]
