"""The scheme jsonl:GLOB, plain and gzip."""

import gzip
import json
import random
import tracemalloc

import pytest
from support.corpus_records import parted, place_and_reason, read_corpus

from precis.pipelines.corpus import lines


@pytest.mark.parametrize("name", ["a.txt", "a.gz"])
@pytest.mark.parametrize("block_bytes", [1, 2, 5, 1 << 20])
def test_two_ranges_share_no_line_and_lose_none(
    tmp_path, monkeypatch, name, block_bytes
):
    monkeypatch.setattr(lines, "_BLOCK_BYTES", block_bytes)
    path = tmp_path / name
    content = b"abc\n\nde\n\n\nfgh"
    path.write_bytes(gzip.compress(content) if name == "a.gz" else content)
    whole = list(lines.read_lines(str(path), max_bytes=99))
    assert b"".join(line.text for line in whole) == content
    expected = [(0, b"abc\n"), (5, b"de\n"), (10, b"fgh")]
    for edge in range(14):
        parts = [
            *lines.read_lines(str(path), 0, edge, max_bytes=99),
            *lines.read_lines(str(path), edge, max_bytes=99),
        ]
        found = [(part.start, part.text) for part in parts if not part.text.isspace()]
        assert found == expected


def test_bad_lines_are_unreadable_and_the_other_lines_are_read(tmp_path):
    bad = [
        (b'{"article": "broken', "invalid_json"),
        (b'{"article": "\xff"}', "invalid_utf8"),
        (b'["article"]', "not_an_object"),
        (b'{"text": "no article"}', "missing_field"),
        (b'{"article": null}', "missing_field"),
        (b'{"article": 7}', "wrong_type"),
        (b'{"article": NaN}', "missing_field"),
        (b'{"article": "x", "highlights": ["a", 7]}', "wrong_type"),
        (b'{"article": "x", "id": true}', "wrong_type"),
        (b'{"article": "\\ud800"}', "invalid_json"),
        (b"[" * 100_000, "invalid_json"),
    ]
    content = b'{"article": "first"}\n'
    expected = []
    for line, reason in bad:
        expected.append((f"byte {len(content)}", reason))
        content += line + b"\n \n"
    (tmp_path / "a.jsonl").write_bytes(content + b'{"article": "last", "x": NaN}')
    _, records = read_corpus(f"jsonl:{tmp_path}/a.jsonl")
    documents, lost = parted(records)
    found = [(document.article, document.source_position) for document in documents]
    assert found == [("first", "byte 0"), ("last", f"byte {len(content)}")]
    assert [(letter.source_position, letter.reason) for letter in lost] == expected
    assert {record.source_file for record in records} == {f"{tmp_path}/a.jsonl"}
    assert all(
        u.raw.startswith(line[:60]) and len(u.raw) <= 65536 and "\n" not in u.detail
        for u, (line, _) in zip(lost, bad, strict=True)
    )


def test_ids_highlights_and_byte_order_mark(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(
        b'\xef\xbb\xbf{"article": "Caf\xc3\xa9  one", "id": 12}\n'
        b'{"article": "Cafe\xcc\x81 one", "id": ""}\n'
        b'{"article": "", "highlights": ""}\n'
    )
    _, documents = read_corpus(f"jsonl:{tmp_path}/a.jsonl")
    # sha256 of the composed, single-spaced text, from `printf 'Café one' | sha256sum`
    assert [d.document_id for d in documents] == [
        "12",
        "7c6d807d9da50a88e8ae4f3711db7aaf924bc9c21285228070ef90ff68102ed1",
        None,  # an empty article has no id of its own
    ]
    assert documents[2].reason == "empty_article"
    assert [d.highlights for d in documents[:2]] == [None, None]


def test_a_longer_line_is_unreadable_and_never_in_memory(tmp_path):
    first, last = b'{"id": "x", "article": "a"}\n', b'\n{"id": "y", "article": "b"}'
    (tmp_path / "a.jsonl").write_bytes(first + b"x" * 60_000_000 + last)
    tracemalloc.start()
    corpus = f"jsonl:{tmp_path}/a.jsonl"
    first, long, last = read_corpus(corpus, task_bytes=15_000_000)[1]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (first.document_id, last.document_id) == ("x", "y")
    assert place_and_reason(long)[1:] == ("byte 28", "record_too_large")
    detail = "the line has 60,000,001 bytes, more than 8,388,608 (--max_record_mb)"
    assert (long.detail, len(long.raw)) == (detail, 65536)
    assert peak < 30_000_000


@pytest.mark.parametrize("damage", ["cut", *range(20)])
def test_what_a_damaged_member_held_is_lost_whatever_the_tasks(tmp_path, damage):
    draw = random.Random(damage)
    words = [draw.randbytes(3).hex() for _ in range(30)]
    records = [
        {"id": str(index), "article": " ".join(draw.choices(words, k=40))}
        for index in range(400)
    ]
    text = "".join(json.dumps(record) + "\n" for record in records).encode()
    half = text.index(b'{"id": "250"')
    first = gzip.compress(text[: half + 5])  # The members share a line.
    second = bytearray(gzip.compress(text[half + 5 :]))
    if damage == "cut":
        content = first + second[:-9]
    else:
        second[draw.randrange(10, len(second))] ^= 1 << draw.randrange(8)
        content = first + second + first
    (tmp_path / "a.jsonl.gz").write_bytes(content)
    corpus = f"jsonl:{tmp_path}/a.jsonl.gz"
    *documents, last = read_corpus(corpus, task_bytes=20_000)[1]
    assert [*documents, last] == read_corpus(corpus)[1]
    assert (last.reason, last.source_position) == ("broken_gzip", f"byte {half}")
    assert [d.article for d in documents] == [r["article"] for r in records[:250]]


@pytest.mark.parametrize("blank", [b"\n", b" \r\n"])
def test_a_million_blank_lines_in_a_small_file_are_skipped_at_once(tmp_path, blank):
    record = b'{"article": "A."}'
    content = b"\n" + blank * 1_000_000 + record + b"\n" + blank * 3 + record
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(content))
    read = lines.read_lines(str(path), max_bytes=1 << 20, spaces_are_blank=True)
    sizes = [len(line.text) for line in read]
    assert len(sizes) < 50 and sum(sizes) == len(content)
    tasks, documents = read_corpus(f"jsonl:{path}", task_bytes=1_000_000)
    assert len(tasks) == 1
    first = 1 + len(blank) * 1_000_000
    second = first + len(record) + 1 + 3 * len(blank)
    assert [d.source_position for d in documents] == [f"byte {first}", f"byte {second}"]
