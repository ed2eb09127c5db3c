"""Tests of `import precis`: what it offers, its signatures, and one document."""

import hashlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import precis
from precis.model.errors import UsageError
from precis.pipelines.command_line import signatures
from precis.pipelines.command_line.commands import COMMANDS
from precis.pipelines.flags.flags import option_names
from precis.pipelines.options.summarize import NOT_FOR_A_TEXT
from precis.pipelines.tables.schema import SUMMARY_SCHEMA

ARTICLE = (
    "(CNN) -- Rain fell on Oslo on Monday. The mayor said that 40 streets were "
    "closed. Schools in Oslo stayed open. Trains ran late. "
) * 2


def test_the_package_offers_every_command_as_a_function():
    names = {name.replace("-", "_") for name in COMMANDS} - {"import"}
    expected = names | {"import_checkpoint", "summarize_text"}
    assert set(precis.__all__) == {*expected, "__version__"}
    assert dir(precis) == sorted(precis.__all__)
    for name in expected:
        function = getattr(precis, name)
        assert function is getattr(precis, name)  # It may be asked for twice.
        assert function.__module__.startswith("precis.pipelines.")
        assert function.__name__ == name


def test_the_version_is_that_of_the_distribution():
    assert precis.__version__ == "0.1.0"


def test_nothing_else_is_offered():
    message = "module 'precis' has no attribute 'summarise'"
    with pytest.raises(AttributeError, match=message):
        precis.summarise  # noqa: B018


@pytest.mark.parametrize("name", signatures.CONCERNS)
def test_a_function_has_the_flags_in_its_signature_and_its_docstring(name):
    function = getattr(precis, name)
    parameters = inspect.signature(function).parameters
    flags = set(option_names(signatures.CONCERNS[name]))
    if name == "summarize_text":
        flags -= set(NOT_FOR_A_TEXT)
    assert flags <= set(parameters)
    assert all(f"\n  {flag}: " in inspect.getdoc(function) for flag in flags)


def test_the_signature_holds_types_and_defaults():
    parameters = inspect.signature(precis.summarize).parameters
    assert str(parameters["beam_width"]) == "beam_width: int = 4"
    assert "os.PathLike" in str(parameters["bundle"])
    assert "Sequence" in str(parameters["extractive"])
    assert parameters["corpus"].default is inspect.Parameter.empty


def test_the_stub_of_the_package_is_up_to_date():
    """`python -m precis.pipelines.command_line.signatures` writes it."""
    path = Path(__file__).parent.parent / "precis" / "__init__.pyi"
    assert path.read_text() == signatures.stub()


def test_one_text_is_summarized_as_a_run_would():
    row = precis.summarize_text(ARTICLE, extractive=["luhn", "lead"], sentences=1)
    assert set(row) == set(SUMMARY_SCHEMA.names)
    assert (row["summary_method"], row["quality_flags"]) == ("luhn", [])
    sentence = row["extractive"][0]
    assert ARTICLE[sentence["start"] : sentence["end"]] == sentence["text"]
    kept = precis.summarize_text(ARTICLE, extractive="lead", strip_boilerplate=False)
    assert kept["extractive"][0]["start"] == 0
    raw = precis.summarize_text(ARTICLE, extractive="lead", clean="none")
    assert raw["extractive"] == kept["extractive"]
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


@pytest.mark.parametrize(
    "flags",
    [{"corpus": 5}, {"bundle": True}, {"reuse": [True]}, {"bundle": ["a"]}],
)
def test_a_value_of_another_type_is_refused(flags, tmp_path):
    given = {"corpus": "sample:9", "output": tmp_path / "o", **flags}
    with pytest.raises(UsageError, match="takes a value of type str, not .*; write a"):
        precis.summarize(**given)


def test_importing_and_listing_the_package_is_light():
    program = (
        "import sys, precis; dir(precis); precis.__version__\n"
        "heavy = {'tensorflow', 'apache_beam', 'pyarrow', 'keras'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", program], timeout=60)
    assert done.returncode == 0
