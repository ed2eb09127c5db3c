"""Tests of the Flex Template: its description agrees with the flags, and a launch's
parameters become them.
"""

import dataclasses
import importlib.util
import json
import re
from pathlib import Path

import pytest

from precis.pipelines.command_line.cli import main
from precis.pipelines.command_line.commands import COMMANDS
from precis.pipelines.flags.command_parser import command_parser
from precis.pipelines.flags.flags import option_names, read_flags
from precis.pipelines.options.summarize import SUMMARIZE

FOLDER = Path(__file__).parent.parent / "dataflow"


@pytest.fixture(scope="module")
def launch():
    spec = importlib.util.spec_from_file_location("launch", FOLDER / "launch.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def parameters():
    """The parameters in metadata.json, by name."""
    content = json.loads((FOLDER / "metadata.json").read_text())
    return {parameter["name"]: parameter for parameter in content["parameters"]}


def test_the_description_is_that_of_the_flags(launch):
    assert (FOLDER / "metadata.json").read_text() == (
        json.dumps(launch.metadata(), indent=2) + "\n"
    ), "python dataflow/launch.py --print_metadata > dataflow/metadata.json"


def test_every_flag_is_a_parameter(launch, parameters):
    names = set(option_names(SUMMARIZE)) - set(launch.NOT_IN_A_TEMPLATE)
    beam = {name for name in parameters if name not in option_names(SUMMARIZE)}
    assert set(parameters) == names | beam
    assert beam == {
        *("sdk_container_image", "number_of_worker_harness_threads"),
        "dataflow_service_options",
    }
    needed = {name for name in parameters if not parameters[name].get("isOptional")}
    assert needed == {"corpus", "output", "sdk_container_image"}


def test_the_patterns_allow_every_default(parameters):
    for concern in SUMMARIZE:
        for field in dataclasses.fields(concern):
            patterns = parameters.get(field.name, {}).get("regexes", ())
            default = field.default
            if default in ("", None, dataclasses.MISSING):
                continue
            text = str(default).lower() if isinstance(default, bool) else str(default)
            assert all(re.fullmatch(pattern, text) for pattern in patterns), field.name


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("corpus", "jsonl:gs://bucket/news/*.jsonl.gz", "jsonl:news/*.jsonl"),
        ("corpus", "sample:100", "gs://bucket/news"),
        ("output", "gs://bucket/run", "runs/today"),
        ("bundle", "gs://bucket/bundle", "bundle"),
        ("reuse", "gs://bucket/a,gs://bucket/b", "gs://bucket/a,b"),
        ("flat", "true", "yes"),
        ("beam_width", "4", "four"),
        ("max_failed_share", "0.05", "5%"),
        ("long_documents", "head", "tail"),
        ("sdk_container_image", "region-docker.pkg.dev/p/r/precis:1", "precis"),
    ],
)
def test_a_pattern_refuses_what_the_command_would(parameters, name, good, bad):
    (pattern,) = parameters[name]["regexes"]
    assert re.fullmatch(pattern, good)
    assert not re.fullmatch(pattern, bad)


def test_the_parameters_of_a_launch_become_flags(launch):
    words = launch.command_line(
        [
            *("--corpus=jsonl:gs://bucket/*.jsonl", "--output=gs://bucket/run"),
            *("--flat=true", "--strip_boilerplate=false", "--beam_width=4"),
            *("--runner=DataflowRunner", "--template_location=gs://bucket/job"),
        ]
    )
    command, *flags = words
    parser = command_parser(command, SUMMARIZE, COMMANDS[command].text)
    known, of_beam = parser.parse_known_args(flags)
    values = {**vars(known)}
    assert values.pop("verbose") is False and "config" not in values
    assert values == {
        "corpus": "jsonl:gs://bucket/*.jsonl",
        "output": "gs://bucket/run",
        "flat": True,
        "strip_boilerplate": False,
        "beam_width": 4,
    }
    assert of_beam == [
        "--runner=DataflowRunner",
        "--template_location=gs://bucket/job",
    ]
    read_flags(SUMMARIZE, values)


def test_a_launch_that_cannot_work_is_refused(launch, capsys):
    flags = ("--corpus=sample:10", "--output=runs/today", "--flat=false")
    code = main(launch.command_line([*flags, "--template_location=gs://bucket/job"]))
    assert code == 2
    assert capsys.readouterr().err.endswith(
        "--template_location saves a job for Dataflow; give --runner DataflowRunner\n"
    )
