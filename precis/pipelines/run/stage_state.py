"""What a display says of a stage, computed from its counts, in words and as JSON.

    encode  43%  8,640 / about 20,000 documents  1,204/s  0:07 left  310,000 tokens/s
    encode  20,000 documents  1,198/s  0:19  309,000 tokens/s  3 dead letters

The rate is what this run has finished, over the time from the start of the stage's
first task to the last document: neither the start of the workers nor the tasks of an
earlier run change it. Where only the size of the input is known, the number of all
documents is estimated from what is read of it.
"""

import datetime
from typing import Any, NamedTuple

import orjson

from precis.model.progress.counters import Counts
from precis.model.progress.stages import Stage

STARTING, RUNNING, DONE, FAILED = "starting", "running", "done", "failed"


class StageState(NamedTuple):
    """A stage at one moment.

    Attributes:
      stage: its name.
      state: `starting`, `running`, `done` or `failed`.
      documents: finished, those of an earlier run included.
      total: of the documents; None where it is not known.
      is_total_estimated: whether the total follows from the size of what is done.
      unit, note: as in `Stage`.
      rate: documents a second; None before the first.
      seconds: since the stage began; the time it took where it has ended.
      seconds_left: None where it is not known.
      tokens, dead_letters, flagged: so far.
      tokens_per_second: over the time of the rate; None without tokens.
      share: that is done, from 0 to 1; None where it is not known.
    """

    stage: str
    state: str
    documents: int
    total: int | None
    is_total_estimated: bool
    unit: str
    rate: float | None
    seconds: float
    seconds_left: float | None
    tokens: int
    tokens_per_second: float | None
    dead_letters: int
    flagged: int
    note: str
    share: float | None

    @property
    def is_ended(self) -> bool:
        """Whether the stage is over."""
        return self.state in (DONE, FAILED)


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
    tokens = counts.tokens + counts.earlier_tokens
    seconds = counts.ended - counts.started
    # What is done of the whole, and by this run.
    total = whole = stage.total
    done, own = documents, counts.documents
    if total is None:
        whole, done, own = stage.size, counts.size + counts.earlier_size, counts.size
    share = None if whole is None else min(done / max(whole, 1), 1.0)
    if state == DONE and (documents or whole is not None):
        share = 1.0
    is_estimated = total is None and 0 < (share or 0) < 1 and documents > 0
    if total is None and share == 1:
        total = documents
    elif is_estimated and share:
        total = _rounded(documents / share)
    is_estimated |= stage.is_total_estimated
    left = None
    if whole and share is not None and own and seconds > 0 and not state:
        left = max((1 - share) * whole / own * seconds - (now - counts.ended), 0.0)
    has_begun = counts.started > 0 or documents > 0
    is_first = not (counts.documents or state)
    return StageState(
        stage=stage.name,
        state=state or (RUNNING if has_begun else STARTING),
        documents=documents,
        total=total,
        is_total_estimated=is_estimated,
        unit=stage.unit,
        rate=_per_second(counts.documents, seconds),
        seconds=now - began,
        seconds_left=left,
        tokens=tokens,
        tokens_per_second=_per_second(counts.tokens, seconds),
        dead_letters=counts.dead_letters,
        flagged=counts.flagged,
        note=(stage.first_note if is_first else "") or stage.note,
        share=share,
    )


def steady_rate(counts: Counts) -> float | None:
    """Documents a second after each worker's first batch, or over the whole run if
    those batches are most of it; None before the first.
    """
    later = counts.documents - counts.first_documents
    rate = _per_second(later, counts.ended - counts.first)
    if rate and later >= counts.first_documents:
        return rate
    return _per_second(counts.documents, counts.ended - counts.started)


def _per_second(number: int, seconds: float) -> float | None:
    return number / seconds if number and seconds > 0 else None


def _rounded(number: float) -> int:
    """A number of three digits and zeros: 20,000 for 19,963."""
    return int(round(number, min(3 - len(str(int(number))), 0)))


def words(state: StageState) -> list[str]:
    """What a line says of a stage behind its name, the most important first."""
    share, rate = state.share, state.rate
    parts = ["stopped"] if state.state == FAILED else []
    if share is not None and not state.is_ended:
        parts.append(f"{100 * share:3.0f}%")
    if state.state == STARTING and share is not None:
        parts.append("starting")
    elif state.documents or not (share is None or state.is_ended or state.note):
        parts.append(_documents(state))
    if rate is not None:
        parts.append(f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.2g}/s")
    if share == 1 and not state.is_ended:
        parts.append("finishing")
    if state.seconds_left is not None and share != 1:
        parts.append(f"{clock(state.seconds_left)} left")
    else:
        parts.append(clock(state.seconds))
    if state.tokens_per_second is not None:
        parts.append(f"{state.tokens_per_second:,.0f} tokens/s")
    if state.dead_letters:
        plural = "s" * (state.dead_letters > 1)
        parts.append(f"{state.dead_letters:,} dead letter{plural}")
    if state.flagged:
        parts.append(f"{state.flagged:,} flagged")
    return [*parts, state.note] if state.note else parts


def _documents(state: StageState) -> str:
    is_all = state.total is None or state.documents >= state.total
    last_number = state.documents if is_all else state.total
    unit = state.unit.removesuffix("s") if last_number == 1 else state.unit
    if is_all:
        return f"{state.documents:,} {unit}"
    about = "about " * state.is_total_estimated
    return f"{state.documents:,} / {about}{state.total:,} {unit}"


def clock(seconds: float) -> str:
    """Minutes and seconds, as in 0:07; with hours, 2:00:07."""
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"


def plain_line(state: StageState) -> str:
    """A line for a log."""
    is_new = state.state == STARTING and state.seconds < 1
    return "  ".join([state.stage, *(["starting"] if is_new else words(state))])


def line_json(command: str, **fields: Any) -> str:
    """A message, or a state, as a JSON object; docs/RUNNING.md says what its fields
    mean.
    """
    for name, value in fields.items():
        fields[name] = round(value, 3) if isinstance(value, float) else value
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
    return orjson.dumps({"time": now, "command": command, **fields}).decode()
