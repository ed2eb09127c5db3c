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


NAN = float("nan")
EQUAL = [(1.23412, 1.23444), (0.0, -0.0), (NAN, NAN), (0.99996, 1.0), (1e-301, 0.0)]
EQUAL += [(1.7e308, 1.70001e308)]
OTHER = [(1.2344, 1.2346), (None, 0.0), (["a", "b"], ["ab"]), ([None, 1], [1, None])]
OTHER += [({"x": 1, "y": None}, {"x": None, "y": 1}), ({"x": None}, None), ("1", 1)]
OTHER += [(b"1", b"2"), (NAN, float("inf")), (-0.99996, 1.0), (2**62, 2**62 + 1)]


def test_values_that_differ_have_other_bytes():
    for one, other in (*EQUAL, *OTHER):
        encoded = [encode_rows(pa.table({"a": [value]})) for value in (one, other)]
        assert (encoded[0] == encoded[1]) == ((one, other) in EQUAL), (one, other)


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
