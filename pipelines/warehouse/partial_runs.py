"""Runs over a part of their corpus, whose keys may be those of other documents.

corpus                     x: A    x: B    x: C
keys of a full run         x, 0    x, 1    x, 2
keys of a run that         -       x, 0    x, 1
does not take A

`--limit` takes the first documents, so its keys are those of a full run.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from precis.model.progress.stages import say
from precis.pipelines.warehouse.finished_run import FinishedRun

_REPEAT = "document_id_repeat"


def warn_of_partial_run(command: str, run: FinishedRun, key: Sequence[str]) -> None:
    """Warns where rows of a run may replace those of other documents in a table.

    Args:
      command: the command that says so.
      run: that is loaded.
      key: the columns that tell rows apart.
    """
    flag = _partial_flag(run.flags)
    if flag and _REPEAT in key:
        say(
            f"precis {command}: warning: {run.folder} is a run with {flag}, and counts "
            f"{_REPEAT} among the documents that it took; where the corpus repeats "
            "ids, its rows may replace those of other documents in a table with rows "
            "of other runs; load it into a table of its own"
        )


def _partial_flag(flags: Mapping[str, Any]) -> str:
    """The flag by which a run leaves out documents before others; "" if there is none.

    Without --split_field the hash of an id decides its split, so that all documents
    with the id are in one split.
    """
    if flags.get("sample"):
        return "--sample"
    if flags.get("retry_failures"):
        return "--retry_failures"
    if flags.get("split") and flags.get("split_field"):
        return "--split and --split_field"
    return ""
