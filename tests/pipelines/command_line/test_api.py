"""Tests of `import precis`: what it offers, its docstrings, and one document."""

import dataclasses
import hashlib
import inspect
import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from support import read_table

import precis
from docs.site.stub import PATH, stub
from precis.model.config import flag_info
from precis.model.errors import UsageError
from precis.pipelines.command_line.commands import COMMANDS
from precis.pipelines.command_line.functions import keywords
from precis.pipelines.evaluate.evaluation_table import Scores
from precis.pipelines.summarize.run_output import RunManifest
from precis.pipelines.tables.schema import SUMMARY_SCHEMA

ARTICLE = (
    "(CNN) -- Rain fell on Oslo on Monday. The mayor said that 40 streets were "
    "closed. Schools in Oslo stayed open. Trains ran late. "
) * 2


def test_the_package_offers_every_command_as_a_function():
    names = {name.replace("-", "_") for name in COMMANDS} - {"import"}
    expected = names | {"import_checkpoint", "summarize_text", "summarize_frame"}
    errors = {"UsageError", "DataError", "JobError", "Unfinished"}
    assert set(precis.__all__) == {*expected, *errors, "__version__"}
    assert dir(precis) == sorted(precis.__all__)
    for name in expected:
        function = getattr(precis, name)
        assert function is getattr(precis, name)  # It may be asked for twice.
        assert pickle.loads(pickle.dumps(function)) is function
        assert function.__name__ == name
    message = "module 'precis' has no attribute 'summarise'"
    with pytest.raises(AttributeError, match=message):
        precis.summarise  # noqa: B018


FUNCTIONS = [name for name in precis.__all__ if name[0].islower()]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signature_and_docstring_of_a_function_have_its_keywords(name):
    function = getattr(precis, name)
    docstring, signature = inspect.getdoc(function), inspect.signature(function)
    assert "**" not in docstring
    assert len(docstring.splitlines()) < 95  # two screens
    kinds = {each.kind for each in signature.parameters.values()}
    assert not kinds & {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}
    for field, _ in keywords(name).values():
        if name != "doctor":  # Its docstring has them already.
            is_described = f"\n  {field.name}: " in docstring
            assert is_described == flag_info(field).is_common
        expected = field.default
        if expected is dataclasses.MISSING:
            expected = inspect.Parameter.empty
        assert signature.parameters[field.name].default == expected
    if name == "summarize_text":
        refused = {"id_field", "window_documents", "reuse", "max_failed_share"}
        assert not signature.parameters.keys() & refused
    if name == "summarize":
        assert signature.parameters.keys() >= {"corpus", "bundle", "extractive"}


def test_the_stub_is_that_of_the_options():
    assert PATH.read_text("utf-8") == stub(), "write it: python -m docs.site.stub"


PROGRAM = """\
from pathlib import Path

import precis

RUN = Path("run")
try:
    manifest = precis.summarize(
        corpus=[RUN / "a", "jsonl:b"], output=RUN, extractive=["lead"], sentences=2
    )
    rows: int = manifest["counts"]["read"]
    finding: str = precis.verify("run").findings[0]
    scores: str = precis.evaluate(input=RUN)["variant"]
    print(precis.digest(RUN), precis.report("run", documents=9).bytes, rows, scores)
    precis.export("bundle", output=RUN, beam_width=6)
    print(precis.summarize_text("Rain fell.", form="headline", clean="none"))
except (precis.UsageError, precis.DataError, precis.JobError) as error:
    print(error)
precis.summarize(corpus="jsonl:b", output="run", sentence=2)
precis.summarize(corpus="jsonl:b", output="run", sentences="two")
precis.summarize(corpus="jsonl:b", output="run", form="title")
precis.digest(RUN, "more")
print(precis.verify("run").finding)
print(precis.evaluate(input="run")["variants"])
"""


def test_a_type_checker_names_wrong_keywords_and_types_alone(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    settings = {"extraPaths": [str(Path(precis.__file__).parents[1])]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "--outputjson", "-p", tmp_path]
    command += ["--pythonpath", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    found = json.loads(done.stdout)["generalDiagnostics"]
    assert done.returncode == 1
    lines = PROGRAM.splitlines()
    wrong = {each["range"]["start"]["line"]: each.get("rule") for each in found}
    assert {lines[number]: rule for number, rule in wrong.items()} == {
        lines[-6]: "reportCallIssue",
        lines[-5]: "reportArgumentType",
        lines[-4]: "reportArgumentType",
        lines[-3]: "reportCallIssue",
        lines[-2]: "reportAttributeAccessIssue",
        lines[-1]: "reportGeneralTypeIssues",
    }


def test_a_function_takes_first_what_its_command_takes_without_a_flag(tmp_path):
    folder = str(tmp_path)
    for check in (lambda: precis.verify(folder), lambda: precis.verify(folder=folder)):
        with pytest.raises(precis.UsageError, match="not a run, records"):
            check()
    with pytest.raises(precis.UsageError, match="DIR is needed: finished run"):
        precis.digest()
    with pytest.raises(TypeError, match=r"digest\(\) takes 1 positional .* 2 were"):
        precis.digest(folder, "more")
    with pytest.raises(TypeError, match="multiple values for keyword argument 'run'"):
        precis.digest(folder, run=folder)


def test_manifests_and_scores_have_the_entries_of_their_types(tmp_path):
    corpus, output = "sample:20", tmp_path / "run"
    manifest = precis.summarize(corpus=corpus, output=output, workers=1)
    scores = precis.evaluate(input=output, workers=1)
    others = {"groups", "batches"}
    for content, kind in ((manifest, RunManifest), (scores, Scores)):
        assert content.keys() == kind.__required_keys__
        assert kind.__optional_keys__ == others & {*kind.__annotations__}


def test_one_text_is_summarized_as_a_run_would():
    row = precis.summarize_text(ARTICLE, extractive=["luhn", "lead"], sentences=1)
    assert set(row) == set(SUMMARY_SCHEMA.names)
    assert (row["summary_method"], row["quality_flags"]) == ("luhn", [])
    sentence = row["extractive"][0]
    assert ARTICLE[sentence["start"] : sentence["end"]] == sentence["text"]
    raw = precis.summarize_text(ARTICLE, extractive="lead", clean="none", language="cy")
    assert (raw["language"], row["language"]) == ("cy", "en")
    assert raw["extractive"][0]["start"] == 0
    assert raw["content_sha256"] == hashlib.sha256(ARTICLE.encode()).hexdigest()


@pytest.mark.parametrize(("text", "flags", "message"), read_table("refusals")["text"])
def test_one_text_that_cannot_be_summarized_is_refused(text, flags, message):
    with pytest.raises(UsageError, match=message):
        precis.summarize_text(text, **flags)
