"""Tests of options as flags and keywords alike."""

import argparse
import dataclasses
from pathlib import Path

import pytest

from precis.model.config import flag, required
from precis.model.errors import UsageError
from precis.model.extractive.config import SelectionConfig
from precis.model.quality.fallback import FallbackConfig
from precis.model.quality.flags import QualityConfig
from precis.model.search.config import SearchConfig
from precis.model.training.config import ExtractiveTraining, TrainingConfig
from precis.pipelines.cli import COMMANDS
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.flags import add_flags, option_names, read_flags
from precis.pipelines.options.evaluate import EvaluateOptions
from precis.pipelines.options.failures import FailureOptions
from precis.pipelines.options.prepare import PrepareOptions
from precis.pipelines.options.summarize import SummarizeOptions
from precis.pipelines.options.train import TRAIN, NetworkOptions, TrainOptions


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


# What `precis train` takes depends on its task.
JOBS = {
    name: command.concerns for name, command in COMMANDS.items() if name != "train"
} | {f"train {task}": TRAIN[task] for task in TRAIN}


@pytest.mark.parametrize("name", JOBS)
def test_every_field_of_a_job_is_a_flag_of_one_name(name):
    concerns = JOBS[name]
    names = [
        field.name for concern in concerns for field in dataclasses.fields(concern)
    ]
    assert len(names) == len(set(names)) and not {"verbose", "command", "help"} & set(
        names
    )
    parser = argparse.ArgumentParser()
    add_flags(parser, concerns)
    assert set(names) == {action.dest for action in parser._actions} - {"help"}
    for concern in concerns:
        assert all(field.metadata.get("help") for field in dataclasses.fields(concern))


@pytest.mark.parametrize("name", JOBS)
def test_every_field_of_a_job_is_a_keyword(name):
    concerns = JOBS[name]
    needed = {
        "corpus": "sample:",
        "output": "o",
        "records": "r",
        "input": "i",
        "checkpoint": "c",
        "bundle": "b",
        "text": "t",
    }
    defaults = {
        field.name: needed.get(field.name, field.default)
        for concern in concerns
        for field in dataclasses.fields(concern)
    }
    built = read_flags(concerns, defaults)
    assert [type(instance) for instance in built] == list(concerns)
    assert {
        key: value
        for instance in built
        for key, value in dataclasses.asdict(instance).items()
    } == defaults


RECORDS = {"output": "o"}


@pytest.mark.parametrize(
    ("concern", "values", "message"),
    [
        (
            FailureOptions,
            {"max_failed_share": 1.01},
            r"--max_failed_share is a share from 0 to 1, not 1\.01",
        ),
        (
            FailureOptions,
            {"max_failed_share": -0.1},
            r"--max_failed_share is a share from 0 to 1, not -0\.1",
        ),
        (
            FailureOptions,
            {"max_failed_share": float("nan")},
            "--max_failed_share is a share from 0 to 1, not nan",
        ),
        (
            PrepareOptions,
            {"output": ""},
            "--output is empty; name the folder to write to",
        ),
        (
            PrepareOptions,
            {**RECORDS, "max_source_tokens": 0},
            "--max_source_tokens must be at least 1, not 0",
        ),
        (
            PrepareOptions,
            {**RECORDS, "max_target_tokens": -3},
            "--max_target_tokens must be at least 1, not -3",
        ),
        (
            PrepareOptions,
            {**RECORDS, "vocabulary_size": 299},
            "--vocabulary_size must be at least 300.*, not 299",
        ),
        (
            PrepareOptions,
            {**RECORDS, "tokenizer": "t", "lower_case": True},
            "--tokenizer brings its own --lower_case",
        ),
        (
            PrepareOptions,
            {**RECORDS, "tokenizer": "t", "reserved_tokens": "[A]"},
            "and --reserved_tokens; leave them out",
        ),
        (TrainOptions, {"records": "r", "output": ""}, "--output is empty"),
        (SummarizeOptions, {"output": ""}, "--output is empty"),
        (SelectionConfig, {"sentences": 0}, "--sentences must be at least 1, not 0"),
        (
            SummarizeOptions,
            {"output": "o", "keyphrases": 0},
            "--keyphrases must be at least 1, not 0",
        ),
        (
            SummarizeOptions,
            {"output": "o", "window_documents": 0},
            "--window_documents must be at least 1, not 0",
        ),
        (
            SummarizeOptions,
            {"output": "o", "search_processes": -1},
            "--search_processes must not be negative, but is -1; 0 is",
        ),
        (
            SummarizeOptions,
            {"output": "o", "precision": "float8"},
            "--precision is one of float32, mixed_bfloat16, .*, not 'float8'",
        ),
        (EvaluateOptions, {"input": ""}, "--input is empty"),
        (
            EvaluateOptions,
            {"input": "i", "show": -1},
            "--show must be 0 or more, not -1",
        ),
        (
            EvaluateOptions,
            {"input": "i", "resamples": 0},
            "--resamples must be 1 or more, not 0",
        ),
        (
            EvaluateOptions,
            {"input": "i", "confidence": 1.0},
            r"--confidence must lie between 0 and 1, not 1\.0",
        ),
    ],
)
def test_impossible_options_are_refused(concern, values, message):
    with pytest.raises(UsageError, match=message):
        concern(**values)


@pytest.mark.parametrize(
    ("concern", "values"),
    [
        (FailureOptions, {"max_failed_share": 0}),
        (FailureOptions, {"max_failed_share": 1}),
        (
            PrepareOptions,
            {
                **RECORDS,
                "max_source_tokens": 1,
                "max_target_tokens": 1,
                "vocabulary_size": 300,
            },
        ),
        (SummarizeOptions, {"output": "o", "keyphrases": 1, "window_documents": 1}),
    ],
)
def test_options_at_their_limits_are_taken(concern, values):
    assert {name: getattr(concern(**values), name) for name in values} == values


def test_extractive_methods_are_read_from_one_string():
    assert SummarizeOptions(output="o", extractive=" lead , frequency,").methods == (
        "lead",
        "frequency",
    )
    assert SummarizeOptions(output="o", extractive=" ,").methods == ()


def test_the_commands_take_the_options_of_their_jobs():
    assert COMMANDS["train"].concerns == (
        TrainOptions,
        NetworkOptions,
        TrainingConfig,
        ExtractiveTraining,
    )
    assert set(TRAIN) == {"abstractive", "extractive", "keyphrases"} and all(
        concerns[0] is TrainOptions for concerns in TRAIN.values()
    )
    assert COMMANDS["summarize"].concerns == (
        *(
            CorpusOptions,
            SummarizeOptions,
            SelectionConfig,
            QualityConfig,
            FallbackConfig,
        ),
        *(SearchConfig, FailureOptions),
    )


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
