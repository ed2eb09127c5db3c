"""The state of a stage in words, for lines, and as JSON, for machines.

encode  43%  8,640 / about 20,000 documents  1,204/s  0:07 left  310,000 tokens/s
encode  20,000 documents  1,198/s  0:19  309,000 tokens/s  3 dead letters
"""

import datetime
from typing import Any

import orjson

from precis.pipelines.run.progress_state import FAILED, RUNNING, StageState


def words(state: StageState) -> list[str]:
    """What a line says of a stage behind its name, the most important first."""
    if state.state in ("done", FAILED):
        return _ended_words(state)
    parts = []
    if state.share is not None:
        parts.append(f"{100 * state.share:3.0f}%" if state.share < 1 else "100%")
    if state.is_elsewhere:
        parts.append("running on the engine")
    elif state.state == RUNNING or state.documents:
        if state.share is not None or state.documents:
            parts.append(_documents(state))
        parts += rate_words(state)
    elif state.share is not None:
        parts.append("starting")
    if state.share is not None and state.share >= 1:
        parts.append("finishing")
    if state.seconds_left is not None and (state.share or 0) < 1:
        parts.append(f"{clock(state.seconds_left)} left")
    else:
        parts.append(clock(state.seconds))
    return [*parts, *count_words(state)]


def _ended_words(state: StageState) -> list[str]:
    """The same where the stage has ended."""
    parts = []
    if state.state == FAILED:
        parts.append("stopped")
    if state.documents:
        is_short = state.total is not None and state.documents < state.total
        parts.append(_documents(state) if is_short else _number_of(state))
    return [*parts, *rate_words(state), clock(state.seconds), *count_words(state)]


def _documents(state: StageState) -> str:
    if state.total is None or state.documents == state.total:
        return _number_of(state)
    about = "about " * state.is_total_estimated
    return f"{state.documents:,} / {about}{state.total:,} {state.unit}"


def _number_of(state: StageState) -> str:
    unit = state.unit.removesuffix("s") if state.documents == 1 else state.unit
    return f"{state.documents:,} {unit}"


def rate_words(state: StageState) -> list[str]:
    """The documents a second."""
    if state.rate is None:
        return []
    return [f"{state.rate:,.0f}/s" if state.rate >= 10 else f"{state.rate:.2g}/s"]


def count_words(state: StageState) -> list[str]:
    """Tokens a second, dead letters, flagged rows, and the note."""
    parts = []
    if state.tokens_per_second is not None:
        parts.append(f"{state.tokens_per_second:,.0f} tokens/s")
    if state.dead_letters:
        letters = "dead letter" if state.dead_letters == 1 else "dead letters"
        parts.append(f"{state.dead_letters:,} {letters}")
    if state.flagged:
        parts.append(f"{state.flagged:,} flagged")
    if state.note:
        parts.append(state.note)
    return parts


def clock(seconds: float) -> str:
    """Minutes and seconds, as in 0:07; with hours, 2:00:07."""
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"


def state_json(command: str, state: StageState) -> str:
    """The state as a JSON object; docs/PROGRESS.md says what its fields mean."""
    return _json(
        command,
        {
            "stage": state.name,
            "state": state.state,
            "documents": state.documents,
            "total": state.total,
            "is_total_estimated": state.is_total_estimated,
            "unit": state.unit,
            "rate": _short(state.rate),
            "seconds": _short(state.seconds),
            "seconds_left": _short(state.seconds_left),
            "tokens": state.tokens,
            "tokens_per_second": _short(state.tokens_per_second),
            "dead_letters": state.dead_letters,
            "flagged": state.flagged,
            "note": state.note,
        },
    )


def message_json(command: str, text: str, state: str) -> str:
    """A message as a JSON object; `state` is `message`, or `failed` for an error."""
    return _json(command, {"state": state, "message": text})


def _json(command: str, fields: dict[str, Any]) -> str:
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
    return orjson.dumps({"time": now, "command": command, **fields}).decode()


def _short(number: float | None) -> float | None:
    return None if number is None else round(number, 3)
