"""What a display says of a stage, computed from its counts.

The rate is what this run has finished, over the time from the start of the stage's
first task to the last document: neither the start of the workers nor the tasks of an
earlier run change it. Where only the size of the input is known, the number of all
documents is estimated from what is read of it.
"""

from typing import NamedTuple

from precis.model.progress.counters import Counts
from precis.model.progress.stages import Stage

STARTING, RUNNING, DONE, FAILED = "starting", "running", "done", "failed"


class StageState(NamedTuple):
    """A stage at one moment.

    Attributes:
      name, unit, note: as in `Stage`.
      state: `starting`, `running`, `done` or `failed`.
      documents: finished, those of an earlier run included.
      total: of the documents; None where it is not known.
      is_total_estimated: whether the total follows from the size of what is done.
      share: that is done, from 0 to 1; None where it is not known.
      rate: documents a second; None before the first.
      seconds_left: None where it is not known.
      seconds: since the stage began; the time it took where it has ended.
      tokens, dead_letters, flagged: so far.
      tokens_per_second: over the time of the rate; None without tokens.
      is_elsewhere: whether the workers are on other machines.
    """

    name: str
    unit: str
    note: str
    state: str
    documents: int
    total: int | None
    is_total_estimated: bool
    share: float | None
    rate: float | None
    seconds_left: float | None
    seconds: float
    tokens: int
    tokens_per_second: float | None
    dead_letters: int
    flagged: int
    is_elsewhere: bool


def measure(
    stage: Stage, counts: Counts, *, now: float, began: float, state: str = ""
) -> StageState:
    """The state of a stage.

    Args:
      stage: the stage.
      counts: what is done of it.
      now, began: this moment, and when the stage began, in seconds.
      state: `done` or `failed` where it has ended.
    """
    documents = counts.documents + counts.earlier_documents
    total, is_estimated, share = _total(stage, counts, documents, is_done=state == DONE)
    seconds = counts.ended - counts.started
    has_rate = seconds > 0
    is_started = counts.started > 0 or documents > 0
    return StageState(
        name=stage.name,
        unit=stage.unit,
        note=stage.note,
        state=state or (RUNNING if is_started else STARTING),
        documents=documents,
        total=total,
        is_total_estimated=is_estimated,
        share=share,
        rate=counts.documents / seconds if has_rate and counts.documents else None,
        seconds_left=None if state else _seconds_left(stage, counts, now),
        seconds=now - began,
        tokens=counts.tokens + counts.earlier_tokens,
        tokens_per_second=counts.tokens / seconds
        if has_rate and counts.tokens
        else None,
        dead_letters=counts.dead_letters,
        flagged=counts.flagged,
        is_elsewhere=stage.is_elsewhere,
    )


def _total(
    stage: Stage, counts: Counts, documents: int, *, is_done: bool
) -> tuple[int | None, bool, float | None]:
    """The total, whether it is an estimate, and the share that is done."""
    if stage.is_elsewhere:
        return None, False, None
    if stage.total is not None:
        done = min(documents, stage.total)
        return stage.total, False, 1.0 if is_done else done / max(stage.total, 1)
    if is_done and (documents or stage.size is not None):
        return documents, False, 1.0
    if stage.size is None:
        return None, False, None
    size = min(counts.size + counts.earlier_size, stage.size)
    share = size / max(stage.size, 1)
    if size == stage.size:
        return documents, False, share
    if not documents or not size:
        return None, False, share
    return _rounded(documents / share), True, share


def _seconds_left(stage: Stage, counts: Counts, now: float) -> float | None:
    """The time that the rest takes at the rate so far."""
    seconds = counts.ended - counts.started
    if stage.total is not None:
        left = stage.total - counts.documents - counts.earlier_documents
        done = counts.documents
    elif stage.size is not None:
        left = stage.size - counts.size - counts.earlier_size
        done = counts.size
    else:
        return None
    if seconds <= 0 or not done:
        return None
    return max(max(left, 0) / done * seconds - (now - counts.ended), 0.0)


def _rounded(number: float) -> int:
    """A number of three digits and zeros: 20,000 for 19,963."""
    return int(round(number, min(3 - len(str(int(number))), 0)))
