"""The scheme text:GLOB."""

import json
import sys

import pytest
from support.corpus_records import read_corpus

from precis.model.text.article import Article
from precis.model.text.document import TextSettings
from precis.pipelines.corpus.corpus import list_tasks
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.task import DeadLetter, to_article


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
