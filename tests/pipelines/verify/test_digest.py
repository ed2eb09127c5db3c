"""Tests of `precis digest`: what it depends on, and what not."""

import hashlib
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.command_line import exit_code

import precis
from precis.model.errors import DataError, UsageError
from precis.pipelines.verify.digest import encode_rows


def test_the_digest_is_that_of_the_sum_of_all_rows(extractive, capsys):
    parts = map(pq.read_table, (extractive / "data").glob("*.parquet"))
    rows = [row for part in parts for row in encode_rows(part)]
    total = sum(int(hashlib.sha256(row).hexdigest(), 16) for row in rows) % 2**256
    text = f"precis digest 1\n{len(rows)}\n{total:064x}\n"
    expected = hashlib.sha256(text.encode()).hexdigest()
    assert precis.digest(run=extractive) == expected
    assert exit_code("digest", str(extractive)) == 0
    assert capsys.readouterr().out == f"{expected}\n"


def test_every_column_counts_but_those_of_the_run(extractive):
    (path,) = list((extractive / "data").glob("*-00000.parquet"))
    table = pq.read_table(path)
    rows = encode_rows(table)
    assert len(set(rows)) == len(rows) == len(table)
    names = table.column_names
    left_out = {n for n in names if encode_rows(table.drop_columns([n])) == rows}
    all_null = {n for n in names if table.column(n).null_count == len(table)}
    origin = {"run_id", "settings_id", "reused_from", "source_file", "source_position"}
    assert left_out == all_null | origin


@pytest.mark.parametrize(
    ("one", "other", "are_equal"),
    [
        ([1.23412], [1.23444], True),
        ([1.2344], [1.2346], False),
        ([0.0], [-0.0], True),
        ([None], [0.0], False),
        ([["a", "b"]], [["ab"]], False),
        ([[None, "a"]], [["a", None]], False),
        ([{"x": 1, "y": None}], [{"x": None, "y": 1}], False),
        ([{"x": None}], [None], False),
        (["1"], [1], False),
        ([b"1"], [b"2"], False),
        ([float("nan")], [float("nan")], True),
        ([float("nan")], [float("inf")], False),
        ([0.99996], [1.0], True),
        ([-0.99996], [1.0], False),
        ([1e-301], [0.0], True),
        ([1.7e308], [1.70001e308], True),
        ([2**62], [2**62 + 1], False),
    ],
)
def test_values_that_differ_have_other_bytes(one, other, are_equal):
    tables = [pa.table({"a": pa.array(values)}) for values in (one, other)]
    encoded = [encode_rows(table) for table in tables]
    assert (encoded[0] == encoded[1]) == are_equal


def test_the_form_of_a_column_does_not_count():
    """Widths of numbers, dictionaries, slices, the order of columns and of fields."""
    texts, numbers = ["x", "y", "x", None], [1, None, 3, 4]
    points = [{"a": 1, "b": 2.5}, None, {"a": 3, "b": None}, {"a": 4, "b": 1.0}]
    lists = [["a"], None, [], ["b", "c"]]
    plain = pa.table({"t": texts, "n": numbers, "p": points, "l": lists})
    columns = {
        "l": pa.array(lists, pa.large_list(pa.large_string())),
        "p": pa.array(points, pa.struct([("b", pa.float32()), ("a", pa.int8())])),
        "n": pa.array(numbers, pa.int16()),
        "t": pa.array(texts).dictionary_encode(),
    }
    other = pa.table({**columns, "run_id": ["r"] * 4, "more": pa.nulls(4)})
    assert encode_rows(plain) == encode_rows(other)
    assert encode_rows(plain.slice(2)) == encode_rows(plain)[2:]


def test_a_damaged_run_has_no_digest(extractive, tmp_path):
    run = shutil.copytree(extractive, tmp_path / "run")
    (path, *_) = (run / "data").glob("*.parquet")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match=f"{path.name}: has .* wrote it; `precis ver"):
        precis.digest(run=run)
    with pytest.raises(UsageError, match="holds no run: manifest.json is missing"):
        precis.digest(run=tmp_path)


def test_numbers_are_rounded_as_text_is():
    """Against the rounding of Python's own formatting, but for ties."""
    random = np.random.default_rng(7)
    numbers = random.normal(size=500) * 10.0 ** random.integers(-30, 30, 500)
    numbers[:4] = [1000.0, 0.001, 9999.4, 99996.0]
    rounded = pa.array([float(f"{number:.3e}") for number in numbers])
    table = pa.table({"a": pa.array(numbers)})
    assert encode_rows(table) == encode_rows(pa.table({"a": rounded}))
    assert len(set(encode_rows(table))) == len(set(rounded.to_pylist()))
