"""The models that are trained here."""

from __future__ import annotations

from collections.abc import Mapping

from judge_training import abstention
from judge_training.task import Task

TASKS: Mapping[str, Task] = {task.name: task for task in (abstention.TASK,)}
