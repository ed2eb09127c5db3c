"""The summary in what language models write, in the forms of their chat templates."""

import time

import pytest
from support import read_table

from precis.model.text.answer import summary_text

ANSWERS = read_table("answers")


RAIN = "Rain fell on the coast. It was cold."
TOLD = "Use only facts that it states. Answer with the summary alone."


@pytest.mark.parametrize("written", ANSWERS["around"])
def test_the_summary_is_what_is_left(written):
    assert summary_text(written.replace("{}", RAIN), TOLD) == RAIN


@pytest.mark.parametrize("written", ANSWERS["without"])
def test_what_holds_no_summary(written):
    assert summary_text(written, TOLD) == ""


@pytest.mark.parametrize("summary", ANSWERS["kept"])
def test_a_summary_that_begins_so_is_kept_whole(summary):
    assert summary_text(summary, TOLD) == summary


@pytest.mark.parametrize("space", [" ", "\n", " \n"])
def test_much_white_space_takes_no_time(space):
    started = time.monotonic()
    written = f"Rain fell.{space * 20_000}<b"
    assert summary_text(written, TOLD).split() == ["Rain", "fell.", "<b"]
    assert time.monotonic() - started < 10
