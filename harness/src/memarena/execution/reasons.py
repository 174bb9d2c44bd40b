"""Words the reason why a value in a user's file or flag is invalid."""

from __future__ import annotations

from pydantic_core import ErrorDetails

# By pydantic's type of error; {ge} and the like are in the error's context.
_REASONS = {
    "greater_than_equal": "expected {ge} or more",
    "greater_than": "expected more than {gt}",
    "less_than_equal": "expected at most {le}",
    "less_than": "expected less than {lt}",
    "literal_error": "expected one of {expected}",
    "enum": "expected one of {expected}",
    "int_parsing": "expected a whole number",
    "int_from_float": "expected a whole number",
    "float_parsing": "expected a number",
    "finite_number": "expected a finite number",
    "too_short": "expected at least one",
    "string_too_short": "expected a value",
    "string_pattern_mismatch": "expected text of the form {pattern}",
    "tuple_type": "expected a list",
    "list_type": "expected a list",
    "missing": "missing",
    "extra_forbidden": "there is no such setting",
}


def reason_of(first: ErrorDetails) -> str:
    """Return why a value is invalid, in the project's own wording if there is one, else in pydantic's."""
    words = _REASONS.get(first["type"])
    if words is None:
        return first["msg"].removeprefix("Value error, ")
    # pydantic writes choices as "'a', 'b' or 'c'": messages of this project have a, b, c.
    context = {key: f"{value:g}" if isinstance(value, float) else value for key, value in first.get("ctx", {}).items()}
    return (
        words.format(**context).replace("'", "").replace(" or ", ", ")
        if "expected}" in words
        else words.format(**context)
    )
