"""Tests of the file of `precis run`: its variables, its steps as command lines, and
what is refused of it before anything runs.
"""

from pathlib import Path

import pytest

import precis
from precis.model.errors import UsageError
from precis.pipelines.command_line.commands import COMMANDS
from precis.pipelines.options.run import RunOptions
from precis.pipelines.plan.job_file import read_job
from precis.pipelines.plan.steps import read_steps

FILE = """\
folder: runs/${name}
vars:
  name: news
  steps: 40
  corpus: jsonl:${name}/*.jsonl
steps:
  - prepare:
      corpus: ${corpus}
      output: ${folder}/records
      split:
  - train:
      records: ${folder}/records
      output: ${folder}/bundle
      steps: ${steps}
      learning_rate: 1e-4
      pointer: false
  - name: all-documents
    summarize:
      corpus: ${corpus}
      bundle: ${folder}/bundle/
      extractive: [lead, lexrank]
      output: ${folder}/summaries
  - verify: {folder: '${folder}/summaries'}
"""


def write(tmp_path: Path, text: str) -> str:
    path = tmp_path / "job.yaml"
    path.write_text(text)
    return str(path)


def steps_of(path: str, **variables: str):
    return read_steps(read_job(path, variables), COMMANDS)


def test_steps_become_command_lines(tmp_path):
    path = write(tmp_path, FILE)
    prepare, train, summarize, verify = steps_of(path)
    assert prepare.line() == (
        "precis prepare --corpus 'jsonl:news/*.jsonl' --output runs/news/records"
    )
    assert train.line() == (
        "precis train --records runs/news/records --output runs/news/bundle "
        "--no-pointer --steps 40 --learning_rate 0.0001"
    )
    assert summarize.line() == (
        "precis summarize --corpus 'jsonl:news/*.jsonl' --output runs/news/summaries "
        "--bundle runs/news/bundle/ --extractive lead,lexrank"
    )
    assert verify.line() == "precis verify runs/news/summaries"
    names = [step.name for step in (prepare, train, summarize, verify)]
    assert names == ["prepare", "train", "all-documents", "verify"]
    assert summarize.place == f"{path}:17"


def test_steps_name_what_they_read_and_write(tmp_path):
    prepare, train, summarize, verify = steps_of(write(tmp_path, FILE))
    assert (prepare.inputs, prepare.output) == (("news/*.jsonl",), "runs/news/records")
    assert (train.inputs, train.output) == (("runs/news/records",), "runs/news/bundle")
    assert summarize.inputs == ("news/*.jsonl", "runs/news/bundle")
    assert (verify.inputs, verify.output) == (("runs/news/summaries",), "")
    assert train.reads(prepare) and not prepare.reads(train)


def test_a_file_that_loaders_write_is_none_that_they_read(tmp_path):
    flags = "{run: run, for: postgresql, output: sql, copy_rows: rows.copy}"
    text = f"folder: job\nsteps:\n  - loaders: {flags}\n"
    (loaders,) = steps_of(write(tmp_path, text))
    assert (loaders.inputs, loaders.output) == (("run",), "sql")


def test_variables_of_the_command_line_replace_those_of_the_file(tmp_path):
    path = write(tmp_path, FILE)
    prepare, train, *_ = steps_of(path, name="sport", steps="7", folder="elsewhere")
    assert prepare.inputs == ("sport/*.jsonl",)
    assert prepare.output == "elsewhere/records"
    assert "--steps 7 " in train.line()


TRAIN_OF_VARIABLE = "steps: [{train: {records: r, output: o, steps: '${steps}'}}]"
TEXTS = """\
folder: runs/${date}/${version}
vars:
  date: 2026-11-23
  version: 1.0
  none: no
  empty:
  methods: [lead, random]
steps:
  - prepare: {corpus: 'text:${none}', output: '${date}', split: '${empty}'}
  - summarize:
      corpus: text:${time}
      output: ${folder}/${empty}x
      extractive: ${methods}
      beam_width: ${number}
      max_failed_share: ${share}
      flat: ${none}
      partition_by: [split, '${version}']
      direct_num_workers: ${number}
"""


@pytest.mark.parametrize("is_in_file", [True, False])
def test_a_variable_is_put_in_as_it_is_written(tmp_path, is_in_file):
    given = {"version": "1.10", "number": "007", "time": "12:30", "share": "1e-3"}
    below = "".join(f"  {name}: {value}\n" for name, value in given.items())
    if is_in_file:
        text = TEXTS.replace("  version: 1.0\n", below)
        prepare, summarize = steps_of(write(tmp_path, text))
    else:
        text = TEXTS.replace("vars:\n", "vars:\n  number: 1\n  time: x\n  share: 1\n")
        prepare, summarize = steps_of(write(tmp_path, text), none="no", **given)
    assert prepare.line() == "precis prepare --corpus text:no --output 2026-11-23"
    assert summarize.line() == (
        "precis summarize --corpus text:12:30 "
        "--output runs/2026-11-23/1.10/x --extractive lead,random --beam_width 7 "
        "--partition_by split,1.10 --no-flat "
        "--max_failed_share 0.001 --direct_num_workers=007"
    )


def test_a_whole_value_of_another_type_is_refused(tmp_path):
    text = "folder: f\nvars: {steps: 1}\n" + TRAIN_OF_VARIABLE
    message = "steps takes a value of type int, not '12:30'"
    with pytest.raises(UsageError, match=message):
        steps_of(write(tmp_path, text), steps="12:30")


def test_the_function_gives_the_command_lines(tmp_path):
    lines = precis.run(
        job=write(tmp_path, FILE), vars=["name=a", "steps=3"], dry_run=True
    )
    assert list(lines) == ["prepare", "train", "all-documents", "verify"]
    assert lines["verify"] == "precis verify runs/a/summaries"


def test_flags_of_beam_go_on_to_it(tmp_path):
    text = "folder: f\nsteps:\n- summarize:\n    corpus: 'sample:'\n    output: f/o\n"
    (step,) = steps_of(write(tmp_path, f"{text}    direct_num_workers: 2\n"))
    assert step.words[-1] == "--direct_num_workers=2"
    message = (
        r"job.yaml:3: summarize: '--beam_widht' is .*; did you mean --beam_width\?"
    )
    with pytest.raises(UsageError, match=message):
        steps_of(write(tmp_path, f"{text}    beam_widht: 2\n"))


def test_a_default_that_is_read_or_written_counts(tmp_path):
    evaluate, report, shown = steps_of(
        write(
            tmp_path,
            steps_text(
                "- evaluate: {input: r/}",
                "- report: {run: r, compare: other}",
                "- {name: page, report: {run: r, evaluation: e, output: p}}",
            ),
        )
    )
    assert (evaluate.inputs, evaluate.output) == (("r",), "r-evaluation")
    assert report.inputs == ("r", "r-evaluation", "other")
    assert report.output == "r-report.html" and report.reads(evaluate)
    assert (shown.inputs, shown.output) == (("r", "e"), "p")
    assert report.line() == "precis report --compare other r"


def test_a_report_stands_behind_the_evaluation_that_it_reads(tmp_path):
    text = steps_text("- report: {run: r}", "- evaluate: {input: r}")
    message = "report reads r-evaluation, which evaluate .* writes; put it behind that"
    with pytest.raises(UsageError, match=message):
        steps_of(write(tmp_path, text))


def steps_text(*lines: str) -> str:
    return "\n".join(["folder: f", "steps:", *(f"  {line}" for line in lines)])


ONE = "- digest: {run: r}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "job.yaml is empty; `steps:` is a list of commands"),
        ("[1", "job.yaml is not YAML: .*; correct the file"),
        ("steps: [", "job.yaml is not YAML: .*; correct the file"),
        ("- digest:", "job.yaml:1: the file must have names with values"),
        ("steps: []", "job.yaml: folder is missing; name a folder for the receipts"),
        ("folder: f", "job.yaml: steps is missing; `steps:` is a list"),
        ("folder: f\nsteps: []", "job.yaml:2: `steps:` is a list of commands"),
        ("folder: 3\nsteps: [a]", "job.yaml:1: name a folder for the receipts"),
        ("folder: f\nstep: []", "job.yaml:2: there is no 'step'; did you mean steps?"),
        ("folder: f\nother: 1", "job.yaml:2: there is no 'other'; it holds folder, "),
        (
            "folder: f\nfolder: g",
            "job.yaml:2: folder is there twice, first in line 1; take one out",
        ),
        (
            "folder: f\nvars: {folder: g}\nsteps: []",
            "job.yaml:2: folder stands beside `vars:`, not in it",
        ),
        (steps_text("- digest"), "job.yaml:3: a step must have names with values"),
        (
            steps_text("- digest: {run: r}", "  verify: {folder: r}"),
            "job.yaml:3: a step has one command, and this one digest, verify; begin",
        ),
        (
            steps_text(ONE, ONE),
            "job.yaml:4: the step in line 3 is named digest too; give one of them a "
            "`name:`",
        ),
        (
            steps_text("- name: a/b", "  digest: {run: r}"),
            "job.yaml:3: 'a/b' cannot name a step; take letters",
        ),
        (
            steps_text("- digest: {run: '${fodler}/r'}"),
            "job.yaml:3: there is no variable 'fodler'; did you mean folder?",
        ),
        (
            "folder: ${x}\nsteps: []",
            "job.yaml:1: there is no variable 'x'; name it below `vars:`",
        ),
        (
            steps_text("- digest: {run: 2026-02-31}"),
            "job.yaml is not YAML: day is out of range for month",
        ),
        (
            steps_text("- sumarize: {}"),
            "job.yaml:3: there is no command 'sumarize'; did you mean summarize?",
        ),
        (
            steps_text("- run: {job: job.yaml}"),
            "job.yaml:3: there is no command 'run'; known: prepare, ",
        ),
        (
            steps_text("- train:", "    records: r", "    output: o", "    stpes: 4"),
            "job.yaml:6: precis train has no flag 'stpes'; did you mean steps?",
        ),
        (
            steps_text("- train: {records: r, output: o, config: c}"),
            "job.yaml:3: config is a flag for the command line alone; take it out",
        ),
        (
            steps_text("- train: {records: r}"),
            "job.yaml:3: train: --output is needed: folder for",
        ),
        (
            steps_text("- train: {records: r, output: o, steps: many}"),
            "job.yaml:3: train: steps takes a value of type int, not 'many'",
        ),
        (
            steps_text("- train: {records: r, output: f/}"),
            "job.yaml:3: train writes f, the folder of the job itself; name one below",
        ),
        (
            steps_text(
                "- train: {records: r, output: o}",
                "- train-extractor: {records: r, output: ./o/}",
            ),
            "job.yaml:4: train-extractor writes o, as train .*job.yaml:3. does; name",
        ),
        (
            steps_text(
                "- train: {records: r, output: o}",
                "- prepare: {corpus: 'sample:', output: r}",
            ),
            "job.yaml:3: train reads r, which prepare .*job.yaml:4. writes; put it",
        ),
    ],
)
def test_a_file_that_cannot_be_run_is_refused(tmp_path, text, message):
    with pytest.raises(UsageError, match=message):
        steps_of(write(tmp_path, text))


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(UsageError, match="none.yaml: there is no such file; name one"):
        read_job(str(tmp_path / "none.yaml"), {})


def test_a_variable_that_the_file_does_not_have_is_refused(tmp_path):
    message = "--vars nam: .*job.yaml has no such variable; did you mean name?"
    with pytest.raises(UsageError, match=message):
        read_job(write(tmp_path, FILE), {"nam": "x"})


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"job": ""}, "FILE is empty; name a file in YAML with the steps"),
        ({"vars": "date"}, "--vars date is no NAME=VALUE; write --vars date="),
        ({"vars": "a=1\nb c=2"}, "--vars b c=2 is no NAME=VALUE"),
        (
            {"from_step": "a", "only_step": "b"},
            "--from_step and --only_step exclude each other; give one of them",
        ),
    ],
)
def test_options_that_cannot_be_are_refused(flags, message):
    with pytest.raises(UsageError, match=message):
        RunOptions(**{"job": "job.yaml", **flags})
