"""Tests of `import precis`: what it offers, its docstrings, and one document."""

import hashlib
import inspect
import re

import pytest

import precis
from precis.model.errors import UsageError
from precis.pipelines.command_line.commands import COMMANDS
from precis.pipelines.command_line.functions import keywords
from precis.pipelines.run.options import flag_info
from precis.pipelines.tables.schema import SUMMARY_SCHEMA

ARTICLE = (
    "(CNN) -- Rain fell on Oslo on Monday. The mayor said that 40 streets were "
    "closed. Schools in Oslo stayed open. Trains ran late. "
) * 2


def test_the_package_offers_every_command_as_a_function():
    names = {name.replace("-", "_") for name in COMMANDS} - {"import"}
    expected = names | {"import_checkpoint", "summarize_text", "summarize_frame"}
    assert set(precis.__all__) == {*expected, "__version__"}
    assert dir(precis) == sorted(precis.__all__)
    for name in expected:
        function = getattr(precis, name)
        assert function is getattr(precis, name)  # It may be asked for twice.
        assert function.__module__.startswith("precis.pipelines.")
        assert function.__name__ == name
    message = "module 'precis' has no attribute 'summarise'"
    with pytest.raises(AttributeError, match=message):
        precis.summarise  # noqa: B018


@pytest.mark.parametrize(
    "name", [name for name in precis.__all__ if name not in ("__version__", "doctor")]
)
def test_the_docstring_of_a_function_names_its_keywords(name):
    docstring = inspect.getdoc(getattr(precis, name))
    assert "**" not in docstring
    assert len(docstring.splitlines()) < 95  # two screens
    for field in keywords(name):
        shown = f"\n  {field.name}: " if flag_info(field).is_common else field.name
        assert shown in docstring
    if name == "summarize_text":
        refused = {"id_field", "window_documents", "reuse", "max_failed_share"}
        assert not set(re.findall(r"\w+", docstring)) & refused


def test_one_text_is_summarized_as_a_run_would():
    row = precis.summarize_text(ARTICLE, extractive=["luhn", "lead"], sentences=1)
    assert set(row) == set(SUMMARY_SCHEMA.names)
    assert (row["summary_method"], row["quality_flags"]) == ("luhn", [])
    sentence = row["extractive"][0]
    assert ARTICLE[sentence["start"] : sentence["end"]] == sentence["text"]
    raw = precis.summarize_text(ARTICLE, extractive="lead", clean="none")
    assert raw["extractive"][0]["start"] == 0
    assert raw["content_sha256"] == hashlib.sha256(ARTICLE.encode()).hexdigest()


@pytest.mark.parametrize(
    ("text", "flags", "message"),
    [
        (" \n", {}, "the text cannot be summarized: the article has no text"),
        (["a", "b"], {}, "takes one text, not list; precis.summarize takes a corpus"),
        ("Rain.", {"bundle": "none"}, "none: this is no complete bundle"),
        ("Rain.", {"clean": "raw"}, "clean is one of standard, none, not 'raw'"),
        ("Rain.", {"output": "o"}, "takes no output; precis.summarize does"),
        ("Rain.", {"bundle": ["b"]}, "bundle takes a value of type str, not "),
        ("Rain.", {"sentence": 1}, "unknown option 'sentence'; did you mean sentences"),
    ],
)
def test_one_text_that_cannot_be_summarized_is_refused(text, flags, message):
    with pytest.raises(UsageError, match=message):
        precis.summarize_text(text, **flags)
