"""The files of a local corpus: links, odd names, texts, and what is no file."""

import bz2
import contextlib
import gzip
import io
import json
import os
import re
import socket
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.corpus_records import parted, read_corpus

from precis.model import files
from precis.model.errors import UsageError
from precis.model.text.article import Article
from precis.model.text.document import TextSettings
from precis.pipelines.corpus import opening
from precis.pipelines.corpus.corpus import list_tasks
from precis.pipelines.corpus.opening import local_name, written_name
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.task import DeadLetter, to_article


def texts(corpus):
    """The texts of the documents by id, and (name, reason) of the others."""
    documents, lost = parted(read_corpus(corpus)[1])
    assert len({each.document_id for each in documents}) == len(documents)
    return (
        {each.document_id: each.article for each in documents},
        [(os.path.basename(each.source_file), each.reason) for each in lost],
    )


def test_links_to_files_are_read_under_their_own_names(tmp_path):
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "a.txt").write_text("text")
    for name in ("one.txt", "two.txt"):
        (tmp_path / name).symlink_to(tmp_path / "store" / "a.txt")
    assert texts(f"text:{tmp_path}/*.txt") == ({"one": "text", "two": "text"}, [])
    both = texts(f"text:{tmp_path}/**/*.txt")[0]
    assert both == dict.fromkeys(("one", "two", "store/a"), "text")
    assert texts(f"text:{tmp_path}/one.txt")[0] == {"one": "text"}


def test_links_to_folders_are_followed_and_loops_end(tmp_path):
    corpus, store = tmp_path / "corpus", tmp_path / "store"
    (store / "deep").mkdir(parents=True)
    (store / "deep" / "a.story").write_text("Text.")
    corpus.mkdir()
    (corpus / "b.story").write_text("Text.")
    (corpus / "linked").symlink_to(store)
    (store / "deep" / "up").symlink_to(corpus)
    (corpus / "self").symlink_to(".")
    for pattern, ids in (
        ("**/*.story", ("b", "linked/deep/a")),
        ("*/*/*.story", ("linked/deep/a", "self/self/b")),
        ("**", ("b.story", "linked/deep/a.story")),
    ):
        assert texts(f"text:{corpus}/{pattern}") == (dict.fromkeys(ids, "Text."), [])


def test_what_is_no_file_is_counted_by_name_and_never_opened(tmp_path):
    (tmp_path / "a.txt").write_text("text")
    os.mkfifo(tmp_path / "fifo.txt")
    (tmp_path / "dangling.txt").symlink_to("gone")
    (tmp_path / "loop.txt").symlink_to("loop.txt")
    (tmp_path / "null.txt").symlink_to("/dev/null")
    (tmp_path / "folder.txt").mkdir()
    with socket.socket(socket.AF_UNIX) as listener, contextlib.chdir(tmp_path):
        listener.bind("socket.txt")  # The path of a socket may have a hundred bytes.
    names = ("dangling.txt", "fifo.txt", "loop.txt", "null.txt", "socket.txt")
    kinds = dict.fromkeys(names, "not_a_file")
    kinds |= dict.fromkeys(("dangling.txt", "loop.txt"), "dangling_link")
    lost = [*kinds.items()]
    assert texts(f"text:{tmp_path}/*.txt") == ({"a": "text"}, lost)
    assert texts(f"text:{tmp_path}/f*.txt") == ({}, lost[1:2])
    assert texts(f"jsonl:{tmp_path}/[!a]*.txt") == ({}, lost)
    with pytest.raises(OSError, match="not a regular file.*fifo.txt"):
        opening.open_source(str(tmp_path / "fifo.txt"))


# What Spark, Delta, Hadoop and pyarrow put beside data; `_day=1` holds data.
HIDDEN = ("_SUCCESS", ".a.jsonl.crc", "_temporary/0/b.jsonl", "_log/c.jsonl", ".d/e.gz")
DATA = ("a.jsonl", "deep/_day=1/b.ndjson.gz", "deep/c_.json", "_day=1/d.JSONL")


@pytest.mark.parametrize("root", ["{}", "memory://{}"])
def test_names_that_begin_with_an_underscore_or_a_dot_are_named(tmp_path, root, capsys):
    line = b'{"article": "Text."}\n'
    root = root.format(tmp_path)
    for name in (*HIDDEN, *DATA, "notes.md"):
        content = gzip.compress(line) if name.endswith(".gz") else line
        files.write_bytes(f"{root}/{name}", content)
    all_data = {*DATA, "notes.md"}
    for pattern, names in {
        "": {*DATA},
        "/": {*DATA},
        "/**": all_data,
        "/**/*": all_data,
        "/*": {"a.jsonl", "notes.md"},
        "/*/*": {"_day=1/d.JSONL", "deep/c_.json"},
        "/deep": {*DATA[1:3]},
        "/_SUCCESS": {"_SUCCESS"},
        "/_*": {"_SUCCESS"},
        "/.*": {".a.jsonl.crc"},
        "/_log/*": {"_log/c.jsonl"},
        "/_log": {"_log/c.jsonl"},
        "/**/_t*/**/*.jsonl": {"_temporary/0/b.jsonl"},
        "/**/.?/*": {".d/e.gz"},
    }.items():
        tasks, records = read_corpus(f"jsonl:{root}{pattern}")
        paths = {each.source_file.removeprefix(f"{root}/") for each in records}
        assert paths == names, pattern
        note = "note: 1 files in the folder are not read, because .* first: .*/notes.md"
        assert bool(re.search(note, capsys.readouterr().err)) == (len(pattern) < 2)
    with pytest.raises(UsageError, match="write the first character of names"):
        read_corpus(f"jsonl:{root}/_temporary/*")


def test_a_folder_of_texts_gives_paths_as_ids(tmp_path):
    (tmp_path / "news[1]").mkdir()
    (tmp_path / "news[1]" / "a.txt").write_text("text")
    (tmp_path / "news[1]" / "b.md").write_text("text")
    assert texts(f"text:{tmp_path}/news[1]") == ({"news[1]/a.txt": "text"}, [])
    (tmp_path / "news[1]").rename(tmp_path / "news")
    assert texts(f"text:{tmp_path}/news") == ({"a.txt": "text"}, [])


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        ("_delta_log/0.json", "a Delta table, .*; read it with --corpus delta:{}"),
        ("metadata/v1.metadata.json", "an Iceberg table, .*; write .* and name those$"),
        (".hoodie/hoodie.properties", "a Hudi table, .*; write .* and name those$"),
    ],
)
@pytest.mark.parametrize("root", ["{}", "memory://{}"])
def test_the_files_of_a_table_are_no_corpus(tmp_path, mark, words, root):
    table = f"{root.format(tmp_path)}/table"
    files.write_bytes(f"{table}/{mark}", b"")
    buffer = io.BytesIO()
    pq.write_table(pa.table({"article": ["A."]}), buffer)
    for name in ("a.parquet", "_day=1/b.parquet", "data/_day=1/c.parquet"):
        files.write_bytes(f"{table}/{name}", buffer.getvalue())
    for pattern in ("", "/*.parquet", "/**/*.parquet", "/../*/*.parquet"):
        pattern = pattern.replace("/../*", "*")
        with pytest.raises(UsageError, match=f"{table} is {words.format(table)}"):
            read_corpus(f"parquet:{table}{pattern}")
    if "metadata" in mark:
        with pytest.raises(UsageError, match=f"{table} is {words}"):
            read_corpus(f"parquet:{table}/data/*/c.parquet")


def test_files_that_do_not_fit_each_other_are_named(tmp_path, capsys):
    def notes(corpus, **flags):
        list_tasks(CorpusOptions(corpus=corpus.format(tmp_path), **flags))
        lines = capsys.readouterr().err.replace(f"{tmp_path}/", "").splitlines()
        assert all(line.startswith("precis: note: ") for line in lines)
        return [line.removeprefix("precis: note: ") for line in lines]

    article, strings = {"article": ["A."]}, {"id": ["x"], "highlights": ["A."]}
    of_files = {"id": [1]}, {"id": [2], "day": [3]}, strings, {}, {}
    for name, columns in zip("abcde", of_files, strict=True):
        pq.write_table(pa.table({**article, **columns}), tmp_path / f"{name}.parquet")
        (tmp_path / f"{name}.csv").write_text(",".join([*article, *columns]) + "\n")
    assert notes("parquet:{}/*.parquet") == [
        "the field 'highlights' is missing in a.parquet, but string in c.parquet",
        "the field 'id' is int64 in a.parquet, but string in c.parquet",
    ]
    assert notes("parquet:{}/[ab].parquet") == notes("parquet:{}/[de].parquet") == []
    missing = "the field 'id' is text in a.csv, but missing in d.csv"
    assert notes("csv:{}/[ade].csv") == [missing]
    (tmp_path / "b.csv.GZ").write_bytes(gzip.compress(b"article,id\n"))
    both = "are both read, but by their names they hold the same documents"
    assert notes("csv:{}/b.*[vZ]") == [f"b.csv and b.csv.GZ {both}"]
    (tmp_path / "b.csv.bz2").write_bytes(bz2.compress(b"article,id\n"))
    assert "b.csv.GZ and b.csv.bz2" in notes("csv:{}/b.csv.*")[0]
    assert notes("csv:{}/[ab].csv") == notes("csv:{}/b.csv.GZ") == []


@pytest.fixture
def own_folder():
    """A folder of a user who may not read everything, as root may."""
    user = os.geteuid()
    os.seteuid(user or 65534)
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)
    os.seteuid(user)


def test_what_may_not_be_read_is_counted_by_name(own_folder):
    for name in ("a.txt", "closed.txt", "folder/b.txt", "other/c.txt"):
        (own_folder / name).parent.mkdir(exist_ok=True)
        (own_folder / name).write_text(f'{{"article": "{name}"}}')
    for name in ("closed.txt", "folder"):
        (own_folder / name).chmod(0)
    documents, lost = texts(f"text:{own_folder}/*.txt")
    assert set(documents) == {"a"} and lost == [("closed.txt", "permission_denied")]
    # How many records they have is not known.
    unknown = [(name, "file_unreadable") for name in ("closed.txt", "folder")]
    assert texts(f"jsonl:{own_folder}/**/*.txt")[1] == unknown
    assert texts(f"text:{own_folder}/o*/*.txt")[1] == []


def test_a_disk_that_fails_is_counted_by_the_name_of_the_file(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("text")

    def fail(path):
        raise OSError(5, "Input/output error", path)

    monkeypatch.setattr(opening, "read_state", fail)
    assert texts(f"text:{tmp_path}/*") == ({}, [("a.txt", "read_error")])


# Without the end .txt.
ODD_NAMES = ["*", "a[1]", "?", "line\nbreak", " \"quotes' ", "a::b", "~", "100%25"]
ODD_NAMES += ["{a,b}", "caf\u00e9", "back\\slash", "back\\xe9"]
ODD_NAMES += map(os.fsdecode, (b"caf\xe9", b"\\x5c\xff\\xe9"))


def test_names_of_every_kind_are_read_and_written_as_text(tmp_path):
    expected = {name: f"text of {name!r}" for name in (*ODD_NAMES, "b1")}
    for name, text in expected.items():
        (tmp_path / f"{name}.txt").write_text(text)
    tasks, records = read_corpus(f"text:{tmp_path}/*.txt", task_bytes=1)
    assert len(tasks) == len(expected)
    by_name = {local_name(each.document_id): each.article for each in records}
    assert by_name == expected
    paths = [path for task in tasks for path in task.paths]
    assert json.loads(json.dumps(paths).encode()) == paths
    assert pa.array(paths).to_pylist() == paths
    for name in ODD_NAMES:
        written = written_name(name)
        assert local_name(written) == name
        if name not in ("*", "?"):
            found = texts(f"text:{tmp_path}/{written}.txt")[0]
            assert found == {written: expected[name]}


def test_a_corpus_is_recorded_as_text(tmp_path):
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    (folder / "a.txt").write_text("text")
    options = CorpusOptions(corpus=f"text:{folder}/*.txt")
    assert options.corpus == rf"text:{tmp_path}/caf\xe9/*.txt"
    again = CorpusOptions(corpus=options.corpus)
    assert list_tasks(again) == list_tasks(options)
    assert texts(options.corpus) == ({"a": "text"}, [])


def test_each_file_is_a_document_with_an_id_of_its_own(tmp_path, monkeypatch):
    of_2024 = "2024/fire.v1.txt", "2024/storm.md", "2024/storm.txt"
    for name in ("2023/storm.txt", *of_2024):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(f"Text of {name}\r\nend ü".encode())
    names = ["2023/storm", "2024/fire.v1", "2024/storm"]
    for task_bytes, count in ((1, 3), (70, 2), (1000, 1)):
        tasks, records = read_corpus(f"text:{tmp_path}/*/*.txt", task_bytes=task_bytes)
        assert [(d.document_id, d.article, d.highlights) for d in records] == [
            (name, f"Text of {name}.txt\r\nend ü", None) for name in names
        ]
        assert len(tasks) == count
    monkeypatch.chdir(tmp_path)
    for pattern, ids in (
        ("*/*.txt", names),
        ("2024/*", ["fire.v1.txt", "storm.md", "storm.txt"]),
        ("2024/storm.md", ["storm"]),
        ("2*/storm.*", ["2023/storm.txt", "2024/storm.md", "2024/storm.txt"]),
    ):
        assert [d.document_id for d in read_corpus(f"text:{pattern}")[1]] == ids


def test_files_that_are_not_utf8_or_too_large_are_unreadable(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"good \xff bad")
    (tmp_path / "b.txt").write_bytes(b"x" * ((1 << 20) + 1))
    (tmp_path / "c.txt").write_bytes(b"\xef\xbb\xbf" + b"y" * ((1 << 20) - 3))
    (tmp_path / "d[1].txt").write_bytes(b"")
    corpus = f"text:{tmp_path}/*.txt"
    broken, large, whole, empty = read_corpus(corpus, max_record_mb=1)[1]
    assert broken == DeadLetter(
        *("read", "invalid_utf8", "byte 5: invalid start byte", None),
        *(f"{tmp_path}/a.txt", "file", b"good \xff bad"),
    )
    detail = "the file has more than 1,048,576 bytes (--max_record_mb)"
    assert (large.reason, large.detail) == ("record_too_large", detail)
    assert whole.article == "y" * ((1 << 20) - 3)
    assert (whole.source_file, whole.source_position) == (f"{tmp_path}/c.txt", "file")
    assert (empty.reason, empty.document_id) == ("empty_article", "d[1]")
    place = f"{tmp_path}/d[1].txt", "file"
    assert (empty.source_file, empty.source_position) == place
    assert read_corpus(f"text:{tmp_path}/d[1].txt")[1][0].document_id == "d[1]"


PAGE = "<!DOCTYPE html><html><body><p>R\xe4in.</p><p>&lt;b&gt; &amp;amp; snow.</p>"
DEEP = "<html>" + 10_000 * "<div>"


@pytest.mark.parametrize("clean", ["standard", "html", "none"])
def test_the_text_of_html_files_is_read(tmp_path, clean):
    """Once, so that what the text says about HTML stays."""
    (tmp_path / "a.html").write_bytes(PAGE.encode("latin-1"))
    (tmp_path / "b.txt").write_text(DEEP)
    page, deep = read_corpus(f"text:{tmp_path}/*", clean=clean)[1]
    assert page.article == "R\xe4in.\n\n<b> &amp; snow."
    assert (deep.reason, deep.source_position) == ("complex_html", "file")
    assert deep.detail == "the elements of the page are nested too deeply"


def test_clean_html_takes_the_text_out_of_fields(tmp_path):
    texts = ["<p>Rain.</p><p>Snow &amp; ice.</p>", "<br>", DEEP, "Plain &amp; simple."]
    lines = [json.dumps({"id": n, "article": text}) for n, text in enumerate(texts)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    corpus = f"jsonl:{tmp_path}/a.jsonl"
    rain, empty, deep, plain = read_corpus(corpus, clean="html")[1]
    assert (rain.article, plain.article) == ("Rain.\n\nSnow & ice.", "Plain & simple.")
    assert (empty.reason, deep.reason) == ("empty_article", "complex_html")
    assert read_corpus(corpus)[1][0].article == texts[0]
    settings = TextSettings("html")
    body = Article(rain._replace(article=texts[0]), settings).body
    assert body == "Rain. Snow & ice."
    assert to_article(rain._replace(article=DEEP), settings).reason == "complex_html"


def test_html_needs_an_extra(tmp_path, monkeypatch):
    """Without it, the first file or the flag is refused, a later file is lost."""
    monkeypatch.delitem(sys.modules, "precis.model.text.html", raising=False)
    monkeypatch.delattr("precis.model.text.html", raising=False)
    monkeypatch.setitem(sys.modules, "resiliparse.extract.html2text", None)
    (tmp_path / "b.txt").write_text(PAGE)
    corpus = f"text:{tmp_path}/*"
    for options in ({"corpus": corpus}, {"corpus": "sample:", "clean": "html"}):
        with pytest.raises(ModuleNotFoundError, match="resiliparse"):
            list_tasks(CorpusOptions(**options))
    (tmp_path / "a.txt").write_text("Rain.")
    lost = read_corpus(corpus)[1][1]
    detail = "the file is an HTML page, whose text needs a package; pip install "
    assert (lost.reason, lost.detail) == (
        "other_format",
        f"{detail}'precis-corpus[web]'",
    )
