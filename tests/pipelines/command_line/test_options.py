"""Tests of the options of the jobs: their flags, their limits, their refusals."""

import dataclasses

import pytest

from precis.model.config import SEARCH, WriterKind, flag_info
from precis.model.errors import UsageError
from precis.model.extractive.config import SelectionConfig
from precis.model.quality.flags import FallbackConfig
from precis.model.search.config import SearchConfig
from precis.model.training.config import ExtractiveTraining
from precis.pipelines.command_line.commands import COMMANDS
from precis.pipelines.command_line.parser import command_parser
from precis.pipelines.corpus.options import FailureOptions
from precis.pipelines.evaluate.options import EvaluateOptions
from precis.pipelines.prepare.options import PrepareOptions
from precis.pipelines.run import options
from precis.pipelines.run.options import option_fields, option_names, result_settings
from precis.pipelines.summarize.options import SUMMARIZE, GroupOptions, SummarizeOptions

JOBS = {name: command.option_groups for name, command in COMMANDS.items()}
MOST_COMMON_FLAGS = 18
NEEDED = {
    **{"corpus": "sample:", "output": "o", "records": "r", "input": "i", "run": "r"},
    **{"checkpoint": "c", "bundle": "b", "text": "t", "folder": "f", "for_": "duckdb"},
    "table": "delta://t",
}


@pytest.mark.parametrize("name", JOBS)
def test_every_field_of_a_job_is_a_flag_of_one_name_and_a_keyword(name, monkeypatch):
    fields = list(options.flag_fields(JOBS[name]))
    names = [field.name for field in fields]
    assert len(option_names(JOBS[name])) == len(set(option_names(JOBS[name])))
    for columns in (80, 120):
        monkeypatch.setenv("COLUMNS", str(columns))
        for shows_all in (False, True):
            parser = command_parser(name, COMMANDS[name], shows_all=shows_all)
            text = parser.format_help()
            assert max(map(len, text.splitlines())) <= columns and "=`" not in text
    destinations = {action.dest for action in parser._actions}
    general = {"config", "verbose", "help"}
    assert destinations - general == set(names) and not general & set(names)
    assert all(flag_info(field).help for field in option_fields(JOBS[name]))
    assert sum(flag_info(field).is_common for field in fields) <= MOST_COMMON_FLAGS
    fields = [field for group in JOBS[name] for field in dataclasses.fields(group)]
    defaults = {each.name: NEEDED.get(each.name, each.default) for each in fields}
    built = options.read_flags(JOBS[name], defaults)
    assert [type(instance) for instance in built] == list(JOBS[name])
    values = [dataclasses.asdict(instance) for instance in built]
    assert {key: each[key] for each in values for key in each} == defaults


def test_the_keywords_of_a_message_become_flags():
    message = "a`b=1`: `layout=t5 x` `pointer=False` of `precis train`, `for_=`, `a.b=`"
    shown = "a--b 1: --layout t5 x --no-pointer of `precis train`, --for, `a.b=`"
    assert options.with_dashes(message) == shown


NETWORK = WriterKind.NETWORK
SHARE = "--max_failed_share must be a share from 0 to 1, not"
LEAST = "must be at least"


@pytest.mark.parametrize(
    ("group", "values", "message"),
    [
        (FailureOptions, {"max_failed_share": 1.01}, rf"{SHARE} 1\.01"),
        (FailureOptions, {"max_failed_share": float("nan")}, f"{SHARE} nan"),
        (PrepareOptions, {"max_source_tokens": 0}, f"`max_source_tokens=` {LEAST}"),
        (PrepareOptions, {"max_target_tokens": -3}, f"{LEAST} 1, not -3"),
        (PrepareOptions, {"vocabulary_size": 299}, f"{LEAST} 300.*, not 299"),
        (PrepareOptions, {"tokenizer": "t", "lower_case": True}, "about --lower_case"),
        (ExtractiveTraining, {"importance_articles": -1}, "must not be negative, but"),
        (SearchConfig, {"common_pieces": -1}, "common_pieces must not be negative, bu"),
        (SelectionConfig, {"sentences": -1}, "`sentences=` must not be negative, but"),
        (SummarizeOptions, {"keyphrases": 0}, f"keyphrases {LEAST} 1, not 0"),
        (SummarizeOptions, {"window_documents": 0}, f"window_documents {LEAST}"),
        (SummarizeOptions, {"written_sentences": 0}, f"{LEAST} 1, not 0"),
        (SummarizeOptions, {"search_processes": -1}, "but is -1; 0 means"),
        (SummarizeOptions, {"precision": "float8"}, "`precision=` .* mean float32[?]"),
        (EvaluateOptions, {"resamples": 0}, f"`resamples=` {LEAST} 1, not 0"),
    ],
)
def test_impossible_options_are_refused(group, values, message):
    needed = "input" if group is EvaluateOptions else "output"
    given = {needed: "x"} if needed in option_names([group]) else {}
    with pytest.raises(UsageError, match=message):
        group(**{**given, **values})


def test_a_field_says_what_it_affects():
    every = option_fields(SUMMARIZE)
    searched = {each.name for each in every if flag_info(each).affects == SEARCH}
    # What `decode_id` names.
    assert searched == {*option_names([SearchConfig]), "precision", "engine"}
    of_job = SummarizeOptions(output="o", bundle="b", keyphrase_bundle="k")
    whole = [of_job, SelectionConfig(), FallbackConfig(), SearchConfig()]
    of_extracts = result_settings(whole)
    assert {*of_extracts} == {
        *("extractive", "keyphrases", "sentences", "max_words", "max_chars", "form"),
        "min_source_words",
    }
    network, endpoint, summarizer = (
        {*result_settings(whole, writer)} - {*of_extracts}
        for writer in (WriterKind.NETWORK, WriterKind.ENDPOINT, WriterKind.SUMMARIZER)
    )
    of_network = searched - {"max_summary_tokens"} | {"task_prefix", "write"}
    assert network - endpoint == of_network
    assert endpoint - network == {"instruction", "request_json", "context_tokens"}
    assert summarizer - network == {"written_sentences", "min_confidence"}


@pytest.mark.parametrize(
    ("settings", "writer", "message"),
    [
        (SearchConfig(beam_width=2), None, "`beam_width=2` has no effect without"),
        (
            SummarizeOptions(output="o", engine="ctranslate2"),
            None,
            "`engine=ctranslate2` ",
        ),
        (
            SummarizeOptions(output="o", task_prefix="a: "),
            None,
            "`task_prefix=a: ` has",
        ),
        (SummarizeOptions(output="o", requests=3), NETWORK, "`requests=3` .*network"),
        (SummarizeOptions(output="o", keyphrases=3), None, "^keyphrases=3 .*effect"),
        (FallbackConfig(fallback="always"), None, "`fallback=always` has no effect"),
        (FallbackConfig(min_confidence=0.5), NETWORK, "`min_confidence=0.5` h"),
        (GroupOptions(order_by="day"), None, "`order_by=day` has no effect"),
    ],
)
def test_what_has_no_effect_is_refused(settings, writer, message):
    with pytest.raises(UsageError, match=f"{message}.*; leave it out$"):
        options.check_effects([settings], writer)


def test_options_at_their_limits_are_taken():
    for share in (0, 1):
        FailureOptions(max_failed_share=share)
    limits = {"max_source_tokens": 1, "max_target_tokens": 1, "vocabulary_size": 300}
    PrepareOptions(output="o", **limits)
    taken = SummarizeOptions(output="o", keyphrases=1, extractive=" lead , luhn,")
    assert taken.methods == ("lead", "luhn")
    assert SummarizeOptions(output="o", extractive=" ,").methods == ()
