"""Judges answers whose gold is a typed value: a date, an amount, a name, a thing, a set or an order.

The steps are ``plain_text`` (unwraps the answer), ``masking`` (hides its values), ``segments`` and ``claims`` (read
whose value it states, and which version), ``compare`` and ``commitment`` (decide); ``sets`` and ``orders`` decide such
values alone. ``kinds/open_answer.py`` calls them.
"""
