"""Ranges of a gzip file, one after the other: each goes on where one before ended."""

import gzip
import itertools
import random

import pytest

from precis.pipelines.corpus import gzip_blocks as gzip_module
from precis.pipelines.corpus import opening
from precis.pipelines.corpus.gzip_blocks import BrokenGzip, gzip_blocks
from precis.pipelines.corpus.lines import read_lines

CHANCE = random.Random(3)
LINES = [CHANCE.randbytes(CHANCE.randint(1, 9000)).hex() for _ in range(400)]
CONTENT = "\n".join(LINES).encode()


@pytest.fixture(autouse=True)
def _no_file_is_kept(monkeypatch):
    """Files count as old as soon as they are written."""
    monkeypatch.setattr(opening, "_COARSEST_TIME_NS", 0)
    monkeypatch.setattr(gzip_module, "_kept_files", {})


@pytest.fixture
def read_bytes(monkeypatch):
    """The uncompressed bytes that were read so far."""
    total = []
    read1 = gzip.GzipFile.read1

    def counted(self, size=-1):
        content = read1(self, size)
        total.append(len(content))
        return content

    monkeypatch.setattr(gzip.GzipFile, "read1", counted)
    return lambda: sum(total)


def write(path, content=CONTENT):
    path.write_bytes(gzip.compress(content, 1))
    return str(path)


def read_range(path, start, stop):
    lines = read_lines(path, start, stop, max_bytes=1 << 20)
    return [(line.start, line.text) for line in lines]


def ranges(count):
    edges = [len(CONTENT) * number // count for number in range(count)]
    return list(itertools.pairwise([*edges, -1]))


@pytest.mark.parametrize("order", ["forward", "every second", "backward", "random"])
def test_ranges_in_any_order_are_those_of_a_new_process(tmp_path, monkeypatch, order):
    path = write(tmp_path / "a.gz")
    parts = ranges(23)
    expected = {}
    for part in parts:
        expected[part] = read_range(path, *part)
        monkeypatch.setattr(gzip_module, "_kept_files", {})
    assert sum(map(len, expected.values())) == len(LINES)
    if order == "every second":
        parts = parts[::2] + parts[1::2]
    elif order == "backward":
        parts.reverse()
    elif order == "random":
        random.Random(5).shuffle(parts)
    assert {part: read_range(path, *part) for part in parts} == expected


def test_ranges_one_after_the_other_decompress_the_file_once(tmp_path, read_bytes):
    path = write(tmp_path / "a.gz")
    for part in ranges(23):
        read_range(path, *part)
    assert read_bytes() == len(CONTENT)
    assert gzip_module._kept_files == {}  # The last range reads it to its end.


def test_one_file_is_kept_and_closed_by_the_next(tmp_path):
    paths = [write(tmp_path / name) for name in ("a.gz", "b.gz")]
    (first, *_) = ranges(9)
    read_range(paths[0], *first)
    (kept,) = gzip_module._kept_files.values()
    read_range(paths[1], *first)
    (other,) = gzip_module._kept_files.values()
    assert kept is not other and kept._compressed.closed


def test_a_file_that_changed_or_was_just_written_is_read_anew(
    tmp_path, monkeypatch, read_bytes
):
    path = write(tmp_path / "a.gz")
    first, second, *_ = ranges(9)
    read_range(path, *first)
    other = CONTENT.swapcase()
    write(tmp_path / "a.gz", other)
    assert b"".join(text for _, text in read_range(path, *second)) in other
    monkeypatch.setattr(opening, "_COARSEST_TIME_NS", 10**12)
    gzip_module._kept_files.clear()
    read_range(path, *first)
    assert gzip_module._kept_files == {}


def test_damage_is_met_at_the_same_byte_by_every_range(tmp_path):
    content = gzip.compress(CONTENT)
    (tmp_path / "a.gz").write_bytes(content[: len(content) // 2])
    ends = []
    for begin in (0, 50_000, 400_000):
        with open(tmp_path / "a.gz", "rb") as file:
            end = begin
            with pytest.raises(BrokenGzip, match="ended before the end-of-stream"):
                for block in gzip_blocks(file, begin):
                    assert block.content == CONTENT[block.start : block.end]
                    end = block.end
            ends.append(end)
    assert len(set(ends)) == 1 and gzip_module._kept_files == {}
