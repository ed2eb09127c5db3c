"""--keep_fields: fields of the source that travel along with their types."""

import datetime
import decimal
import re
import uuid

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.command_line import write_jsonl
from support.corpus_records import read_corpus

from precis.model.errors import UsageError
from precis.pipelines.corpus.corpus import list_tasks
from precis.pipelines.corpus.kept_fields import (
    Float,
    KeptField,
    found_kind,
    kept_columns,
    kept_values,
    parse_kept_fields,
)
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.task import DeadLetter

UTC = datetime.UTC
NOON = datetime.datetime(2024, 2, 29, 12, tzinfo=UTC)
NAN = float("nan")
MOMENT = pa.timestamp("us", tz="UTC")
ONE = "00000000-0000-0000-0000-000000000001"
MIDNIGHT = datetime.datetime(1999, 1, 2, tzinfo=UTC)


def _columns(corpus, keep_fields, taken=(), **flags):
    options = CorpusOptions(corpus=corpus, keep_fields=keep_fields, **flags)
    columns = kept_columns(list_tasks(options), taken=taken)
    for field in columns:
        description = f"field {field.name} of the corpus"
        assert field.metadata == {b"description": description.encode()}
        assert field.nullable
    return {field.name: field.type for field in columns}


def _metadata(corpus, keep_fields):
    records = read_corpus(corpus, keep_fields=keep_fields)[1]
    return [getattr(record, "metadata", record) for record in records]


def _jsonl(tmp_path, *records):
    lines = [{"article": "A.", **record} for record in records]
    return write_jsonl(tmp_path / "a.jsonl", lines)


def _parquet(tmp_path, name="a.parquet", **columns):
    length = len(next(iter(columns.values())))
    table = pa.table({"article": ["A."] * length, **columns})
    pq.write_table(table, tmp_path / name)
    return f"parquet:{tmp_path}/*.parquet"


def test_names_and_types_are_parsed():
    assert parse_kept_fields("") == ()
    assert parse_kept_fields(" date:timestamp, section,dc:date:string") == (
        KeptField("date", "timestamp"),
        KeptField("section", ""),
        KeptField("dc:date", "string"),
    )
    forms = "date(%b %d, %Y)", "timestamp(%H:%M %d.%m.%y)"
    fields = KeptField("dc:d", forms[0]), KeptField("at", forms[1]), KeptField("n")
    assert parse_kept_fields("dc:d:{}, at:{},n".format(*forms)) == fields
    for text, message in (
        ("date:day", r"--keep_fields date:day: unknown type 'day'; .*string, int"),
        (":int64", r"--keep_fields :int64: unknown type"),
        ("a,b,A:json", r"--keep_fields names a more than once"),
        ("d:date(%d.%Q)", r"'%d.%Q' is no form of times \('Q' is a bad dir.*%d.%m.%Y"),
        ("d:date(%H:%M)", r"'%H:%M' is no form of times \(it has no year\); write"),
        ("d:date(%Y %Y)", r"is no form of times \(redefinition of group name"),
        ("d:date(%Y %Z)", r"is no form of times \(%Z is not possible, %z is\)"),
        ("d:epoch(%Y)", r"d:epoch\(%Y\): unknown type 'epoch\(%Y\)'"),
    ):
        with pytest.raises(UsageError, match=message):
            CorpusOptions(corpus="jsonl:a", keep_fields=text)


def test_the_types_of_json_values_are_inferred():
    for kind, *columns in (
        ("int64_found", [1, None, -(2**63)]),
        ("double_found", [1, 2.5], [2.5]),
        ("bool_found", [True, False]),
        ("string_found", ["a", None]),
        ("json_found", [None], [1, "a"], [True, 1], [[1]], [{}]),
        ("double_found", [NAN, 1], [NAN]),
        ("string_found", ["a", NAN]),
        ("bool_found", [NAN, True]),
    ):
        for values in columns:
            assert found_kind([{"f": value} for value in values], "f") == kind


def test_the_fields_of_json_lines_are_kept(tmp_path):
    corpus = _jsonl(
        tmp_path,
        {"views": 3, "share": 1, "section": "news", "tags": ["ä", None]},
        {"views": None, "share": 0.5, "day": "2024-02-29"},
        *[{"views": 4.0, "section": "x"}] * 18,
        {"views": 2.5, "section": 7},
        {"views": "many", "section": "sport"},
        {"day": "yesterday"},
        {"day": "", "section": 7},
    )
    names = "views,share,section,tags,day:date"
    with pytest.raises(UsageError, match="has no field 'view', .*did you mean 'views'"):
        read_corpus(corpus, keep_fields="view")
    # One of the first twenty values of `views` has a point.
    double, text = pa.float64(), pa.string()
    types = [double, double, text, text, pa.date32()]
    assert list(_columns(corpus, names).values()) == types
    found = _metadata(corpus, names.replace("views", "views:int64"))
    nothing = dict.fromkeys(["views", "share", "section", "tags", "day"])
    assert found[:3] == [
        nothing | {"views": 3, "share": 1.0, "section": "news", "tags": '["ä", null]'},
        nothing | {"share": 0.5, "day": datetime.date(2024, 2, 29)},
        nothing | {"views": 4, "section": "x"},
    ]
    assert {letter.reason for letter in found[20:23]} == {"wrong_type"}
    lost, ways = "which is not a valid", "string keeps it unchanged"
    form = "day:date(FORM) reads other forms, such as %d.%m.%Y"
    assert [letter.detail for letter in found[20:23]] == [
        f"'views' holds 2.5, {lost} int64; --keep_fields views:{ways}",
        f"'views' holds 'many', {lost} int64; --keep_fields views:{ways}",
        f"'day' holds 'yesterday', {lost} date; --keep_fields day:{ways}, {form}",
    ]
    assert found[23] == nothing | {"section": "7"}


LOST = "--keep_fields f:string keeps it unchanged"
BIG = "18446744073709551617"  # 2**64 + 1; a double has it as 18446744073709551616


def test_a_json_value_of_another_type_than_the_first_has_its_text_or_is_lost(tmp_path):
    for first, kept, lost in (
        ("1", {'"1067"': 1067, "4.0": 4}, '"01067" "" "1e5" "1_000" "\\t7"'),
        ("1", {f"{-(2**63)}": -(2**63), "null": None}, f'{BIG} true 2.5 "-0" "+1"'),
        ("1.5", {"3": 3.0}, f'9007199254740993 {BIG} 1e400 "0.50" "1e5" ""'),
        ("1.5", {'"0.5"': 0.5}, ""),
        ("true", {'"false"': False}, '1 0 "True" "1" ""'),
        ('"a"', {"1.10": "1.10", "1e5": "1e5", BIG: BIG, '""': "", "true": "true"}, ""),
        (f"[{BIG}]", {BIG: BIG, '"01"': '"01"', '{"a":1.5}': '{"a": 1.5}'}, ""),
    ):
        values = [first] * 20 + [*kept] + lost.split()
        lines = "".join(f'{{"article": "A.", "f": {value}}}\n' for value in values)
        (tmp_path / "a.jsonl").write_text(lines)
        found = _metadata(f"jsonl:{tmp_path}/a.jsonl", "f")[20:]
        assert [each["f"] for each in found[: len(kept)]] == list(kept.values())
        assert all(each.detail.endswith(LOST) for each in found[len(kept) :])


def test_the_columns_of_csv_are_strings_unless_a_type_is_named(tmp_path):
    (tmp_path / "a.csv").write_text(
        "article,n,x,when,info,flag\n"
        'A.,7,1.5,2024-02-29T13:00:00+01:00,"{""a"": 1}",True\n'
        "B.,,,,,\n"
        "C.,7,1.5,2024-02-29,{a,0\n"
    )
    (tmp_path / "b.csv").write_text("article\nD.\n")
    corpus = f"csv:{tmp_path}/*.csv"
    kinds = "n:int64,x:double,when:timestamp,info:json,flag:bool"
    full, empty, broken, other = _metadata(corpus, kinds)
    assert list(full.values()) == [7, 1.5, NOON, '{"a": 1}', True]
    assert set(empty.values()) == set(other.values()) == {None}
    assert broken.detail.startswith("'info' holds '{a', which is not a valid json; ")
    columns = _columns(corpus, "n,when:timestamp,info:json")
    assert list(columns.values()) == [pa.string(), MOMENT, pa.string()]
    assert _metadata(corpus, "n")[1] == {"n": ""}


def test_the_columns_of_parquet_keep_their_types(tmp_path):
    nested = pa.struct([("name", pa.large_string()), ("ids", pa.list_(pa.int8()))])
    corpus = _parquet(
        tmp_path,
        who=pa.array([{"name": "J", "ids": [1, None]}, None], nested),
        when=pa.array([1_709_208_000_000_000_123, None], pa.timestamp("ns", "UTC")),
        at=pa.array([2**62, None], pa.timestamp("us")),
        end=pa.array([-1, None], pa.timestamp("ns", "America/New_York")),
        kind=pa.array(["a", "b"]).dictionary_encode(),
        price=pa.array([None, 1]).cast(pa.decimal128(21, 2)),
        serial=pa.array([2**53 + 1, 2**53], pa.decimal128(20)),
        small=pa.array([7, None], pa.uint8()),
        pairs=pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
    )
    text, names = pa.string(), "when,kind,who,price,small,pairs,end"
    types = [MOMENT, text, text, text, pa.int64(), text, MOMENT]
    assert list(_columns(corpus, names).values()) == types
    who = '{"name": "J", "ids": [1, null]}'
    end = datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)
    assert [list(each.values()) for each in _metadata(corpus, names)] == [
        [NOON, "a", who, None, 7, '[["a", 1]]', end],
        [None, "b", None, "1.00", None, None, None],
    ]
    assert _metadata(corpus, "when:string")[0] == {"when": "2024-02-29T12:00:00+00:00"}
    lost, last = _metadata(corpus, "serial:double")  # MySQL's unsigned numbers in Spark
    ways = LOST.replace("f:", "serial:")
    held = "9007199254740993, which is not a valid double"
    assert lost.detail.endswith(f"holds {held}; {ways}")
    assert last == {"serial": 2.0**53}
    assert _metadata(corpus, "serial:string")[0] == {"serial": "9007199254740993"}
    # A value that Python does not have costs its row only.
    lost, last = _metadata(corpus, "at")
    assert isinstance(lost, DeadLetter)
    assert (lost.source_position, lost.reason) == ("row group 0 row 0", "wrong_type")
    assert lost.detail.startswith("'at' holds a value that cannot be read: ")
    assert last == {"at": None}


@pytest.mark.parametrize("is_int96", [True, False])
def test_times_beyond_those_of_nanoseconds_are_right_or_lost(tmp_path, is_int96):
    """Spark writes INT96 by default; nanoseconds in 64 bits hold 1677 to 2262."""
    times = ["9999-12-31 23:59:59.123456", "1500-01-01 00:00:00", "0001-01-01 00:00:00"]
    times = [datetime.datetime.fromisoformat(time) for time in times]
    micros = pa.array([*times, 253_402_300_800_000_000], pa.timestamp("us"))
    table = pa.table({"article": ["A."] * 4, "t": micros})
    table = table.append_column("of", pa.array([{"t": [t]} for t in micros[:3]] + [{}]))
    if not is_int96:  # In microseconds this would be 1970.
        millis = pa.array([*times, 2**64 // 1000 + 1], pa.timestamp("ms"))
        table = table.set_column(1, "t", millis)
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, use_deprecated_int96_timestamps=is_int96)
    *kept, lost = _metadata(f"parquet:{path}", "t,of")
    times[0] = times[0].replace(microsecond=123_456 if is_int96 else 123_000)
    assert [each["t"] for each in kept] == [t.replace(tzinfo=UTC) for t in times]
    assert kept[1]["of"] == '{"t": ["1500-01-01T00:00:00"]}'
    assert lost.detail.startswith("'t' holds a value that cannot be read: ")
    with pytest.raises(UsageError, match="has no field 'body', it has 'article', 't'"):
        read_corpus(f"parquet:{path}", article_field="body")


def test_fields_of_other_types_in_another_file_are_refused(tmp_path):
    corpus = _parquet(tmp_path, n=pa.array([1]))
    _parquet(tmp_path, "b.parquet", n=pa.array(["x"]))
    message = "int64 in .*a.parquet and string in .*b.parquet; add"
    with pytest.raises(UsageError, match=message):
        _columns(corpus, "n")
    assert _metadata(corpus, "n:string") == [{"n": "1"}, {"n": "x"}]


def test_the_name_of_another_column_is_refused(tmp_path):
    corpus = _jsonl(tmp_path, {"Summary": "s", "n": 1})
    taken = ["document_id", "summary"]
    assert _columns(corpus, "n", taken) == {"n": pa.int64()}
    assert _columns(corpus, "", taken) == {}
    message = "--keep_fields Summary: the result already has a column of this name"
    with pytest.raises(UsageError, match=message):
        _columns(corpus, "n,Summary", taken)


NOONS = (
    "20240229T12|2024-02-29T12:00:00Z|2024-02-29 12:00:00 UTC|2024-W09-4 12:00 GMT|"
    "2024-02-29 12:00:00 +0000|2024-02-29 13:00:00.000 +0100 UTC|29 Feb 2024 07:00 EST|"
    "Thu, 29 Feb 2024 12:00:00 GMT|Thu, 29 Feb 2024 14:00:00 +0200 (EET)"
).split("|")
SECONDS = " 1709208000.000001 ", 1709208000.000001, Float("1709208000.0000019")
AFTER = NOON + datetime.timedelta(microseconds=1)
BEFORE = datetime.datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC)
# The values of each type, and what is kept of them.
VALUES = {
    "string": [(True, "true"), (0.5, "0.5"), (datetime.date(2024, 2, 29), "2024-02-29")]
    + [(uuid.UUID(int=1), ONE), (decimal.Decimal("1E+3"), "1000"), (NAN, None)]
    + [("é\n".encode(), "é\n"), (b"\xff\x00", "ff00"), (b"a\x00", "6100")],
    "int64": [(" -12 ", -12), (-(2**63), -(2**63)), (None, None), (NAN, None)]
    + [("1.0", 1), (np.float64(4.0), 4), (decimal.Decimal(2**63 - 1), 2**63 - 1)],
    "double": [("1e3", 1000.0), (".5", 0.5), (2, 2.0), ("9007199254740993", 2.0**53)]
    + [(np.float64(0.5), 0.5), (decimal.Decimal("0.1"), 0.1)],
    "bool": [("FALSE", False), (1, True), ("t", True), ("No", False), (NAN, None)],
    "date": [("2024-02-29", NOON.date()), (NOON, NOON.date()), (NAN, None)]
    + [("2024-02-29T23:30:00-05:00", NOON.date())],
    "date(%d. %B %Y)": [("29. February 2024", NOON.date())],
    "json": [({"a": b"x"}, '{"a": "x"}'), ([datetime.time(1, 2)], '["01:02:00"]')]
    + [([NAN, "NaN", uuid.UUID(int=1)], f'[null, "NaN", "{ONE}"]'), (NAN, None)]
    + [([b"\x00"], '["00"]')],
    "timestamp": [(datetime.date(1999, 1, 2), MIDNIGHT), ("19990101T24", MIDNIGHT)]
    + [("1999-01-01T24:00:00Z", MIDNIGHT), *((text, NOON) for text in NOONS)],
    "timestamp(%d/%m/%Y %H:%M %z)": [("29/02/2024 13:00 +0100", NOON)],
    "timestamp(%Y)": [(NOON, NOON)],
    "epoch": [(1_709_208_000, NOON), *((each, AFTER) for each in SECONDS)],
    "epoch_ms": [(decimal.Decimal("1709208000000.001"), AFTER), (-1, BEFORE)],
}


@pytest.mark.parametrize("kind", VALUES)
def test_values_that_fit(kind):
    for value, expected in VALUES[kind]:
        found = kept_values({"f": value}, [KeptField("f", kind)])["f"]
        assert (found, type(found)) == (expected, type(expected)), value


NO_VALUES = {
    "string": [["a"]],
    "int64": ["1_000", "٣", 2**63, True, 1e300, decimal.Decimal("1.5"), "nan"],
    "double": ["1,5", 10**400],
    "bool": ["maybe", 2],
    "date": ["2023-02-29", 20240229],
    "timestamp": ["0001-01-01T00:00:00+14:00", "Thu, 29 Feb 2024 12:00 CEST", "24:00"],
    "date(%d.%m.%Y)": ["29/02/2024"],
    "epoch": [True, "1e99", 10**12, "inf", NOON],
    "json": [object(), [float("inf")]],
}


@pytest.mark.parametrize("kind", NO_VALUES)
def test_values_that_do_not_fit(kind):
    for value in NO_VALUES[kind]:
        message = f"^'f' holds .*, which is not a valid {re.escape(kind)}; "
        with pytest.raises(ValueError, match=message):
            kept_values({"f": value}, [KeptField("f", kind)])


def test_a_message_shows_the_value_and_the_types_that_fit():
    for kind, value, message in (
        (
            "bool_found",
            "x" * 50,
            f"'{'x' * 40}...', which is not a valid bool; .*{LOST}",
        ),
        ("date", "1.5.24", rf"'1.5.24', .*{LOST}, f:date\(FORM\) reads .*%d.%m.%Y$"),
        ("timestamp", 17, f"17, .*{LOST}, f:epoch or f:epoch_ms reads .* since 1970$"),
        ("string", [[1] * 9], r"\[\[1, 1, 1, .* not .*f:json keeps it unchanged"),
        ("json", object(), "<object .* is not a valid json; leave the field out"),
    ):
        with pytest.raises(ValueError, match=f"^'f' holds {message}"):
            kept_values({"f": value}, [KeptField("f", kind)])


def test_kept_times_in_every_notation_are_columns_of_times(tmp_path):
    corpus = _jsonl(tmp_path, {"a": 1709208000, "b": "29.02.2024", "c": 1709208000000})
    kinds = "a:epoch,b:date(%d.%m.%Y),c:epoch_ms"
    assert list(_columns(corpus, kinds).values()) == [MOMENT, pa.date32(), MOMENT]
    assert _metadata(corpus, kinds) == [{"a": NOON, "b": NOON.date(), "c": NOON}]
