"""Tests of `precis verify`: every damage of a run, of records and of a bundle is
named.
"""

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from support.command_line import contents, exit_code, write_jsonl
from support.damaged_results import edit_description, findings

import precis
from precis.model import files
from precis.model.errors import DataError, UsageError
from precis.model.finished import listed_files
from precis.pipelines.run.result_files import describe_file

CHANGED = "its checksum differs from the checksum in"
FOREIGN = "is not part of the result"
NO_RECORD = "the corpus has no record at this place"
SEVERAL = "the record has more than one row or dead letter"


@pytest.fixture
def whole(extractive, prepared_records, bundle):
    """Each kind of result."""
    return {"run": extractive, "records": prepared_records, "bundle": bundle}


@pytest.fixture
def copy(whole, tmp_path):
    """A function that copies a result, so that a test may damage it."""
    return lambda kind: Path(shutil.copytree(whole[kind], tmp_path / kind))


@pytest.fixture
def run(copy):
    return copy("run")


def first(folder, pattern):
    """The first file that matches, and its name in the folder."""
    path = sorted(folder.glob(pattern))[0]
    return path, str(path.relative_to(folder))


def flipped(content):
    """A content with one other bit in its middle."""
    changed = bytearray(content)
    changed[len(content) // 2] ^= 1
    return bytes(changed)


def list_again(run, path, rows=None):
    """Makes a manifest that fits a file as it is now."""
    name = str(path.relative_to(run))

    def change(manifest):
        for file in listed_files(str(run / "manifest.json"), manifest):
            if file["file"] == name:
                listed = file["rows"] if rows is None else rows
                file.update(describe_file(str(run), name, rows=listed))

    edit_description(run / "manifest.json", change)


def change_rows(run, change):
    """Rewrites the first part, and the manifest so that it fits."""
    path, name = first(run, "data/*.parquet")
    old = pq.read_table(path)
    table = change(old).replace_schema_metadata(old.schema.metadata)
    pq.write_table(table, path)
    list_again(run, path, rows=table.num_rows)
    return name


def change_dead_letters(folder, change):
    """Rewrites the first file of dead letters, and the description so that it fits."""
    path, name = first(folder, "dead_letters/*")
    lines = gzip.decompress(path.read_bytes()).splitlines()
    dead_letters = list(map(json.loads, lines))
    changed = change(dead_letters)
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, changed)).encode()))
    list_again(folder, path, rows=len(changed))
    return name, dead_letters


def with_value(name, row, value):
    """A change of one value, or of all values of a column where `row` is None."""

    def change(table):
        index = table.schema.get_field_index(name)
        field, values = table.schema.field(index), table.column(index).to_pylist()
        for place in range(len(values)) if row is None else (row,):
            values[place] = value
        return table.set_column(index, field, pa.array(values, field.type))

    return change


def test_what_is_whole_has_no_findings(whole, corpus, capsys):
    for kind, folder in whole.items():
        sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
        assert exit_code("verify", str(folder)) == 0
        *notes, last = capsys.readouterr().out.splitlines()
        repeated = "note: document_id: 1 rows repeat the id of an earlier row, such as "
        assert len(notes) == (kind == "run")
        assert all(note.startswith(f"{repeated}'d00';") for note in notes)
        size = f"{len(sizes)} files, {sum(sizes):,} bytes"
        assert last == f"{kind} {folder} is complete and unchanged ({size})"
    result = precis.verify(folder=whole["run"], corpus=corpus)
    assert (result.kind, result.findings, len(result.notes)) == ("run", [], 1)


@pytest.mark.slow
def test_a_run_with_a_network_has_no_findings(undisturbed, corpus):
    assert findings(undisturbed, corpus=corpus) == []


OF_RECORDS = "*.tfrecord", "tokenizer/vocab.txt", "dead_letters/*"


@pytest.mark.parametrize("pattern", ["data/*", "dead_letters/*.gz", *OF_RECORDS])
def test_a_missing_cut_or_flipped_file_is_named(copy, pattern, capsys):
    kind = "records" if pattern in OF_RECORDS else "run"
    folder = copy(kind)
    path, name = first(folder, pattern)
    content = path.read_bytes()
    size = len(content)
    path.write_bytes(content[:-9])
    line = f"{name}: has {size - 9:,} bytes instead of the {size:,} that were written"
    assert findings(folder) == [line]
    path.write_bytes(flipped(content))
    line = f"{name}: was changed after it was written: its checksum differs"
    assert findings(folder) == [line]
    path.unlink()
    assert exit_code("verify", str(folder)) == 1
    line, *_, last = capsys.readouterr().out.splitlines()
    assert line == f"{name}: is missing"
    assert last.startswith(f"{kind} {folder} is damaged: 1 finding above (")


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("run", "x data/part-9.parquet data/split=a/x dead_letters/.x y/y/z data/x"),
        ("records", "x tokenizer/x train-9.tfrecord a/b/c"),
        ("bundle", "trainings tokenizer/x"),
    ],
)
def test_additional_files_are_named(copy, kind, names):
    folder = copy(kind)
    # The state of a training lies beside its bundle.
    for name in [*names.split(), *["training/losses.jsonl"] * (kind == "bundle")]:
        files.write_bytes(str(folder / name), b"")
    assert {*findings(folder)} == {f"{name}: {FOREIGN}" for name in names.split()}


def test_odd_entries_of_a_folder_and_files_of_a_job_are_named(run):
    """A name that is not UTF-8, one with a line break, links, and a pipe."""
    for name in ("job.json", "infer/00000.json"):
        files.write_bytes(str(run / "_tasks" / name), b"{}")
    job = "a job is running here or was stopped; run the same command to finish it"
    assert findings(run) == [f"_tasks: {job}"]
    (run / os.fsdecode(b"data/\xff")).touch()
    (run / "data" / "a\nb").touch()
    (run / "data" / "dangling").symlink_to(run / "nowhere")
    (run / "data" / "loop").symlink_to(run / "data")
    os.mkfifo(run / "data" / "pipe")
    names = ("\\udcff", "a\\nb", "dangling", "pipe", "loop")
    foreign = {f"data/{name}: {FOREIGN}" for name in names}
    assert {*findings(run)} == {f"_tasks: {job}", *foreign}


OTHER_CHECKSUM = f"manifest.json: {CHANGED} _SUCCESS; one of them was"


@pytest.mark.parametrize(
    ("name", "change", "line"),
    [
        ("_SUCCESS", None, "_SUCCESS: is missing: the result is not finished"),
        ("_SUCCESS", lambda old: b"", "_SUCCESS: has 0 bytes instead of 130"),
        ("_SUCCESS", lambda old: old[:-1], "_SUCCESS: has 129 bytes instead of 130"),
        ("_SUCCESS", lambda old: old + b"\n", "_SUCCESS: has 131 bytes instead of 13"),
        ("_SUCCESS", lambda old: b"0" * 129 + b"\n", OTHER_CHECKSUM),
        ("manifest.json", None, "manifest.json: missing; run the same command again"),
        ("manifest.json", lambda old: old.replace(b"1", b"2", 1), OTHER_CHECKSUM),
        ("manifest.json", lambda old: b"{", "manifest.json: damaged (not JSON: Expec"),
        ("manifest.json", lambda old: b"[" * 100_000, "manifest.json: damaged (not JS"),
        ("manifest.json", lambda old: b"{}", "manifest.json: schema_version is N"),
    ],
)
def test_no_command_believes_a_damaged_run(run, name, change, line, corpus, tmp_path):
    """The command that wrote it repairs it (`test_job.py`)."""
    content = (run / name).read_bytes()
    (run / name).unlink()
    if change:
        (run / name).write_bytes(change(content))
    assert findings(run)[0].startswith(line)
    named = f"^{run}/{line.partition(':')[0]}: .*; repair the run with the `precis s"
    out = {"output": tmp_path / "out"}
    for read, flags in (
        (precis.digest, {}),
        (precis.load, {"table": f"delta://{tmp_path}/table"}),
        (precis.loaders, {"for_": "duckdb", **out}),
        (precis.report, out),
    ):
        with pytest.raises(DataError, match=named):
            read(run=run, **flags)
    with pytest.raises(DataError, match=named):
        precis.evaluate(input=run, **out)
    is_gone = "this is not a finished run or a folder of runs; name the --output of an"
    with pytest.raises((DataError, UsageError), match=named if change else is_gone):
        precis.summarize(corpus=corpus, reuse=run, **out)


@pytest.mark.parametrize(
    ("name", "path", "value", "line"),
    [
        ("manifest.json", ["files"], None, "damaged ("),
        ("manifest.json", ["files", 0, "file"], "../x", "it lists the file '../x', "),
        ("manifest.json", ["files", 0, "file"], 3, "it lists the file 3, "),
        ("manifest.json", ["sources"], {"a": []}, "damaged ("),
        ("manifest.json", ["counts", "read"], "1", "counts.read is 1, but the sum ov"),
        ("manifest.json", ["schema_version"], 2, "schema_version is 2, but this "),
        ("manifest.json", ["run_id"], 5, "run_id does not match the fing"),
        ("manifest.json", ["settings"], {}, "settings_id does not match the set"),
        ("dataset.json", ["format_version"], 7, "format_version is 7, but t"),
        ("dataset.json", ["splits"], {"a": 1}, "damaged ("),
        ("dataset.json", ["seed"], "removed", "damaged ("),
        ("dataset.json", ["counts", "written"], 1, "counts.written is 1, but th"),
    ],
)
def test_an_edited_value_of_a_description_is_named(copy, name, path, value, line):
    def change(inner):
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value
        if value == "removed":
            del inner[path[-1]]

    folder = copy("run" if name == "manifest.json" else "records")
    edit_description(folder / name, change)
    named = [text for text in findings(folder) if line in text]
    assert named and all(text.startswith(name) for text in named)


def test_counts_of_a_source_file_that_do_not_add_up_are_named(run):
    def change(manifest):
        (counts,) = manifest["sources"].values()
        counts["written"] -= 1
        manifest["counts"]["written"] -= 1

    edit_description(run / "manifest.json", change)
    unequal, rows = findings(run)
    assert unequal.startswith("manifest.json: the run read ")
    assert "but accounts for written " in unequal
    assert rows.startswith("manifest.json: rows of ")
    assert rows.endswith(": 23, but the files have 24")


@pytest.mark.parametrize(
    ("pattern", "content", "what"),
    [
        ("data/*", b"no Parquet", "rows of a run"),
        ("dead_letters/*", b"no gzip", "dead letters"),
        ("dead_letters/*", gzip.compress(b"{}", mtime=0), "dead letters"),
    ],
)
def test_rewritten_files_that_are_no_rows_are_named(run, pattern, content, what):
    path, name = first(run, pattern)
    path.write_bytes(content)
    list_again(run, path)
    (found,) = findings(run)
    assert found.startswith(f"{name}: cannot be read as {what}: ")


def test_rows_and_letters_that_are_missing_or_repeated_are_named(copy):
    run = copy("run")
    content = contents(run)
    path, name = first(run, "data/*.parquet")
    rows = pq.read_metadata(path).num_rows
    change_rows(run, lambda table: table.slice(1))
    assert any(line.startswith("manifest.json: rows of ") for line in findings(run))
    list_again(run, path, rows=rows)
    count = f"{name}: has {rows - 1} rows, but the manifest lists {rows}"
    assert findings(run) == [count]
    path.write_bytes(content[name])
    change_rows(run, lambda table: pa.concat_tables([table, table.slice(1, 1)]))
    assert f"{name}, row {rows}: its document has another row" in findings(run)
    path.write_bytes(content[name])
    change_rows(run, lambda table: table.drop_columns(["duplicate_of"]))
    assert findings(run)[0].startswith(f"{name}: cannot be read as rows of a run: ")
    path.write_bytes(content[name])
    list_again(run, path)
    name, dead_letters = change_dead_letters(run, lambda given: given[1:])
    assert any("manifest.json: failed of " in line for line in findings(run))
    rows = len(dead_letters)
    list_again(run, run / name, rows=rows)
    count = f"{name}: has {rows - 1} rows, but the manifest lists {rows}"
    assert findings(run) == [count]


def test_rows_and_letters_of_another_run_are_named(run):
    """Many of them twenty times."""
    other = with_value("run_id", None, "x")
    name = change_rows(run, lambda table: other(pa.concat_tables([table] * 4)))
    rows = pq.read_metadata(run / name).num_rows
    lines = [line for line in findings(run) if "run_id differs" in line]
    assert len(lines) == 21 < rows
    problem = "run_id differs from the manifest"
    assert lines[0] == f"{name}, row 0: {problem}"
    assert lines[-1] == f"{name}: {problem}; {rows - 20} more places"
    name, _ = change_dead_letters(run, lambda given: [{**given[0], "run_id": "x"}])
    assert f"{name}, row 0: run_id belongs to another run" in findings(run)


def test_a_corpus_that_was_moved_is_compared_and_one_that_was_changed_named(
    run, corpus, tmp_path
):
    source = corpus.removeprefix("jsonl:")
    content = Path(source).read_bytes()
    moved = tmp_path / "elsewhere" / Path(source).name
    moved.parent.mkdir()
    moved.write_bytes(content)
    assert findings(run, corpus=f"jsonl:{moved}") == []
    moved.write_bytes(content.replace(b"Nobody", b"Nobodi", 1))
    lines = findings(run, corpus=f"jsonl:{moved}")
    assert [line.partition(": ")[2] for line in lines] == [
        "content_sha256 differs from the article; the document was changed",
        "a sentence differs from the article at its offsets",
    ]


@pytest.mark.parametrize(
    ("column", "value", "problem"),
    [
        ("content_sha256", "a" * 64, "content_sha256 differs from the article; the "),
        ("document_id", "x", "document_id differs from the document"),
        ("extractive", "text", "a sentence differs from the article at its offsets"),
    ],
)
def test_a_row_that_is_not_that_of_its_document_is_named(
    run, corpus, column, value, problem
):
    table = pq.read_table(first(run, "data/*.parquet")[0])
    row = pc.is_null(table.column("duplicate_of")).to_pylist().index(True, 3)
    if column == "extractive":
        value = table.column(column)[row].as_py()
        value[0]["text"] = "x" * len(value[0]["text"])
    name = change_rows(run, with_value(column, row, value))
    if column == "extractive":
        assert findings(run) == []
    lines = findings(run, corpus=corpus)
    assert any(line.startswith(f"{name}, row {row}: {problem}") for line in lines)


def test_documents_with_no_row_or_letter_or_with_two_are_named(run, corpus):
    source = corpus.removeprefix("jsonl:")
    table = pq.read_table(first(run, "data/*.parquet")[0])
    places = table.column("source_position").to_pylist()
    change_rows(run, with_value("source_position", 1, places[0]))
    lines = findings(run, corpus=corpus)
    assert f"{source}, {places[0]}: {SEVERAL}" in lines
    assert f"{source}, {places[1]}: the record has no row or dead letter" in lines
    change_rows(run, with_value("source_position", 1, "byte 1"))
    assert f"{source}, byte 1: {NO_RECORD}" in findings(run, corpus=corpus)

    def change(given):
        moved = [{**given[0], "source_position": at} for at in ("byte 2", places[2])]
        return [*moved, *given[1:], given[1]]

    _, (lost, twice, *_) = change_dead_letters(run, change)
    change_rows(run, with_value("source_position", 1, lost["source_position"]))
    lines = findings(run, corpus=corpus)
    place = f"{source}, {lost['source_position']}"
    assert f"{place}: the record is unusable but has a row" in lines
    assert f"{source}, byte 2: {NO_RECORD}" in lines
    for several in (places[2], twice["source_position"]):
        assert f"{source}, {several}: {SEVERAL}" in lines
    change_rows(run, with_value("source_position", 1, "byte 1"))
    lines = findings(run, corpus=corpus)
    assert f"{place}: the record has no row or dead letter" in lines


def test_a_corpus_is_read_with_the_flags_of_the_run(tmp_path):
    """They stand in the manifest; those that are given win."""
    text = "Rain fell on day {}. It was cold."
    documents = [{"key": f"k{n}", "text": text.format(n)} for n in "12"]
    corpus = write_jsonl(tmp_path / "news.jsonl", documents)
    run = tmp_path / "run"
    fields = {"article_field": "text", "id_field": "key"}
    precis.summarize(corpus=corpus, output=run, extractive="lead", **fields)
    assert findings(run, corpus=corpus) == []
    lines = findings(run, corpus=corpus, id_field="text")
    assert len(lines) == 2
    assert all("document_id differs from the document" in line for line in lines)


def test_a_run_of_two_corpora_is_compared_with_both(tmp_path, capsys):
    documents = [{"id": f"k{n}", "article": "Rain fell. It was cold."} for n in "12"]
    pairs = zip(("a.jsonl", "b.jsonl"), documents, strict=True)
    corpora = [write_jsonl(tmp_path / name, [document]) for name, document in pairs]
    run, both = str(tmp_path / "run"), [f"--corpus={corpus}" for corpus in corpora]
    assert exit_code("summarize", *both, "--output", run) == 0
    assert exit_code("verify", run, *both) == 0
    assert " is complete and unchanged (" in capsys.readouterr().out
    assert exit_code("verify", run, both[0]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{tmp_path}/b.jsonl, byte 0: ")
    outcome = "is complete and unchanged, but differs from --corpus: 1 finding above"
    assert lines[1].startswith(f"run {run} {outcome}")
    other = write_jsonl(tmp_path / "c.jsonl", documents)
    message = f"{other} is not the corpus of this run, which read {tmp_path}/a.json"
    with pytest.raises(UsageError, match=message):
        findings(run, corpus=other)


def test_folders_that_cannot_be_verified_are_refused(tmp_path, bundle):
    message = "is not a run, records or a bundle; name the --output of "
    for folder in (tmp_path / "none", tmp_path):
        with pytest.raises(UsageError, match=message):
            precis.verify(folder=folder)
        (tmp_path / "manifest.json").write_text('{"kind": "graph"}')
    message = "--corpus is only for a run, but .* holds a bundle"
    with pytest.raises(UsageError, match=message):
        findings(bundle, corpus="sample:3")


@pytest.mark.parametrize(
    ("name", "old", "new", "line"),
    [
        ("manifest.json", 'l_id": "', 'l_id": "0', "mod"),
        ("manifest.json", 'version": 1', 'version": 7', "this precis cannot read it"),
        ("tokenizer/vocab.txt", "the\n", "thy\n", "is damaged or missing: "),
        ("notes.txt", "", "a file of others", "is not part of the result"),
        ("README.md", "#", "other words", ""),
    ],
)
def test_an_edited_file_of_a_bundle_is_named(copy, name, old, new, line):
    path = copy("bundle") / name
    text = path.read_text() if path.exists() else ""
    path.write_text(text.replace(old, new, 1))
    lines = findings(path.parents[name.count("/")])
    start = f"{name.removesuffix('/vocab.txt')}: {line}"
    assert any(each.startswith(start) for each in lines) if line else not lines


def test_every_damage_of_what_a_model_computes_with_is_named(copy):
    folder = copy("bundle")
    content = (folder / "manifest.json").read_bytes()
    (folder / "manifest.json").unlink()
    assert findings(folder)[0].startswith("manifest.json: not a complete bundle (no m")
    (folder / "manifest.json").write_bytes(content)
    for file, content in contents(folder).items():
        for damaged in (flipped(content), None):
            path = folder / file
            path.unlink() if damaged is None else path.write_bytes(damaged)
            named = findings(folder)
            path.write_bytes(content)
            is_named = any(file.startswith(line.partition(":")[0]) for line in named)
            assert is_named or file in ("README.md", "manifest.json"), (file, damaged)
    assert findings(folder) == []


def test_verifying_needs_neither_beam_nor_tensorflow(whole):
    program = (
        "import sys\n"
        "from precis.pipelines.command_line.cli import main\n"
        "assert all(main(['verify', folder]) == 0 for folder in sys.argv[1:])\n"
        "assert main(['digest', sys.argv[1]]) == 0\n"
        "heavy = {'tensorflow', 'apache_beam', 'keras'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    command = [sys.executable, "-c", program, *map(str, whole.values())]
    done = subprocess.run(command, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
