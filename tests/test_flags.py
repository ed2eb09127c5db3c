"""Tests of options as flags and keywords alike."""

import argparse
import dataclasses
from pathlib import Path

import pytest

from precis.model.config import flag, required
from precis.model.errors import UsageError
from precis.pipelines.flags import add_flags, option_names, read_flags
from precis.pipelines.options.failures import FailureOptions
from precis.pipelines.options.summarize import SummarizeOptions


@dataclasses.dataclass(frozen=True, kw_only=True)
class Paint:
    """Paint of a wall.

    This line is no heading.
    """

    colour: str = required("what it looks like")
    coats: int = flag(2, "how often")
    litres: float = flag(0.5, "how much; 5% more if it rains")
    glossy: bool = flag(False, "whether it shines")
    safe: bool = flag(True, "whether it may be eaten")
    brush: str = flag("flat", "what with", choices=("flat", "round"))
    primer: str | None = flag(None, "what lies under it")

    def __post_init__(self):
        if self.coats < 1:
            raise UsageError(f"--coats must be at least 1, not {self.coats}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Wall:
    """Wall"""

    bricks: int = flag(3, "bricks")


def parse(*argv):
    parser = argparse.ArgumentParser(prog="paint", allow_abbrev=False)
    add_flags(parser, (Paint, Wall))
    return vars(parser.parse_args(argv))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fence:
    """Fence

    An alternative to `Paint`: one has a flag that the other has too.
    """

    coats: int = flag(5, "layers of tar")
    posts: int = flag(4, "posts")


def test_the_help_shows_the_first_of_two_flags_of_one_name():
    parser = argparse.ArgumentParser(prog="paint", allow_abbrev=False)
    add_flags(parser, (Paint, Wall, Fence))
    values = vars(
        parser.parse_args(["--colour", "red", "--coats", "7", "--posts", "9"])
    )
    assert values == {"colour": "red", "coats": 7, "posts": 9}
    shown = parser.format_help()
    assert (
        shown.count("--coats INT") == 2
        and "how often (default: 2)" in shown
        and "tar" not in shown
    )  # in the usage and in the list
    assert read_flags((Fence,), {"coats": 7, "posts": 9}) == [Fence(coats=7, posts=9)]


def test_only_flags_that_were_given_have_a_value():
    assert parse("--colour", "red") == {"colour": "red"}


def test_a_flag_has_the_type_of_its_field():
    values = parse(
        "--colour",
        "7",
        "--coats",
        "7",
        "--litres",
        "7",
        "--brush",
        "round",
        "--primer",
        "7",
        "--bricks",
        "7",
    )
    assert values == {
        "colour": "7",
        "coats": 7,
        "litres": 7.0,
        "brush": "round",
        "primer": "7",
        "bricks": 7,
    }
    assert [type(values[name]) for name in ("coats", "litres", "primer")] == [
        int,
        float,
        str,
    ]


def test_a_bool_is_a_pair_of_flags():
    assert parse("--colour", "red", "--glossy", "--no-safe") == {
        "colour": "red",
        "glossy": True,
        "safe": False,
    }


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "required: --colour"),
        (
            ["--colour", "red", "--coats", "many"],
            "argument --coats: invalid int value: 'many'",
        ),
        (
            ["--colour", "red", "--brush", "square"],
            "argument --brush: invalid choice: 'square'",
        ),
        (["--colour", "red", "--coat", "3"], "unrecognized arguments: --coat 3"),
        (["--colour", "red", "--glossy", "yes"], "unrecognized arguments: yes"),
    ],
)
def test_an_impossible_flag_is_refused(argv, message, capsys):
    with pytest.raises(SystemExit, match="2"):
        parse(*argv)
    assert message in capsys.readouterr().err


def test_help_gives_the_meaning_and_the_default_of_a_flag():
    parser = argparse.ArgumentParser(
        prog="paint",
        formatter_class=lambda prog: argparse.HelpFormatter(prog, width=200),
    )
    add_flags(parser, (Paint, Wall))
    shown = " ".join(parser.format_help().split())
    assert (
        "Paint of a wall: --colour STR what it looks like --coats INT how often "
        "(default: 2)" in shown
    )
    assert "5% more if it rains (default: 0.5)" in shown
    assert (
        "--brush {flat,round}" in shown
        and "--safe, --no-safe whether it may be eaten (default: True)" in shown
    )
    assert "--primer STR what lies under it Wall: --bricks INT" in shown
    assert "This line is no heading" not in shown


def test_keywords_become_the_dataclasses():
    paint, house = read_flags(
        (Paint, Wall), {"colour": "red", "glossy": True, "bricks": 5}
    )
    assert paint == Paint(colour="red", glossy=True, coats=2) and house == Wall(
        bricks=5
    )


def test_a_path_is_a_string():
    (paint,) = read_flags((Paint,), {"colour": Path("a") / "b"})
    assert paint.colour == "a/b"


def test_an_unknown_keyword_is_refused_with_the_nearest_name():
    with pytest.raises(
        UsageError, match="^unknown option 'colours'; did you mean 'colour'\\?$"
    ):
        read_flags((Paint, Wall), {"colours": "red"})
    with pytest.raises(UsageError, match="^unknown option 'zzz'$"):
        read_flags((Paint, Wall), {"zzz": 1})


def test_a_missing_keyword_is_named_with_its_meaning():
    with pytest.raises(UsageError, match="^--colour is needed: what it looks like$"):
        read_flags((Paint, Wall), {"bricks": 2})


def test_a_value_is_checked_by_its_dataclass():
    with pytest.raises(UsageError, match="--coats must be at least 1, not 0"):
        read_flags((Paint, Wall), {"colour": "red", "coats": 0})


def test_option_names():
    assert option_names((Wall, Paint)) == [
        "bricks",
        "colour",
        "coats",
        "litres",
        "glossy",
        "safe",
        "brush",
        "primer",
    ]


def test_a_value_of_another_type_is_refused():
    with pytest.raises(
        UsageError, match=r"keyphrases takes a value of type int, not '3'"
    ):
        read_flags([SummarizeOptions], {"output": "out", "keyphrases": "3"})
    with pytest.raises(
        UsageError, match=r"keyphrases takes a value of type int, not True"
    ):
        read_flags([SummarizeOptions], {"output": "out", "keyphrases": True})
    with pytest.raises(UsageError, match=r"output takes a value of type str, not None"):
        read_flags([SummarizeOptions], {"output": None})
    (failures,) = read_flags([FailureOptions], {"max_failed_share": 1})
    assert failures.max_failed_share == 1
