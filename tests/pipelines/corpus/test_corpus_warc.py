"""The scheme warc:GLOB."""

import bz2
import datetime
import gzip
import zlib

import brotli
import pytest
from support.corpus_records import parted, place_and_reason, read_corpus

from precis.model.errors import UsageError

HTML = "text/html; charset=utf-8"
PAGE = "<html><head><title>Rain\n &amp; snow</title></head><body><p>{}</p></body>"


def record(kind, content, number, length=None, content_type="", **headers):
    """A record of WARC/1.0, written by hand."""
    lines = {
        "WARC-Type": kind,
        "WARC-Record-ID": f"<urn:uuid:0-{number}>",
        "WARC-Date": "2024-05-01T10:00:00Z",
        "WARC-Target-URI": f"https://news.example/{number}",
        "Content-Type": content_type or "application/http; msgtype=response",
        "Content-Length": len(content) if length is None else length,
        **headers,
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return b"WARC/1.0\r\n" + head.encode() + b"\r\n" + content + b"\r\n\r\n"


def http(body, content_type=HTML, status="200 OK", **headers):
    lines = {"Content-Type": content_type, **headers}
    head = "".join(f"{name.replace('_', '-')}: {lines[name]}\r\n" for name in lines)
    raw = body if isinstance(body, bytes) else body.encode()
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + raw


def response(number, text="Rain fell.", **headers):
    return record("response", http(PAGE.format(text), **headers), number)


def chunked(body):
    rest = b"%X\r\n%b" % (len(body) - 5, body[5:])
    return b"5;x=y\r\n%b\r\n%b\r\n0\r\n\r\n" % (body[:5], rest)


def starts_of(parts):
    """The position of each part."""
    return [f"byte {sum(map(len, parts[:index]))}" for index in range(len(parts))]


ARCHIVE = [
    record("warcinfo", b"software: x", 0, content_type="application/warc-fields"),
    record("request", b"GET / HTTP/1.1\r\n\r\n", 1),
    response(2, "One."),
    response(3, "Gone.", status="404 Not Found"),
    response(4, "Moved.", status="301 Moved"),
    record("response", http(b"\x89PNG\0", "image/png"), 5),
    record("revisit", http(""), 6),
    record("metadata", b'{"a": 1}', 7, content_type="application/json"),
    record("conversion", "Fünf & <b>.".encode(), 8, content_type="text/plain"),
    record("resource", b"<p>Nine.</p>", 9, content_type="text/html"),
    record("response", http("Ten.\n\nEnd.", "text/plain"), 10),
    response(11, ""),
    record(
        *("resource", b"wget -r", 12, None, "text/plain"),
        **{"WARC-Target-URI": "metadata://gnu.org/software/wget/warc/wget.log"},
    ),
]


def test_pages_are_documents(tmp_path):
    for name, compress in (
        ("a.warc", b"".join),
        ("a.warc.gz", lambda parts: b"".join(map(gzip.compress, parts))),
        ("b.warc.gz", lambda parts: gzip.compress(b"".join(parts))),
        ("a.warc.bz2", lambda parts: bz2.compress(b"".join(parts))),
    ):
        (tmp_path / name).write_bytes(compress(ARCHIVE))
        corpus = f"warc:{tmp_path}/{name}"
        flags = {"keep_fields": "url,date,title,mime", "task_bytes": 1}
        tasks, records = read_corpus(corpus, **flags)
        documents, (empty,) = parted(records)
        places = [starts_of(ARCHIVE)[index] for index in (2, 8, 9, 10, 11)]
        assert len(tasks) == 1
        assert [(d.document_id, d.article) for d in documents] == [
            *(("0-2", "One."), ("0-8", "Fünf & <b>.")),
            *(("0-9", "Nine."), ("0-10", "Ten.\n\nEnd.")),
        ]
        assert [d.source_position for d in documents] == places[:4]
        assert (empty.source_position, empty.reason) == (places[4], "empty_article")
        assert documents[0].metadata == {
            "url": "https://news.example/2",
            "date": datetime.datetime(2024, 5, 1, 10, tzinfo=datetime.UTC),
            "title": "Rain & snow",
            "mime": "text/html",
        }
        drawn = read_corpus(corpus, sample=2, id_field="url")[1]
        urls = {f"https://news.example/{n}" for n in range(12)}
        assert {d.document_id for d in drawn} < urls


GREEN = PAGE.format("Grün.").encode()
DEFLATE = zlib.compress(GREEN)
CHUNKS = {"Transfer_Encoding": "chunked"}
BODIES = {
    "gzip": (gzip.compress(GREEN), {"Content_Encoding": "gzip"}),
    "cut": (gzip.compress(GREEN)[:-8], {"Content_Encoding": "gzip"}),
    "deflate": (DEFLATE, {"Content_Encoding": "deflate"}),
    "raw deflate": (DEFLATE[2:-4], {"Content_Encoding": "deflate"}),
    "br": (brotli.compress(GREEN), {"Content_Encoding": "br"}),
    "plain": (GREEN, {"Content_Encoding": "gzip"}),
    "chunks": (chunked(GREEN), CHUNKS),
    "joined": (GREEN, CHUNKS),
    "both": (chunked(gzip.compress(GREEN)), {**CHUNKS, "Content_Encoding": "gzip"}),
    "latin-1": (GREEN.decode().encode("latin-1"), {"content_type": "text/html, x"}),
}


@pytest.mark.parametrize("kind", BODIES)
def test_bodies_are_decoded(tmp_path, kind):
    body, headers = BODIES[kind]
    parts = [record("response", http(body, **headers), 1), response(2)]
    (tmp_path / "a.warc").write_bytes(b"".join(parts))
    first, second = read_corpus(f"warc:{tmp_path}/a.warc")[1]
    assert (first.article, second.article) == ("Grün.", "Rain fell.")


def answer(content, length=None, **headers):
    return record("response", http(content, **headers), 1, length)


BOMB = answer(gzip.compress(bytes(2 << 20), 9), Content_Encoding="gzip")
NOT_BR = answer(b"\xff" * 99, Content_Encoding="br")
NOT_GZIP = answer(b"\x1f\x8bRain", Content_Encoding="gzip")
DATED = record("response", http(PAGE), 1, **{"WARC-Date": "May"})
NO_LENGTH, DIGITS = (record("response", b"", 1, each) for each in ("x", "9" * 5000))
LOSSES = {
    "large": (response(1, "x" * (1 << 20)), "record_too_large", "record has 1,048,"),
    "bomb": (BOMB, "record_too_large", "1,048,577 bytes, more than 1,048,576"),
    "not br": (NOT_BR, "broken_body", "the body is damaged: "),
    "not gzip": (NOT_GZIP, "broken_body", "the body is damaged: Error -3"),
    "pdf": (answer(b"%PDF-1.7\0\0"), "broken_body", "is a PDF"),
    "deep": (response(1, 10_000 * "<div>"), "complex_html", "nested too deeply"),
    "short": (answer("Rain.", 30), "broken_warc", "does not end after its 30 bytes"),
    "long": (answer("Rain.", 10**9), "broken_warc", "after its 1,000,000,000 bytes"),
    "no length": (NO_LENGTH, "broken_warc", "here no rec"),
    "digits": (DIGITS, "broken_warc", "here no"),
    "text": (b"Rain\r\n\r\nfell.\r\n", "broken_warc", "here no record begins"),
    "date": (DATED, "wrong_type", "'date' "),
}


@pytest.mark.parametrize("kind", LOSSES)
def test_a_damaged_record_costs_itself(tmp_path, kind):
    """Reading goes on with the next record that can be found."""
    lost, reason, words = LOSSES[kind]
    image = record("response", http(bytes(3 << 20), "image/png"), 0)
    parts = [image, response(2), lost, response(3)]
    (tmp_path / "a.warc").write_bytes(b"".join(parts))
    options = {"max_record_mb": 1, "keep_fields": "date"}
    documents, (letter,) = parted(read_corpus(f"warc:{tmp_path}/*", **options)[1])
    place = str(tmp_path / "a.warc"), starts_of(parts)[2], reason
    assert place_and_reason(letter) == place
    assert words in letter.detail and letter.raw
    # A length beyond the end of the file hides the record after it.
    found = ["0-2"] if kind == "long" else ["0-2", "0-3"]
    assert [d.document_id for d in documents] == found


def test_drawn_records_are_found_in_a_large_archive(tmp_path):
    image = record("response", http(bytes(3 << 20), "image/png"), 0)
    parts = [image, response(1), image, response(2)]
    (tmp_path / "a.warc").write_bytes(b"".join(parts))
    (drawn,) = read_corpus(f"warc:{tmp_path}/a.warc", sample=1)[1]
    assert drawn.source_position == starts_of(parts)[2 * int(drawn.document_id[-1]) - 1]


def test_the_records_before_damage_are_read(tmp_path):
    parts = [response(1), response(2)]
    (tmp_path / "a.warc").write_bytes(b"".join(parts)[:-20])
    members = b"".join(map(gzip.compress, parts))
    (tmp_path / "b.warc.gz").write_bytes(members[:-20])
    documents, letters = parted(read_corpus(f"warc:{tmp_path}/*")[1])
    assert [d.document_id for d in documents] == ["0-1", "0-1"]
    assert list(map(place_and_reason, letters)) == [
        (f"{tmp_path}/a.warc", f"byte {len(parts[0])}", "broken_warc"),
        (f"{tmp_path}/b.warc.gz", f"byte {len(parts[0])}", "broken_gzip"),
    ]


def test_what_cannot_be_read_is_refused(tmp_path):
    for content, field, words in (
        (b"Rain.\n", "", "a.warc is not a web archive .*: it begins with no record"),
        (b"PAR1PAR1", "", "archive .*: it is Parquet; --corpus parquet:.* reads its"),
        (ARCHIVE[2], "body", "has no field 'body', it has 'article', "),
    ):
        (tmp_path / "a.warc").write_bytes(content)
        with pytest.raises(UsageError, match=words):
            read_corpus(f"warc:{tmp_path}/a.warc", article_field=field or "article")
