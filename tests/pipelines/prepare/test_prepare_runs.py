"""Tests of runs of `precis prepare`: a repeated, failed or killed one ends as an
undisturbed one.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import command_line
from support.command_line import contents, precis, write_jsonl
from support.prepared import FATES, LINES, all_examples, info, story
from support.signalled import PROGRAM, ROOT, is_progress, shell_environment
from support.small_encoder_checkpoint import BERT, write_pieces

from precis.model.errors import DataError, UsageError
from precis.model.tokenization.folder import load_tokenizers
from precis.model.tokenization.imported import read_tokenizer
from precis.pipelines.prepare.encoding_pass import EncodeWorker
from precis.pipelines.prepare.prepare import prepare
from precis.pipelines.prepare.vocabulary_pass import ScanWorker

pytestmark = pytest.mark.usefixtures("one_time")


@pytest.mark.slow
def test_processes_change_nothing(prepared_records, prepare_flags, tmp_path):
    flags = {"output": tmp_path / "o", "workers": 2, **prepare_flags}
    words = command_line.command_words("prepare", **flags)
    (tmp_path / "tensorflow.py").write_text("raise ImportError")  # It is not needed.
    command = [sys.executable, "-m", PROGRAM, *words]
    place = {"cwd": ROOT, "env": shell_environment(PYTHONPATH=str(tmp_path))}
    finished = subprocess.run(command, capture_output=True, text=True, **place)
    assert finished.returncode == 0, finished.stderr
    lines = finished.stderr.splitlines()
    # Counted in other processes.
    assert any(line.startswith(f"encode  {len(LINES)} documents  ") for line in lines)
    others = [line for line in lines if not is_progress(line)]
    assert all(line.startswith("precis prepare: warning: ") for line in others), others
    of_two, of_one = contents(tmp_path / "o"), contents(prepared_records)
    for files in (of_two, of_one):  # The flags are in dataset.json.
        described = json.loads(files["dataset.json"])
        described["provenance"]["flags"].pop("workers")
        files |= {"dataset.json": described, "_SUCCESS": ""}
    assert of_two == of_one


def test_it_needs_no_tensorflow(prepared_records, prepare_flags, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)  # as if it were not installed
    out = tmp_path / "out"
    assert precis("prepare", output=out, **prepare_flags) == 0
    assert contents(out) == contents(prepared_records)


def test_many_unknown_tokens_are_a_warning(tmp_path, capsys):
    """Chinese of 800 characters, with a vocabulary that has places for 138."""
    characters = [chr(19968 + n % 800) for n in range(0, 24_000, 7)]
    articles = ["".join(characters[start::300]) + "." for start in range(300)]
    lines = [{"article": each * 3, "highlights": each[-4:]} for each in articles]
    corpus = write_jsonl(tmp_path / "zh.jsonl", lines)
    limits = {"vocabulary_size": 300, "max_source_tokens": 9, "max_target_tokens": 3}
    assert precis("prepare", corpus=corpus, output=tmp_path / "out", **limits) == 0
    shares = info(tmp_path / "out")["unknown_shares"]
    warnings = command_line.error_lines(capsys.readouterr().err, "prepare")
    for side, name in (("source", "articles"), ("target", "targets")):
        rows = [example[side] for example in all_examples(tmp_path / "out")]
        tokens = [token for row in rows for token in row]
        assert max(map(len, rows)) == limits[f"max_{side}_tokens"]
        assert shares[side] == pytest.approx(tokens.count(1) / len(tokens), abs=1e-6)
        assert shares[side] > 0.2
        (line,) = (each for each in warnings if f"of the tokens of {name}" in each)
        assert line == (
            f"precis prepare: warning: {shares[side]:.1%} of the tokens of {name} are "
            "unknown, because the vocabulary lacks their characters, so a network can "
            "neither read nor write them; raise --vocabulary_size, or name another "
            "--tokenizer"
        )


def test_a_finished_job_is_left_alone(
    prepared_records, prepare_flags, tmp_path, capsys
):
    prepared_records = shutil.copytree(prepared_records, tmp_path / "records")
    before = {path: path.stat().st_mtime_ns for path in prepared_records.rglob("*")}
    assert precis("prepare", output=prepared_records, **prepare_flags) == 0
    after = {path: path.stat().st_mtime_ns for path in prepared_records.rglob("*")}
    assert after == before
    printed = capsys.readouterr()
    assert f"written {FATES.count('written')}" in printed.out
    assert f"{prepared_records} is already finished; nothing was done" in printed.err
    for changes, message in (
        ({"max_source_tokens": 41}, "`max_source_tokens=40` there, 41 here"),
        ({"seed": 3}, "seed=3 here, not given there"),
        ({"target": "headline"}, "`target=headline` here, not given there"),
        ({"tokenizer": prepared_records}, "the pieces of `tokenizer=`"),
    ):
        match = f"holds a finished result with other settings: .*{message}"
        with pytest.raises(UsageError, match=match):
            prepare(output=prepared_records, **{**prepare_flags, **changes})
    assert contents(prepared_records).keys() == {
        str(path.relative_to(prepared_records)) for path in before if path.is_file()
    }


def test_a_failed_job_goes_on(prepared_records, prepare_flags, tmp_path, monkeypatch):
    out = tmp_path / "out"
    message = rf"5 of {len(LINES)} records failed \(read/.*see {out}/dead_letters"
    with pytest.raises(DataError, match=message):
        prepare(output=out, **{**prepare_flags, "max_failed_share": 0.0})
    assert not (out / "_SUCCESS").exists()
    # A description in its place is that of a result, of which _SUCCESS may be missing.
    assert not (out / "dataset.json").exists()
    assert len(list((out / "dead_letters").iterdir())) == 1

    def fail(*_):
        raise AssertionError("this was done before")

    monkeypatch.setattr(EncodeWorker, "run", fail)
    monkeypatch.setattr(ScanWorker, "run", fail)
    prepare(output=out, **prepare_flags)
    assert contents(out) == contents(prepared_records)


@pytest.fixture(scope="module")
def of_two(prepare_flags, tmp_path_factory) -> Path:
    """Records whose sources an imported encoder reads, and whose targets have a
    vocabulary of their own.
    """
    folder = tmp_path_factory.mktemp("of_two")
    read_tokenizer(write_pieces(folder / "bert"), BERT).save(str(folder / "pieces"))
    flags = {**prepare_flags, "source_tokenizer": folder / "pieces"}
    prepare(output=folder / "records", **flags)
    return folder / "records"


def test_records_of_two_tokenizers_hold_and_name_both(of_two, prepared_records):
    both, described = load_tokenizers(str(of_two)), info(of_two)
    assert described["source_tokenizer_fingerprint"] == both.source.fingerprint
    assert described["tokenizer_fingerprint"] == both.target.fingerprint
    assert both.source.fingerprint != both.target.fingerprint
    assert described["counts"] == info(prepared_records)["counts"]
    assert {example["source"][0] for example in all_examples(of_two)} == {3}


def test_without_a_record_the_job_fails(of_two, tmp_path):
    """And tokenizers that are given are used as they are."""
    lines = [story(index, highlights=None) for index in range(5)]
    corpus = write_jsonl(tmp_path / "c.jsonl", lines)
    flags = {"tokenizer": of_two, "source_tokenizer": of_two}
    message = "no records were written: .*'without_highlights': 5.*; check --article_fi"
    with pytest.raises(DataError, match=message):
        prepare(corpus=corpus, output=tmp_path / "out", **flags)
    assert not (tmp_path / "out" / "_SUCCESS").exists()
    corpus = write_jsonl(tmp_path / "c.jsonl", [story(1, highlights="Дождь шёл.")])
    message = "no training documents .* highlights that ROUGE can read, for --oracle"
    with pytest.raises(DataError, match=message):
        prepare(corpus=corpus, output=tmp_path / "labelled", oracle_sentences=2)
    for name in ("tokenizer", "source_tokenizer"):
        assert contents(tmp_path / "out" / name) == contents(of_two / name)
