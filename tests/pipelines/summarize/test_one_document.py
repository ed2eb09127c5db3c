"""Tests of `precis summarize --text FILE`: its row is that of a run, the summary alone
is on the standard output, and what cannot be read is named with a way out.
"""

import io
import json
import os
import re
import subprocess
import sys
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from support import read_table
from support.command_line import error_lines, exit_code, precis

from precis.pipelines.command_line.results import warnings_of
from precis.pipelines.summarize.summarize import summarize
from precis.pipelines.summarize.texts import summarize_document

TEXT = (
    "(CNN) -- Rain fell on Oslo on Monday. The mayor said that 40 streets were closed "
    "and 1,200 people had left their homes. Schools in Oslo stayed open. Trains ran "
    "late, and the airport cancelled 15 flights. The storm had formed over the North "
    "Sea on Saturday. Forecasters expect it to weaken by Wednesday, write to "
    "press@oslo.example.\n"
)


@pytest.fixture(autouse=True)
def article(tmp_path, monkeypatch):
    """An article in the folder that tests work in."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "article.txt"
    path.write_text(TEXT)
    return path


def feed(monkeypatch, content: bytes) -> None:
    """Puts bytes on the standard input."""
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))


FLAGS = {"extractive": "luhn,lead", "sentences": 2, "clean": "none", "language": "cy"}


def test_the_row_is_that_of_a_run_over_the_document(article, tmp_path, capsys):
    summarize(corpus=f"text:{article}", output=tmp_path / "run", **FLAGS)
    (expected,) = pq.read_table(tmp_path / "run" / "data").to_pylist()
    capsys.readouterr()
    assert precis("summarize", text="article.txt", json=True, **FLAGS) == 0
    (line,) = capsys.readouterr().out.splitlines()
    row = json.loads(line)
    assert row == {**expected, "run_id": ""}
    assert list(row) == list(expected)
    assert (row["document_id"], row["split"] != "") == ("article", True)
    assert row["language"] == "cy"
    assert row["source_file"] == str(article)


def test_the_standard_input_has_no_name_and_the_same_summary(monkeypatch):
    from_file = summarize_document("article.txt", **FLAGS)
    feed(monkeypatch, b"\xef\xbb\xbf" + TEXT.encode())
    row = summarize_document("-", **FLAGS)
    changed = {name for name in row if row[name] != from_file[name]}
    assert changed <= {"document_id", "source_file", "split"}
    assert (row["source_file"], row["source_position"]) == ("-", "file")
    assert row["document_id"] == row["content_sha256"]


def test_a_short_document_is_its_own_summary(monkeypatch, capsys):
    feed(monkeypatch, b"Rain fell on Oslo.")
    assert exit_code("summarize", "--text", "-") == 0
    printed = capsys.readouterr()
    assert printed.out == "Rain fell on Oslo.\n"
    said = error_lines(printed.err, "summarize")[-1]
    assert said.endswith("the document is short, so the summary is the document itself")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b" \n\t", "it.txt: it holds no text, or null characters like a binary file"),
        (b"Rain\0fell", "it.txt: it holds no text, or null characters"),
        (b"Rain \xe9 fell.", "invalid_utf8: byte 5: .*; it seems to be cp1252: save"),
        (b"%PDF-1.4\n\x80", "is a PDF; `pdftotext it.txt - | precis summarize --text "),
        (b"%PDF-1.4 by chance", "it is a PDF; `pdftotext it.txt -"),
        (b"\x1f\x8b\x08\x00", "is compressed by gzip; `gunzip -c it.txt | precis"),
        (b"PK\x03\x04\xff", "it is a zip file, such as .docx or .xlsx; unpack"),
        (b"PAR1\x15\0", "it is Parquet; --corpus parquet:it.txt reads its rows"),
        (b"\xff\xfeR\0", "it is UTF-16; --encoding utf-16 reads it"),
        (b"R" * (1 << 20) + b"!", "more than 1,048,576 bytes .--max_record_mb"),
    ],
)
def test_what_is_no_text_is_refused(content, message, tmp_path, monkeypatch, capsys):
    (tmp_path / "it.txt").write_bytes(content)
    flags = ("--max_record_mb", "1")
    assert exit_code("summarize", "--text", "it.txt", *flags) == 1
    (line,) = error_lines(capsys.readouterr().err, "summarize")
    assert re.search(message, line), line
    feed(monkeypatch, content)
    assert exit_code("summarize", "--text", "-", *flags) == 1
    (line,) = error_lines(capsys.readouterr().err, "summarize")
    assert line.startswith("precis summarize: the standard input")


@pytest.mark.parametrize(
    ("name", "corpus"),
    [("news.jsonl", "jsonl:news.jsonl"), ("a b.CSV", "'csv:a b.CSV'"), ("news.md", "")],
)
def test_a_file_of_records_is_summarized_with_a_warning(name, corpus, article, capsys):
    article.rename(name)
    assert exit_code("summarize", "--text", name) == 0
    printed = capsys.readouterr()
    warnings = [line for line in printed.err.splitlines() if "warning: " in line]
    assert len(warnings) == bool(corpus) and printed.out
    assert not corpus or f"use --corpus {corpus} --output summaries" in warnings[0]


REFUSED = read_table("refused_commands")["beside an article"]


@pytest.mark.parametrize(("words", "message"), REFUSED.items())
def test_a_command_that_cannot_be_is_refused(words, message, tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe")
    assert exit_code("summarize", *words.split()) == 2
    printed = capsys.readouterr()
    (line,) = error_lines(printed.err, "summarize")
    assert line.startswith(f"precis summarize: {message}")
    assert printed.out == "" and sorted(os.listdir()) == ["article.txt", "pipe"]


def test_warnings_of_a_summary_name_its_faults():
    faults = dict.fromkeys(("unsupported_dates", "unsupported_names"), [])
    faults |= {"unsupported_numbers": ["17"], "flags": ["unsupported_number"]}
    row = {"truncated": True, "seen_tokens": 400, "source_tokens": 1200}
    row |= {"abstractive_summary": "It rained.", "abstractive_quality": faults}
    row |= {"summary_method": "lead", "quality_flags": faults["flags"]}
    assert warnings_of({**row, "summary_method": "abstractive"})[:2] == [
        "quality flags: unsupported_number",
        "numbers that are not in the document: 17",
    ]
    assert warnings_of({**row, "quality_flags": []}) == [
        "the network's summary is not shown (unsupported_number); these sentences of "
        "the document are chosen by the method lead",
        "the network read 400 of the 1,200 tokens of the document",
    ]


def test_neither_beam_nor_tensorflow_nor_pandas_is_imported(tmp_path):
    (tmp_path / "pandas.py").touch()  # Arrow would import it.
    program = (
        "import sys\n"
        "from precis.pipelines.command_line.cli import main\n"
        "assert main(['summarize', '--text', 'article.txt']) == 0\n"
        "print({'apache_beam', 'tensorflow', 'pandas'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", program]
    variables = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, env=variables, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "set()", done.stderr
