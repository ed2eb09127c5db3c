"""Compressed files: ranges of gzip, and what is read of damaged files of each kind."""

import bz2
import gzip
import itertools
import lzma
import random

import pyarrow as pa
import pytest
from backports.zstd import CompressionParameter, ZstdCompressor, get_frame_info
from support.corpus_records import read_corpus

from precis.model.errors import UsageError
from precis.pipelines.corpus import compression
from precis.pipelines.corpus.compression import CODECS
from precis.pipelines.corpus.lines import read_lines

CHANCE = random.Random(3)
LINES = [CHANCE.randbytes(CHANCE.randint(1, 9000)).hex() for _ in range(400)]
CONTENT = "\n".join(LINES).encode()
RECORDS = b"".join(
    b'{"id": "%d", "article": "%s"}\n' % (number, line[:99].encode())
    for number, line in enumerate(LINES)
)


def by_arrow(codec):
    def compress(content):
        buffer = pa.BufferOutputStream()
        with pa.CompressedOutputStream(buffer, codec) as stream:
            stream.write(content)
        return buffer.getvalue().to_pybytes()

    return compress


COMPRESS = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}
COMPRESS |= {"zst": by_arrow("zstd"), "lz4": by_arrow("lz4")}


@pytest.fixture(autouse=True)
def _many_states(monkeypatch):
    monkeypatch.setattr(compression, "_LEAST_DISTANCE", 40_000)


def read_range(path, start, stop, version="v"):
    lines = read_lines(path, start, stop, max_bytes=1 << 20, version=version)
    return [(line.start, line.text) for line in lines]


def ranges(count):
    edges = [len(CONTENT) * number // count for number in range(count)]
    return list(itertools.pairwise([*edges, -1]))


@pytest.mark.parametrize("members", [1, 7])
def test_ranges_in_any_order_are_those_of_the_whole(tmp_path, members):
    path = str(tmp_path / "a.gz")
    edges = [len(CONTENT) * number // members for number in range(members + 1)]
    parts = [CONTENT[start:stop] for start, stop in itertools.pairwise(edges)]
    with open(path, "wb") as file:
        file.write(b"\0\0".join(gzip.compress(part, 1) for part in parts))
    whole = read_range(path, 0, -1, version="")
    assert [text.rstrip(b"\n").decode() for _, text in whole] == LINES
    order = ranges(23)
    random.Random(5).shuffle(order)
    read = sorted(line for part in order for line in read_range(path, *part))
    assert read == whole
    # A range begins near its first byte, not at the beginning of the file.
    states, damage = compression._check(path, "v")
    assert damage is None and len(states) > 10
    with open(path, "rb") as file:
        (block, *_) = compression.decompressed(file, path, len(CONTENT) - 9, "v")
        assert block == CONTENT[-9:] and file.tell() > 500_000


# Zeros between and behind streams, a multiple of four of them, are part of the format
# of xz (xz-file-format 1.2.1, section 2.2); gzip and bzip2 take any number at the end.
@pytest.mark.parametrize(
    ("end", "zeros"),
    [*dict.fromkeys(COMPRESS, 0).items(), ("gz", 9), ("bz2", 9), ("xz", 66_000)],
)
def test_files_of_each_compression_are_read(tmp_path, end, zeros):
    compress = COMPRESS[end]
    half = RECORDS.index(b'{"id": "200"')
    halves = compress(RECORDS[:half]), compress(RECORDS[half:]), b""
    content = bytes(zeros).join(halves)
    (tmp_path / f"a.jsonl.{end}").write_bytes(content)
    tasks, records = read_corpus(f"jsonl:{tmp_path}/*", task_bytes=9_000)
    assert [each.document_id for each in records] == [str(n) for n in range(400)]
    assert records[1].source_position == f"byte {RECORDS.index(b'{', 9)}"
    assert (len(tasks) > 1) == (end == "gz")
    (tmp_path / "c.jsonl.lzma").write_bytes(lzma.compress(RECORDS, lzma.FORMAT_ALONE))
    assert len(read_corpus(f"jsonl:{tmp_path}/c.jsonl.lzma")[1]) == 400
    (tmp_path / f"b.csv.{end}").write_bytes(compress(b"article\nRain fell.\n"))
    (record,) = read_corpus(f"csv:{tmp_path}/b.csv.{end}")[1]
    assert record.article == "Rain fell."


DAMAGES = dict.fromkeys(("cut", "header", "begun", "more"), "bz2 xz zst lz4")
DAMAGES |= {"flipped": "bz2 xz", "zeros": "gz bz2 xz zst lz4"}
DAMAGES |= {"odd zeros": "xz zst lz4"}


@pytest.mark.parametrize(
    ("end", "damage"),
    # Arrow writes zstd without a checksum, so that only a cut is seen. What is read of
    # gzip is in test_corpus_jsonl.py.
    [(end, damage) for damage, ends in DAMAGES.items() for end in ends.split()],
)
def test_no_record_of_a_damaged_file_is_read(tmp_path, end, damage):
    content = bytearray(COMPRESS[end](RECORDS))
    if damage == "cut":
        del content[-len(content) // 3 :]
    elif damage == "flipped":
        content[len(content) // 2] ^= 0x55
    elif damage == "header":
        content += bytes([content[0] ^ 1]) + content[1:] + content
    else:
        ends = {"begun": content[:3], "more": b"more", "odd zeros": bytes(5)}
        content = content + ends[damage] if damage in ends else bytearray(999)
    (tmp_path / f"a.jsonl.{end}").write_bytes(content)
    (lost,) = read_corpus(f"jsonl:{tmp_path}/*", task_bytes=9_000)[1]
    codec = CODECS[f".{end}"]
    assert lost.reason == f"broken_{codec}"
    assert lost.detail.startswith(f"the {codec} data are damaged, so the rest is lost")
    blocks = "no frame of lz4 (such as blocks of Hadoop or `lz4 -l`)"
    assert (damage, end) != ("zeros", "lz4") or lost.detail.endswith(blocks)


def test_zstd_with_a_window_of_two_gigabytes_is_read(tmp_path):
    """As of `zstd --long=31`; between the frames are bytes to skip, as of pzstd."""
    options = {CompressionParameter.window_log: 31}
    compressor = ZstdCompressor(options=options)
    frame = compressor.compress(RECORDS) + compressor.flush()
    assert get_frame_info(frame).decompressed_size is None  # so the window is read
    skipped = b"\x50\x2a\x4d\x18\x04\0\0\0skip"
    (tmp_path / "a.jsonl.ZST").write_bytes(skipped + frame + skipped + frame)
    records = read_corpus(f"jsonl:{tmp_path}/*")[1]
    assert [each.document_id for each in records] == 2 * [str(n) for n in range(400)]
    with pytest.raises(OSError, match="Frame requires too much memory"):
        pa.input_stream(pa.py_buffer(frame), compression="zstd").read(1)


@pytest.mark.parametrize("scheme", ["jsonl", "csv"])
def test_a_name_that_does_not_fit_the_compression_is_named(tmp_path, scheme):
    content = RECORDS if scheme == "jsonl" else b"id,article\n1,Caf\xc3\xa9.\n"
    for end, held in [(f".{end}", held) for held in COMPRESS for end in COMPRESS]:
        if end[1:] != held:
            path = tmp_path / f"a.{scheme}{end}"
            path.write_bytes(COMPRESS[held](content))
            codec = CODECS[f".{held}"]
            words = f"compressed by {codec}; rename it to .*a.{scheme}.{held}"
            with pytest.raises(UsageError, match=words):
                read_corpus(f"{scheme}:{path}")
            path.write_bytes(content)
            words = f"it is not compressed; rename it to .*/a.{scheme}\\b(?!.gz)"
            with pytest.raises(UsageError, match=words):
                read_corpus(f"{scheme}:{path}")
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:a\n")
    with pytest.raises(UsageError, match="it is a Git LFS pointer"):
        read_corpus(f"{scheme}:{path}")
    (tmp_path / f"0.{scheme}").write_bytes(content)
    path.write_bytes(content)
    *_, lost = read_corpus(f"{scheme}:{tmp_path}/*.{scheme}*")[1]
    assert (lost.source_file, lost.reason) == (str(path), "other_format")
    (tmp_path / scheme).write_bytes(gzip.compress(content))
    with pytest.raises(UsageError, match=f"by gzip; rename it to .*/{scheme}.gz"):
        read_corpus(f"{scheme}:{tmp_path}/{scheme}")


def test_what_is_not_read_is_known_by_its_name(tmp_path):
    path = tmp_path / "b.jsonl"
    path.write_bytes(RECORDS)
    for name, words in (
        *((f"a.{end}", "an archive; unpack it") for end in ("tar.gz", "TGZ", "7z")),
        ("a.jsonl.snappy", "compressed by snappy, .*; compress it with gzip or zstd"),
        ("a.jsonl.br", "compressed by another program, which is not read"),
    ):
        path.with_name(name).write_bytes(b"x")
        with pytest.raises(UsageError, match=f"{name}: the file is {words}"):
            read_corpus(f"jsonl:{tmp_path}/{name}")
        *documents, lost = read_corpus(f"jsonl:{tmp_path}/*")[1]
        assert len(documents) == 400 and lost.reason == "other_format"
        path.with_name(name).unlink()


@pytest.mark.parametrize("end", ["jsonl", "csv", "txt"])
@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16"])
def test_files_in_other_encodings_are_read(tmp_path, end, encoding):
    texts = [f"Caf\u00e9 {number}, na\u00efve." for number in range(50)]
    line = {"jsonl": '{{"article": "{}"}}\n', "csv": '"{}"\n', "txt": "{}\n"}[end]
    content = "article\n" * (end == "csv") + "".join(map(line.format, texts))
    (tmp_path / f"a.{end}").write_bytes(content.encode(encoding))
    scheme = "text" if end == "txt" else end
    corpus = f"{scheme}:{tmp_path}/a.{end}"
    records = read_corpus(corpus, encoding=encoding, task_bytes=300)[1]
    expected = [content] if end == "txt" else texts
    assert [each.article for each in records] == expected
    if end == "jsonl" and encoding == "utf-16":
        with pytest.raises(UsageError, match="UTF-16; --encoding utf-16 reads it"):
            read_corpus(corpus)
    elif end == "jsonl":
        records = read_corpus(corpus)[1]
        assert {each.reason for each in records} == {"invalid_utf8"}


def test_half_of_a_pair_in_utf_16_costs_its_record(tmp_path):
    lines = ['{"article": "One."}\n', '{"article": "\ud83d!"}\n', '{"article": "Two."}']
    content = "".join(lines).encode("utf-16", errors="surrogatepass")
    (tmp_path / "a.jsonl").write_bytes(content)
    corpus = f"jsonl:{tmp_path}/a.jsonl"
    one, lost, two = read_corpus(corpus, encoding="utf-16")[1]
    assert (one.article, lost.reason, two.article) == ("One.", "invalid_utf8", "Two.")
    (tmp_path / "a.jsonl").write_bytes(content[:-1])
    *_, lost = read_corpus(corpus, encoding="utf-16")[1]
    assert lost.reason == "broken_utf16"
    assert "in the middle of a character" in lost.detail
    (tmp_path / "b.jsonl").write_text(lines[0])
    *_, lost = read_corpus(f"jsonl:{tmp_path}/*.jsonl", encoding="utf-16")[1]
    assert lost.reason == "broken_utf16" and "not start with BOM" in lost.detail
