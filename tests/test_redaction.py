"""--redact: personal data is replaced before anything else sees the text."""

import json
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from precis.model.errors import UsageError
from precis.model.text.article import Article
from precis.pipelines.corpus import redaction
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.redaction import Redactor
from precis.pipelines.corpus.source import list_tasks, read_task
from precis.pipelines.corpus.task import EmptyArticle, Unreadable
from precis.pipelines.flags.command_parser import HelpText, command_parser
from precis.pipelines.flags.flags import read_flags


def _redacted(text, rules="emails,phones"):
    return Redactor(rules).text(text, Counter())


@pytest.mark.parametrize(
    "phone",
    [
        "+44 20 7946 0958",
        "+442079460958",
        "+44 (0)20 7946-0958",
        "+1 (555) 123-4567",
        "+33.1.23.45.67.89",
        "0044 20 7946 0958",
        "(555) 123-4567",
        "555-123-4567",
        "555.123.4567",
        "1-800-555-0199",
        "020 7946 0958",
        "(020) 7946 0958",
        "02079460958",
        "0171/123 456",
        "089-12345678",
        "06 12 34 56 78",
        "06.12.34.56.78",
    ],
)
def test_a_phone_number_is_replaced(phone):
    assert _redacted(f"Call {phone}, or not.") == "Call [phone], or not."
    assert _redacted(f"({phone})") in ("([phone])", "[phone])")
    assert _redacted(f"Tel.: {phone}\n7 people") == "Tel.: [phone]\n7 people"


@pytest.mark.parametrize(
    "text",
    [
        "on 01.02.2024, 01/02/2024, 01-02-2024 or 2024-02-29",
        "2024-02-29T12:00:00+01:00 and 20240229 and 1999-2005",
        "from 10:30 to 11:45 on 03 04 2025",
        "$1,234,567.89, $555 123 4567, 12.345.678,90 or JPY 200,000",
        "1 234 567 890 people, 12000000 of them, +12.5%",
        "ISO 9001:2015, ISBN 978-0-306-40615-7 and 0-306-40615-2",
        "ISSN 0378-5955, SSN 123-45-6789 and 4111 1111 1111 1111",
        "IBAN DE89 3704 0044 0532 0130 00",
        "192.168.100.100, version 1.10.123.4567 and 0.0123456789",
        "at +51.50740000 and -0.12780000, 3.14159265358979",
        "https://news.example/2024/0123456789?id=0123456789",
        "A0123456789 and order #0123456789",
    ],
)
def test_other_numbers_are_kept(text):
    assert _redacted(text) == text


@pytest.mark.parametrize(
    "email", ["jo@post.example", "jo.o+x_1%y@a-b.co.uk", "jürgen@köln.de", "A@B.IO"]
)
def test_an_email_address_is_replaced(email):
    assert _redacted(f"Write to {email}.") == "Write to [email]."
    assert _redacted(f"<mailto:{email}>") == "<mailto:[email]>"


@pytest.mark.parametrize(
    "text", ["@jo wrote", "3 @ 4.50", "jo@localhost", "a@ b.com", "me @home.net"]
)
def test_other_signs_are_kept(text):
    assert _redacted(text) == text


def test_long_texts_without_a_match_take_no_time():
    for part in ("a", "1", "+1", "a.", "0 1", "(", "555-", "a@"):
        text = part * 50_000
        assert len(_redacted(text)) <= len(text)


def test_rules_are_names_or_regular_expressions():
    assert Redactor("").names == []
    both = Redactor("emails, phones\n\\d{3},\\d{2}")
    assert both.names == ["emails", "phones", "\\d{3},\\d{2}"]
    counts = Counter()
    assert both.text("123,45 and a@b.de, 12,3, 678,90", counts) == (
        "[redacted] and [email], 12,3, [redacted]"
    )
    assert counts == {"emails": 1, "phones": 0, "\\d{3},\\d{2}": 2}
    # An empty match is none.
    assert _redacted("ab", r"b|\b") == "a[redacted]"


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("email", r"--redact email: did you mean emails\? .* is written \(\?:email\)"),
        ("emails,phone", r"--redact emails,phone: did you mean phones\?"),
        ("(a", r"--redact \(a: it is neither emails nor phones and no valid regular"),
        ("a*", r"--redact a\*: it matches the empty text; write an expression"),
    ],
)
def test_rules_that_are_refused(rule, message):
    with pytest.raises(UsageError, match=message):
        CorpusOptions(corpus="sample:", redact=f"emails\n{rule}")


def test_the_flag_is_given_once_for_each_rule():
    parser = command_parser("x", [CorpusOptions], HelpText("", [], False))
    line = ["--corpus", "sample:", "--redact", "emails", "--redact", "a{1,2}"]
    values = vars(parser.parse_args(line))
    assert values["redact"] == "emails\na{1,2}"
    values = {"corpus": "sample:", "redact": ["emails", "a{1,2}"]}
    (options,) = read_flags([CorpusOptions], values)
    assert options.redact == "emails\na{1,2}"


def _read(corpus, **flags):
    """The records of a corpus and the redactions of all its tasks."""
    options = CorpusOptions(corpus=corpus, **flags)
    records = []
    redactions = Counter()
    for task in list_tasks(options):
        reader = read_task(task, options)
        records += reader
        redactions.update(reader.redactions)
    return records, redactions


def test_documents_and_dead_letters_are_redacted(tmp_path):
    lines = [
        {"article": "Ask jo@b.de or al@b.de.", "highlights": "Ask jo@b.de."},
        {"article": "Ask [email] or [email].", "by": "jo@b.de", "x": ["jo@b.de", 1]},
        {"article": " ", "by": "jo@b.de"},
        {"article": 7, "by": "jo@b.de"},
        {"article": "None.", "s": "jo@b.de"},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "a.jsonl").write_text(text)
    records, redactions = _read(
        f"jsonl:{tmp_path}/a.jsonl",
        keep_fields="by,x:json",
        split_field="s",
        redact="emails,phones",
    )
    first, second, empty, unreadable, bad_split = records
    assert isinstance(first, Article)
    assert first.document.article == "Ask [email] or [email]."
    assert first.document.highlights == "Ask [email]."
    # Without an id of its own, a document has the hash of its redacted text.
    assert first.document.document_id == second.document.document_id
    assert second.document.metadata == {"by": "[email]", "x": '["[email]", 1]'}
    assert isinstance(empty, EmptyArticle) and isinstance(unreadable, Unreadable)
    assert empty.document.metadata["by"] == "[email]"
    assert {empty.raw, unreadable.raw, bad_split.raw} == {b""}
    assert bad_split.detail.startswith("the split is '[email]'; ")
    assert redactions == {"emails": 6, "phones": 0}


def test_text_within_columns_of_parquet_is_redacted(tmp_path):
    authors = pa.array([[{"mail": "jo@b.de", "age": 7}]])
    table = pa.table({"article": ["A."], "authors": authors})
    pq.write_table(table, tmp_path / "a.parquet")
    corpus = f"parquet:{tmp_path}/a.parquet"
    (article,), _ = _read(corpus, keep_fields="authors", redact="emails")
    assert article.document.metadata == {"authors": [{"mail": "[email]", "age": 7}]}


def test_redactions_of_other_splits_are_not_counted():
    names = r"\bJ\w+"
    _, all_counts = _read("sample:300", redact=names)
    _, counts = _read("sample:300", redact=names, split="test")
    assert 0 < counts[names] < all_counts[names]


def test_an_expression_that_takes_too_long_costs_its_document(tmp_path, monkeypatch):
    monkeypatch.setattr(redaction, "_TIMEOUT_S", 0.05)
    (tmp_path / "a.txt").write_text("a" * 40)
    (tmp_path / "b.txt").write_text("aab")
    (lost, last), redactions = _read(f"text:{tmp_path}/*.txt", redact="(a|a)+b")
    assert lost == (
        f"{tmp_path}/a.txt",
        "file",
        "redaction_timeout",
        "--redact (a|a)+b took more than 0.05 s on one text",
        b"",
        1,
    )
    assert last.document.article == "[redacted]"
    assert redactions == {"(a|a)+b": 1}
