"""Writes a run as JUnit XML, for continuous integration."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from memarena.conformance.errors import ConformanceError
from memarena.conformance.printing import one_line
from memarena.conformance.suite import SuiteResult


def write_junit(result: SuiteResult, path: Path) -> None:
    """Write one test case for each check. Raises ConformanceError if the file cannot be written."""
    try:
        path.write_bytes(junit(result))
    except OSError as error:
        raise ConformanceError(f"--junit {path}: cannot be written: {error.strerror}") from error


def junit(result: SuiteResult) -> bytes:
    """Return the XML. A skipped check has the reason, a failed one what was observed."""
    suite = ElementTree.Element(
        "testsuite",
        name=one_line(f"memarena.conformance {result.described.name or result.target}"),
        tests=str(len(result.results)),
        failures=str(len(result.ids("failed"))),
        skipped=str(len(result.ids("skipped"))),
        errors="0",
        time=f"{result.duration_s:.3f}",
    )
    for each in result.results:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=f"memarena.conformance.{each.check.chapter}",
            name=each.check.check_id,
            time=f"{each.duration_s:.3f}",
        )
        properties = ElementTree.SubElement(case, "properties")
        for clause in each.check.clauses:
            ElementTree.SubElement(properties, "property", name="clause", value=clause)
        if each.status == "advice":
            ElementTree.SubElement(case, "system-out").text = one_line(each.message)
        elif each.status != "passed":
            tag = "failure" if each.status == "failed" else "skipped"
            note = ElementTree.SubElement(case, tag, message=one_line(each.message))
            note.text = f"{', '.join(each.check.clauses)}: {each.check.title}"
    ElementTree.indent(suite)
    return bytes(ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True))
