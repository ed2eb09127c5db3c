"""Tests of `precis verify` on runs: every kind of damage is named."""

import gzip
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from support.command_line import exit_code, write_jsonl
from support.damaged_results import describe_again, edit_description, findings

import precis
from precis.model import files
from precis.model.errors import UsageError


@pytest.fixture
def run(extractive: Path, tmp_path: Path) -> Path:
    """A copy of a run without a network."""
    return Path(shutil.copytree(extractive, tmp_path / "run"))


def parts(run: Path) -> list[Path]:
    return sorted((run / "data").rglob("*.parquet"))


def letters(run: Path) -> list[Path]:
    return sorted((run / "dead_letters").iterdir())


def edit_manifest(run: Path, change: Callable[[dict[str, Any]], None]) -> None:
    edit_description(run / "manifest.json", change)


def list_again(run: Path, path: Path) -> None:
    """Makes the manifest describe a file as it is now."""

    def change(manifest: dict[str, Any]) -> None:
        describe_again((*manifest["files"], *manifest["dead_letters"]), run, path)

    edit_manifest(run, change)


def change_rows(run: Path, change: Callable[[pa.Table], pa.Table]) -> str:
    """Rewrites the first part, and the manifest so that its checksum is right."""
    path = parts(run)[0]
    pq.write_table(change(pq.read_table(path)), path)
    list_again(run, path)
    return f"data/{path.name}"


def with_column(table: pa.Table, name: str, values: list[Any]) -> pa.Table:
    index = table.schema.get_field_index(name)
    field = table.schema.field(index)
    return table.set_column(index, field, pa.array(values, field.type))


def with_value(name: str, row: int, value: Any) -> Callable[[pa.Table], pa.Table]:
    """A change of one value."""

    def change(table: pa.Table) -> pa.Table:
        values = table.column(name).to_pylist()
        values[row] = value
        return with_column(table, name, values)

    return change


def test_a_whole_run_has_no_findings(extractive, corpus, capsys):
    size = sum(path.stat().st_size for path in extractive.rglob("*") if path.is_file())
    manifest = json.loads((extractive / "manifest.json").read_bytes())
    rows = sum(file["rows"] for file in manifest["files"])
    count = 2 + len(manifest["files"]) + len(manifest["dead_letters"])
    assert exit_code("verify", str(extractive)) == 0
    assert capsys.readouterr().out == (
        "note: document_id: 1 rows have that of a row before them, such as 'd00'; it "
        f"alone is no key of these rows\nrun {extractive} is as it was written "
        f"({count} files, {rows} rows, {size:,} bytes)\n"
    )
    result = precis.verify(folder=extractive, corpus=corpus)
    assert result[:-1] == ("run", [], count, rows, size, corpus, [])
    assert len(result.notes) == 1


@pytest.mark.slow
def test_a_run_with_a_network_has_no_findings(undisturbed, corpus):
    assert findings(undisturbed, corpus=corpus) == []


def test_a_missing_part_is_named(run, capsys):
    path = parts(run)[0]
    path.unlink()
    assert exit_code("verify", str(run)) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"data/{path.name}: is missing"
    assert lines[1].startswith(f"run {run} is damaged: 1 finding above (")


def test_a_missing_file_of_dead_letters_is_named(run):
    path = letters(run)[0]
    path.unlink()
    assert findings(run) == [f"dead_letters/{path.name}: is missing"]


@pytest.mark.parametrize("which", [parts, letters])
def test_a_truncated_file_is_named(run, which):
    path = which(run)[0]
    content = path.read_bytes()
    path.write_bytes(content[:-9])
    assert findings(run) == [
        f"{path.relative_to(run)}: has {len(content) - 9:,} bytes and was written with "
        f"{len(content):,}"
    ]


@pytest.mark.parametrize("which", [parts, letters])
def test_a_flipped_byte_is_named(run, which):
    path = which(run)[0]
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert findings(run) == [
        f"{path.relative_to(run)}: has another content than was written: its checksum "
        "differs"
    ]


@pytest.mark.parametrize(
    "name",
    [
        "x",
        "data/part-9.parquet",
        "data/split=a/x",
        "dead_letters/.x",
        "x/y/z",
        "data/x",
    ],
)
def test_an_additional_file_is_named(run, name):
    path = run / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    assert findings(run) == [f"{name}: is no part of the result"]


def test_odd_entries_of_a_folder_are_named(run):
    """A name that is not UTF-8, one with a line break, links, and a pipe."""
    (run / os.fsdecode(b"data/\xff")).touch()
    (run / "data" / "a\nb").touch()
    (run / "data" / "dangling").symlink_to(run / "nowhere")
    (run / "data" / "loop").symlink_to(run / "data")
    os.mkfifo(run / "data" / "pipe")
    lines = findings(run)
    assert all(line.endswith(": is no part of the result") for line in lines)
    names = {line.partition(": ")[0] for line in lines}
    assert names == {
        f"data/{n}" for n in ("\\udcff", "a\\nb", "dangling", "pipe", "loop")
    }


def test_files_of_a_job_are_named_once(run):
    for name in ("job.json", "infer/00000.json"):
        files.write_bytes(str(run / "_tasks" / name), b"{}")
    assert findings(run) == [
        "_tasks: a job runs here or was stopped; the same command finishes it"
    ]


def test_a_part_of_another_run_is_named(run, undisturbed):
    """First in place of a part, then with a manifest that describes it."""
    path, other = parts(run)[0], parts(undisturbed)[0]
    shutil.copy(other, path)
    name = f"data/{path.name}"
    (line,) = findings(run)
    assert line.startswith(f"{name}: has ")
    list_again(run, path)
    lines = findings(run)
    assert any(
        line.startswith(f"{name}: its footer has the run_id ")
        and line.endswith("it is of another run")
        for line in lines
    )


def test_a_missing_success_is_named(run):
    (run / "_SUCCESS").unlink()
    assert findings(run) == ["_SUCCESS: is missing: the result is not finished"]


@pytest.mark.parametrize(
    ("edit", "line"),
    [
        (lambda f, c: "", "_SUCCESS: does not hold a fingerprint and a checksum"),
        (
            lambda f, c: f"{f}\n{c}",
            "_SUCCESS: has other white space than precis writes",
        ),
        (
            lambda f, c: f"{f} {c}\n",
            "_SUCCESS: has other white space than precis writes",
        ),
        (lambda f, c: f"{f}\n", "_SUCCESS: does not hold a fingerprint and a checksum"),
        (
            lambda f, c: f"{c}\n{c}\n",
            "_SUCCESS: its fingerprint is not that of manifest.json",
        ),
        (
            lambda f, c: f"{f}\n{f}\n",
            "manifest.json: its checksum is not that in _SUCCESS; one of them was "
            "changed",
        ),
    ],
)
def test_an_edited_success_is_named(run, edit, line):
    path = run / "_SUCCESS"
    path.write_text(edit(*path.read_text().split()))
    assert findings(run) == [line]


def test_an_edited_manifest_is_named(run):
    path = run / "manifest.json"
    path.write_text(path.read_text().replace('"corpus"', '"corpse"'))
    assert findings(run) == [
        "manifest.json: its checksum is not that in _SUCCESS; one of them was changed"
    ]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (None, "manifest.json: is missing: the result is not finished"),
        (b"{", "manifest.json: is damaged: not JSON: Expecting property name "),
        (b"\xff", "manifest.json: is damaged: not JSON: 'utf-8' codec can't decode"),
        (b"[" * 100_000, "manifest.json: is damaged: not JSON: "),
        (b"[1]", "manifest.json: is damaged: it holds no JSON object"),
        (b"{}", "manifest.json: is damaged: it is no manifest of a run"),
        (
            b'{"kind": "summaries"}',
            "manifest.json: its checksum is not that in _SUCCESS",
        ),
    ],
)
def test_a_damaged_manifest_is_named(run, content, line):
    path = run / "manifest.json"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    assert any(found.startswith(line) for found in findings(run))


def _set(*keys: Any, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(manifest: dict[str, Any]) -> None:
        inner: Any = manifest
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (_set("files", value=None), "files must be of the type "),
        (_set("files", value=[1]), "its list of files is damaged: "),
        (_set("files", 0, value={}), "its list of files is damaged: file is missing"),
        (_set("files", 0, "file", value="../x"), "it names the file '../x', which "),
        (_set("files", 0, "file", value=3), "its list of files is damaged: file must"),
        (_set("sources", value={"a": []}), "is damaged: the value must be of the type"),
        (_set("counts", "read", value="1"), "is damaged: read must be of the type "),
        (_set("schema_version", value=2), "its schema_version is 2, and this precis "),
        (_set("run_id", value="0" * 16), "its run_id is not that of its fingerprint"),
        (_set("settings", value={}), "its settings_id is not that of its settings"),
        (_set("counts", "read", value=7), "counts.read is 7, and the sum of the "),
        (_set("counts", "truncated", value=7), "counts.truncated is 7, and 0 rows are"),
        (_set("summary_methods", value={"x": 1}), "summary_methods.x is 1, and the "),
        (_set("quality_flags", value={"x": 1}), "quality_flags.x is 1, and the files"),
        (_set("fallbacks", value={"x": 1}), "fallbacks.x is 1, and the files have 0"),
        (_set("failures", value={"x": 1}), "failures.x is 1, and the files have 0"),
    ],
)
def test_a_value_of_the_manifest_is_named(run, change, line):
    edit_manifest(run, change)
    assert any(line in found for found in findings(run))


def test_a_file_that_is_listed_twice_is_named(run):
    edit_manifest(run, lambda m: m["files"].append(m["files"][0]))
    name = f"data/{parts(run)[0].name}"
    assert findings(run) == [f"manifest.json: it lists {name} more than once"]


def test_counts_of_a_source_file_that_do_not_add_up_are_named(run):
    def change(manifest: dict[str, Any]) -> None:
        (counts,) = manifest["sources"].values()
        counts["written"] -= 1
        manifest["counts"]["written"] -= 1

    edit_manifest(run, change)
    unequal, rows = findings(run)
    assert unequal.startswith("manifest.json: the run read ")
    assert "which are not those it accounts for: written " in unequal
    assert rows.startswith("manifest.json: the parts have ") and " rows of " in rows


def test_dead_letters_that_are_not_those_of_the_counts_are_named(run):
    """A letter is taken out, and the manifest describes the file as it is then."""
    path = letters(run)[0]
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    path.write_bytes(gzip.compress(b"".join(lines[1:])))
    list_again(run, path)
    name = f"dead_letters/{path.name}"
    assert findings(run)[0] == (
        f"{name}: has {len(lines) - 1} rows; {len(lines)} are listed"
    )
    edit_manifest(run, lambda m: m["dead_letters"][0].update(rows=len(lines) - 1))
    lines = findings(run)
    assert any("manifest.json: the dead letters have " in line for line in lines)


def test_dead_letters_that_cannot_be_read_are_named(run):
    path = letters(run)[0]
    path.write_bytes(b"no gzip")
    list_again(run, path)
    (line,) = findings(run)
    assert line.startswith(f"dead_letters/{path.name}: cannot be read as dead letters")


def test_a_part_that_is_no_parquet_is_named(run):
    path = parts(run)[0]
    path.write_bytes(b"no Parquet")
    list_again(run, path)
    (line,) = findings(run)
    assert line.startswith(f"data/{path.name}: cannot be read as Parquet: ")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda t: t.drop_columns(["summary"]), "the column 'summary' is missing"),
        (
            lambda t: t.select(["split", *(n for n in t.column_names if n != "split")]),
            "the column 'document_id' stands at another place",
        ),
        (
            lambda t: t.append_column("x", pa.nulls(len(t))),
            "the column 'x' is neither of the schema nor a kept field",
        ),
        (
            lambda t: t.set_column(0, "document_id", t.column(0).cast("large_string")),
            "the column 'document_id' is large_string, or nullable, other than the "
            "schema says",
        ),
        (lambda t: t.slice(1), "has {rows} rows, and the manifest says {more}"),
        (
            lambda t: t.replace_schema_metadata({}),
            "its footer has the run_id of no run, and the manifest ",
        ),
    ],
)
def test_another_schema_or_footer_is_named(run, change, problem):
    more = len(pq.read_table(parts(run)[0]))
    name = change_rows(run, change)
    line = f"{name}: {problem.format(rows=more - 1, more=more)}"
    assert any(found.startswith(line) for found in findings(run))


@pytest.mark.parametrize(
    ("column", "value", "problem"),
    [
        ("document_id", "", "document_id is empty"),
        ("content_sha256", "A" * 64, "content_sha256 is no sha256"),
        ("content_sha256", "a" * 64 + "\n", "content_sha256 is no sha256"),
        ("reused_from", "x", "reused_from is no run_id of an earlier run"),
        ("run_id", "0" * 16, "run_id is not that of the manifest, "),
        ("settings_id", "0" * 16, "settings_id is not that of the manifest, "),
        ("schema_version", 2, "schema_version is not that of the manifest, 5"),
        ("model_id", "x", "model_id is not that of the manifest, None"),
        ("duplicate_of", "none", "duplicate_of names no document of the run"),
    ],
)
def test_a_wrong_value_of_a_row_is_named(run, column, value, problem):
    name = change_rows(run, with_value(column, 2, value))
    assert any(found.startswith(f"{name}, row 2: {problem}") for found in findings(run))


def test_a_duplicate_of_a_document_that_failed_is_no_finding(run):
    change_rows(run, with_value("duplicate_of", 2, "failed"))
    problem = "duplicate_of names no document of the run"
    assert any(problem in line for line in findings(run))
    edit_manifest(run, lambda m: m["failures"].update({"extract/error": 1}))
    assert not any(problem in line for line in findings(run))


def test_a_duplicate_of_itself_or_of_another_text_is_named(run):
    table = pq.read_table(parts(run)[0])
    ids = table.column("document_id").to_pylist()
    contents = table.column("content_sha256").to_pylist()
    other = next(row for row in range(1, len(ids)) if contents[row] != contents[0])
    name = change_rows(run, with_value("duplicate_of", 0, ids[0]))
    assert f"{name}, row 0: duplicate_of is its own document_id" in findings(run)
    change_rows(run, with_value("duplicate_of", 0, ids[other]))
    problem = "duplicate_of names a document with another content_sha256"
    assert f"{name}, row 0: {problem}" in findings(run)


def test_a_key_that_stands_twice_is_named(run):
    def repeat(table: pa.Table) -> pa.Table:
        both = pa.concat_tables([table, table.slice(1, 1)])
        return both.replace_schema_metadata(table.schema.metadata)

    name = change_rows(run, repeat)
    rows = len(pq.read_table(parts(run)[0]))
    edit_manifest(run, lambda m: m["files"][0].update(rows=rows))
    problem = "its document has another row"
    assert f"{name}, row {rows - 1}: {problem}" in findings(run)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            {"start": -1},
            "a sentence ends before it starts, or starts before the article",
        ),
        ({"end": 0}, "a sentence ends before it starts, or starts before the article"),
        ({"text": "Rain"}, "a sentence is not as long as its offsets say"),
    ],
)
def test_wrong_offsets_are_named(run, change, problem):
    table = pq.read_table(parts(run)[0])
    sentences = table.column("extractive").to_pylist()
    row = next(
        row for row, items in enumerate(sentences) if items and items[-1]["start"]
    )
    sentences[row][-1].update(change)
    name = change_rows(run, lambda table: with_column(table, "extractive", sentences))
    assert f"{name}, row {row}: {problem}" in findings(run)


def test_what_is_wrong_with_many_rows_is_named_twenty_times(run):
    def change(table: pa.Table) -> pa.Table:
        table = pa.concat_tables([table] * 4)
        return with_column(table, "run_id", ["x"] * len(table))

    name = change_rows(run, change)
    rows = len(pq.read_table(parts(run)[0]))
    assert rows > 21
    edit_manifest(run, lambda m: m["files"][0].update(rows=rows))
    lines = [line for line in findings(run) if "run_id is not" in line]
    assert len(lines) == 21
    assert lines[-1].startswith(f"{name}: run_id is not that of the manifest, ")
    assert lines[-1].endswith(f", in {rows - 20} more places")


def test_a_corpus_that_was_moved_is_compared_and_one_that_was_changed_named(
    run, corpus, tmp_path
):
    source = corpus.removeprefix("jsonl:")
    content = Path(source).read_bytes()
    copy = tmp_path / "elsewhere" / Path(source).name
    copy.parent.mkdir()
    copy.write_bytes(content)
    assert findings(run, corpus=f"jsonl:{copy}") == []
    copy.write_bytes(content.replace(b"Nobody", b"Nobodi", 1))
    problems = [
        line.partition(": ")[2] for line in findings(run, corpus=f"jsonl:{copy}")
    ]
    assert problems == [
        "content_sha256 is not that of the article; the document was changed",
        "a sentence is not what the article has at its offsets",
    ]


def test_rows_are_compared_with_their_documents(run, corpus):
    table = pq.read_table(parts(run)[0])
    sentences = table.column("extractive").to_pylist()
    row = next(row for row, items in enumerate(sentences) if items)
    item = sentences[row][0]
    item["text"] = "x" * len(item["text"])
    name = change_rows(run, lambda table: with_column(table, "extractive", sentences))
    assert findings(run) == []
    assert findings(run, corpus=corpus) == [
        f"{name}, row {row}: a sentence is not what the article has at its offsets"
    ]


@pytest.mark.parametrize(
    ("column", "value", "problem"),
    [
        (
            "content_sha256",
            "a" * 64,
            "content_sha256 is not that of the article; the document was changed",
        ),
        ("document_id", "x", "document_id is not that of the document"),
        (
            "source_position",
            "byte 1",
            "source_file and source_position name no document of the corpus",
        ),
    ],
)
def test_a_row_of_no_document_is_named(run, corpus, column, value, problem):
    table = pq.read_table(parts(run)[0])
    is_single = pc.is_null(table.column("duplicate_of")).to_pylist()
    row = is_single.index(True, 3)
    name = change_rows(run, with_value(column, row, value))
    assert f"{name}, row {row}: {problem}" in findings(run, corpus=corpus)


def test_documents_without_a_row_or_with_two_are_named(run, corpus):
    """The second row becomes the place of the first."""
    table = pq.read_table(parts(run)[0])
    places = table.column("source_position").to_pylist()
    change_rows(run, with_value("source_position", 1, places[0]))
    source = corpus.removeprefix("jsonl:")
    lines = findings(run, corpus=corpus)
    assert f"{source}, {places[0]}: has more than one row or dead letter" in lines
    assert f"{source}, {places[1]}: has neither a row nor a dead letter" in lines


def test_records_and_letters_that_do_not_match_are_named(run, corpus):
    path = letters(run)[0]
    lines = gzip.decompress(path.read_bytes()).splitlines()
    letter = json.loads(lines[0])
    place = letter["source_position"]
    letter["source_position"] = "byte 1"
    content = b"\n".join([json.dumps(letter).encode(), *lines[1:]]) + b"\n"
    path.write_bytes(gzip.compress(content))
    list_again(run, path)
    assert findings(run) == []
    source = corpus.removeprefix("jsonl:")
    assert sorted(findings(run, corpus=corpus)) == sorted(
        [
            f"{source}, {place}: cannot be used and has no dead letter",
            f"dead_letters/{path.name}, byte 1: a letter is of no record of the corpus",
        ]
    )


def test_a_record_with_two_letters_or_with_a_letter_and_a_row_is_named(run, corpus):
    path = letters(run)[0]
    lines = gzip.decompress(path.read_bytes()).splitlines()
    letter = json.loads(lines[0])
    table = pq.read_table(parts(run)[0])
    place = table.column("source_position")[0].as_py()
    of_row = json.dumps({**letter, "source_position": place}).encode()
    content = b"\n".join([*lines, lines[0], of_row]) + b"\n"
    path.write_bytes(gzip.compress(content))
    list_again(run, path)
    lines = findings(run, corpus=corpus)
    name = f"dead_letters/{path.name}"
    twice = f"{name}, {letter['source_position']}: a record has more than one letter"
    assert lines.count(twice) == 2
    source = corpus.removeprefix("jsonl:")
    assert f"{source}, {place}: has more than one row or dead letter" in lines


def test_a_row_of_a_record_that_cannot_be_used_is_named(run, corpus):
    """It is no row of a document, although the record is there."""
    letter = json.loads(gzip.decompress(letters(run)[0].read_bytes()).splitlines()[0])
    place = letter["source_position"]
    name = change_rows(run, with_value("source_position", 0, place))
    problem = "source_file and source_position name no document of the corpus"
    assert f"{name}, row 0: {problem}" in findings(run, corpus=corpus)


def test_a_corpus_that_was_copied_elsewhere_is_read_with_the_flags_of_the_run(
    tmp_path,
):
    """The flags of the corpus stand in the manifest; those that are given win."""
    documents = [
        {"key": f"k{n}", "text": f"Rain fell on day {n}. It was cold."} for n in "12"
    ]
    corpus = write_jsonl(tmp_path / "news.jsonl", documents)
    run = tmp_path / "run"
    precis.summarize(
        corpus=corpus,
        article_field="text",
        id_field="key",
        output=run,
        extractive="lead",
    )
    assert findings(run, corpus=corpus) == []
    edit_manifest(run, _set("provenance", "flags", "retry_failures", value="other"))
    write_jsonl(tmp_path / "news.jsonl", [{"key": "k", "text": "Rain."}])
    assert not [x for x in findings(run, corpus=corpus) if "neither a row" in x]
    write_jsonl(tmp_path / "news.jsonl", documents)
    lines = findings(run, corpus=corpus, id_field="text")
    assert all("document_id is not that of the document" in line for line in lines)
    assert len(lines) == 2


def test_folders_that_cannot_be_verified_are_refused(tmp_path, run):
    message = "is neither a run nor records nor a bundle; name the --output of "
    with pytest.raises(UsageError, match=message):
        precis.verify(folder=tmp_path / "none")
    (tmp_path / "manifest.json").write_text('{"kind": "graph"}')
    with pytest.raises(UsageError, match="is neither that of a run nor that of a bun"):
        precis.verify(folder=tmp_path)
    with pytest.raises(UsageError, match="DIR is empty; name the --output of another"):
        precis.verify(folder="")
