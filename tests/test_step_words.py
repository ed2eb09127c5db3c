"""Test that the command line of a step says what the job file says."""

import dataclasses
import typing
from collections.abc import Sequence
from typing import Any

import pytest

from precis.pipelines.command_line.commands import COMMANDS
from precis.pipelines.flags.command_words import parse_words, read_command_line
from precis.pipelines.flags.flags import flag_info, value_type
from precis.pipelines.plan.steps import step_words


def given_flags(concerns: Sequence[type]) -> dict[str, Any]:
    """A value for every flag, as a job file has it: none is the default."""
    flags: dict[str, Any] = {}
    for concern in concerns:
        hints = typing.get_type_hints(concern)
        for field in dataclasses.fields(concern):
            info, kind = flag_info(field), value_type(hints[field.name])
            if kind is bool:
                flags[field.name] = field.default is False
            elif kind is not str:
                flags[field.name] = kind(-3)
            elif info.choices:
                flags[field.name] = info.choices[-1]
            elif info.takes_list:
                flags[field.name] = ["two words", "-x"]
            else:
                flags[field.name] = "a  b" if info.is_positional else "-a b"
    return flags


@pytest.mark.parametrize("name", COMMANDS)
def test_the_words_of_a_step_are_read_back_as_its_flags(name):
    concerns, text = COMMANDS[name].concerns, COMMANDS[name].text
    flags = given_flags(concerns)
    parsed = parse_words(name, concerns, text, step_words(flags, concerns))
    read = read_command_line(name, concerns, text, parsed)
    expected = dict(flags)
    for concern in concerns:
        for field in dataclasses.fields(concern):
            info, value = flag_info(field), flags[field.name]
            if info.takes_rest:
                expected[field.name] = value.split()
            elif info.takes_list:
                expected[field.name] = info.separator.join(value)
    assert read.flags == expected and read.beam_args == []
