"""Tests of the options of the jobs: their flags, their limits, their refusals."""

import dataclasses
import typing

import pytest

from precis.model.errors import UsageError
from precis.model.extractive.config import SelectionConfig
from precis.model.quality.fallback import FallbackConfig
from precis.model.quality.flags import QualityConfig
from precis.model.search.config import SearchConfig
from precis.model.training.config import ExtractiveTraining, TrainingConfig
from precis.pipelines.command_line.commands import COMMANDS
from precis.pipelines.corpus.failures import FailureOptions
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.flags.command_parser import command_parser
from precis.pipelines.flags.flags import flag_info, read_flags, value_type
from precis.pipelines.options.evaluate import EvaluateOptions
from precis.pipelines.options.one_document import OneDocumentOptions
from precis.pipelines.options.prepare import PrepareOptions
from precis.pipelines.options.results import EarlierRunOptions, ResultOptions
from precis.pipelines.options.summarize import SummarizeOptions
from precis.pipelines.options.train import (
    LabelledRecordsOptions,
    NetworkOptions,
    TrainOptions,
)
from precis.pipelines.options.workers import WorkerOptions

JOBS = {name: command.concerns for name, command in COMMANDS.items()}
MOST_COMMON_FLAGS = 18


@pytest.mark.parametrize("name", JOBS)
def test_every_field_of_a_job_is_a_flag_of_one_name(name):
    fields = [field for kind in JOBS[name] for field in dataclasses.fields(kind)]
    names = [field.name for field in fields]
    assert len(names) == len(set(names))
    parser = command_parser(name, JOBS[name], COMMANDS[name].text)
    general = {"config", "verbose", "help"}
    destinations = {action.dest for action in parser._actions} - {"==SUPPRESS=="}
    assert destinations - general == set(names) and not general & set(names)
    assert all(flag_info(field).help for field in fields)
    assert sum(flag_info(field).is_common for field in fields) <= MOST_COMMON_FLAGS


@pytest.mark.parametrize("name", JOBS)
def test_every_value_of_a_flag_says_what_it_is(name):
    for concern in JOBS[name]:
        hints = typing.get_type_hints(concern)
        for field in dataclasses.fields(concern):
            info = flag_info(field)
            has_name = info.metavar or info.choices or value_type(hints[field.name])
            assert has_name in (bool, int) or isinstance(has_name, str | tuple)


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("name", JOBS)
def test_the_help_fits_the_terminal(name, columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    command = COMMANDS[name]
    for shows_all in (False, True):
        parser = command_parser(
            name, command.concerns, command.text, shows_all=shows_all
        )
        assert max(map(len, parser.format_help().splitlines())) <= columns


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
        "folder": "f",
        "run": "r",
        "table": "delta://t",
        "for_": "duckdb",
        "job": "j",
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
        (
            ExtractiveTraining,
            {"importance_articles": -1},
            "--importance_articles must not be negative, but is -1",
        ),
        (
            SearchConfig,
            {"common_pieces": -1},
            "--common_pieces must not be negative, but is -1; 0 turns it off",
        ),
        (TrainOptions, {"records": "r", "output": ""}, "--output is empty"),
        (SummarizeOptions, {"output": ""}, "--output is empty"),
        (
            SelectionConfig,
            {"sentences": -1},
            "--sentences must not be negative, but is -1",
        ),
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
            {"output": "o", "written_sentences": 0},
            "--written_sentences must be at least 1, not 0",
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
    assert COMMANDS["train"].concerns == (TrainOptions, NetworkOptions, TrainingConfig)
    assert COMMANDS["train-extractor"].concerns == (
        LabelledRecordsOptions,
        ExtractiveTraining,
    )
    assert COMMANDS["train-keyphrases"].concerns == (LabelledRecordsOptions,)
    assert COMMANDS["summarize"].concerns == (
        *(
            CorpusOptions,
            SummarizeOptions,
            SelectionConfig,
            QualityConfig,
            FallbackConfig,
        ),
        *(SearchConfig, EarlierRunOptions, ResultOptions),
        *(FailureOptions, WorkerOptions, OneDocumentOptions),
    )
