"""One question from plan to verdict, as a reader of the report sees it."""
