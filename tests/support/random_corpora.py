"""Random corpora for hypothesis: files with texts and damage of every kind, and what
must become of each of their records.
"""

import csv
import gzip
import hashlib
import io
import json
import unicodedata
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from precis.model.text.normalization import normalise

SCHEMES = ("jsonl", "csv", "text", "parquet")
# Stands in every text and every broken record: no log may hold it.
MARKER = "Quokka"
ROW, EMPTY, BAD = "row", "empty", "bad"
_BOILERPLATE = "(CNN) -- "
_FIELDS = ("id", "article", "highlights", "part")
_FRAGMENTS = (
    f"{MARKER} rain fell on Monday.",
    f"Nobody came to {MARKER} Street, it was cold.",
    f'"Why?" the {MARKER} asked.',
    "The U.S. has 3.5 million of them, Mr. Smith said.",
    "Cafe\u0301 Ro\u0308mer",
    "\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627 \u202eabc\u202c.",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467 \U0001f600!",
    "\u4eca\u5929\u4e0b\u96e8\u3002\u660e\u5929\u4e5f\u4e0b\u3002",
    "a\x00b\x01c\x1fd\x7f.",
    "one\u2028two\u2029three\x85four\x0bfive\x0csix\rseven.",
    "\u2581piece \u2424 mark",
    "\ufb01ne \u01c5 \u1e9e \u0130stanbul",
    '<pad> [SEP] "quoted, cell" \\ \\u0041',
    "\ufeff\u00ad\u200b",
    "?! \u2026 --",
    "",
)
_SEPARATORS = (" ", "  ", "\n", "\n\n", "\t", "\u00a0", "\u2028", "\r\n", "")
_BLANKS = ("", " ", "\n\t ", "\u00a0\u2003", "\u200b\ufeff", "\x00", _BOILERPLATE)
# An id that is no text has no place in CSV; in Parquet a column has one type.
_IDS = ("a", "b", "a#2", "\u00fc", "\u202e\x00id", "0", "x" * 3_000, "9" * 40)
_SPLITS = ("train", "test", "dev", "")

# Lines of a jsonl file that are no documents.
_BROKEN_LINES = (
    b'{"id": "q", "article": "Quokka',
    b'{"id": "q", "article": "Quokka caf\xe9"}',
    b'"Quokka"',
    b"null",
    b'["Quokka"]',
    b"[" * 3_000,
    b'{"id": "q", "highlights": "Quokka"}',
    b'{"id": "q", "article": null}',
    b'{"id": "q", "article": ["Quokka", 7]}',
    b'{"id": true, "article": "Quokka"}',
    b'{"id": 1.5, "article": "Quokka"}',
    b'{"id": {"q": 1}, "article": "Quokka"}',
    b'{"id": "q", "article": "Quokka", "highlights": 7}',
    b'{"id": "q", "article": "Quokka \\ud800"}',
    b'{"id": "q", "article": "Quokka \\q"}',
    b"\xff\xfeQuokka",
)
_BLANK_LINES = (b"", b" ", b"\t\r", b"\x0c")
# Rows of a CSV file, without their line break, that are no documents.
_BROKEN_ROWS = (b'"Quokka"', b'"q","Quokka","","",""', b'"q","Quokka caf\xe9","",""')
_BROKEN = {"jsonl": (*_BROKEN_LINES, *_BLANK_LINES), "csv": _BROKEN_ROWS}
_NO_TEXT = b"\xff Quokka"


class Record(NamedTuple):
    """A record of a corpus.

    Attributes:
      source_file, source_position: its place.
      outcome: what must become of it, if its split is asked for: ROW, EMPTY or BAD.
      article: its text.
      document_id: "" where it has none.
      highlights: "" where it has none.
      split: "" where it has none.
      key: equal for texts that differ in white space alone.
    """

    source_file: str
    source_position: str
    outcome: str
    article: str = ""
    document_id: str = ""
    highlights: str = ""
    split: str = ""
    key: str = ""

    @property
    def place(self) -> tuple[str, str]:
        """Where it stands."""
        return self.source_file, self.source_position

    def id_or_hash(self) -> str:
        """The id that its row has before a suffix."""
        digest = hashlib.sha256(normalise(self.article).encode()).hexdigest()
        return self.document_id or digest

    def split_or_hash(self) -> str:
        """The split, by the default shares and seed where it has none."""
        if self.split:
            return self.split
        digest = hashlib.sha256(f"17:{self.id_or_hash()}".encode()).digest()
        place = int.from_bytes(digest[:8], "big") / 2**64
        return "validation" if place < 0.05 else "test" if place < 0.1 else "train"


class Draft(NamedTuple):
    """What a file holds at one place: a document, or bytes that are none.

    `raw` is None for a document.
    """

    values: dict[str, str]
    key: str = ""
    raw: bytes | None = None


class CorpusDraft(NamedTuple):
    """A corpus before it is written.

    Attributes:
      scheme: as in `--corpus`.
      files: what each of its files holds.
      gzipped: whether jsonl and csv are compressed.
      escaped: whether JSON escapes all that is not ASCII.
      group_rows: rows of a row group of Parquet.
    """

    scheme: str
    files: tuple[tuple[Draft, ...], ...]
    gzipped: bool
    escaped: bool
    group_rows: int


def _has_text(article: str) -> bool:
    """Whether a text has a visible character, by the categories of Unicode."""
    text = article.removeprefix(_BOILERPLATE).replace("\u2424", "")
    return any(
        not character.isspace()
        and unicodedata.category(character) not in ("Cc", "Cf", "Cs")
        for character in text
    )


@st.composite
def _articles(draw: st.DrawFn) -> str:
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return draw(st.sampled_from(_BLANKS))
    if kind == 1:
        return draw(st.text(st.characters(exclude_categories=("Cs",)), max_size=40))
    pairs = st.tuples(st.sampled_from(_FRAGMENTS), st.sampled_from(_SEPARATORS))
    return "".join(map("".join, draw(st.lists(pairs, min_size=1, max_size=8))))


@st.composite
def _drafts(draw: st.DrawFn, scheme: str, articles: list[str]) -> Draft:
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return Draft({}, raw=draw(st.sampled_from(_BROKEN.get(scheme, (_NO_TEXT,)))))
    key = draw(st.sampled_from(articles))
    article = key.replace(" ", " \t ") if kind == 1 else key
    highlights = draw(st.sampled_from(("", f"{MARKER} rain.\nIt was cold.", "\x00")))
    values = {
        "id": draw(st.sampled_from(("", *_IDS, *map(str, range(20))))),
        "article": article,
        "highlights": highlights,
        "part": draw(st.sampled_from(_SPLITS)),
    }
    return Draft(values, key)


@st.composite
def corpora(draw: st.DrawFn, scheme: str) -> CorpusDraft:
    """Corpora of one scheme, with 0 to 40 records in 1 to 3 files, or in 8 of text."""
    articles = draw(st.lists(_articles(), min_size=3, max_size=8))
    sizes: tuple[int, ...] = (1, 0, 1, 1, 1, 1, 1, 1)
    if scheme != "text":
        sizes = draw(st.sampled_from(((13,), (9, 0), (3, 17), (40,), (0,), (8, 1, 9))))
    contents = tuple(
        tuple(draw(st.lists(_drafts(scheme, articles), min_size=size, max_size=size)))
        for size in sizes
    )
    return CorpusDraft(
        scheme,
        contents,
        gzipped=draw(st.booleans()),
        escaped=draw(st.booleans()),
        group_rows=draw(st.sampled_from((1, 3, 50))),
    )


def write_corpus(
    draft: CorpusDraft, folder: Path, *, uses_splits: bool
) -> tuple[str, list[Record]]:
    """Writes a corpus; returns its `--corpus` and its records, in order.

    Args:
      draft: the corpus.
      folder: a new folder for it.
      uses_splits: whether `--split_field part` is given.
    """
    folder.mkdir()
    write = {"jsonl": _jsonl, "csv": _csv, "text": _text, "parquet": _parquet}
    is_gzip = draft.gzipped and draft.scheme in ("jsonl", "csv")
    suffix = f".{draft.scheme}" + (".gz" if is_gzip else "")
    records = []
    for number, drafts in enumerate(draft.files):
        path = folder / f"{number}{suffix}"
        content, found = write[draft.scheme](draft, drafts, str(path))
        path.write_bytes(gzip.compress(content) if is_gzip else content)
        records += found
    if not uses_splits or draft.scheme == "text":
        records = [record._replace(split="") for record in records]
    return f"{draft.scheme}:{folder}/*{suffix}", records


def _record(path: str, position: str, draft: Draft) -> Record:
    if draft.raw is not None:
        return Record(path, position, BAD)
    values = draft.values
    outcome = ROW if _has_text(values["article"]) else EMPTY
    texts = (values[name] for name in ("article", "id", "highlights", "part"))
    return Record(path, position, outcome, *texts, draft.key)


# A file whose first records lack a field is refused; so one with all stands first.
_FIRST = Draft(
    {"id": "first", "article": f"{MARKER} came.", "highlights": "", "part": "train"},
    f"{MARKER} came.",
)


def _jsonl(
    corpus: CorpusDraft, drafts: tuple[Draft, ...], path: str
) -> tuple[bytes, list[Record]]:
    content, records = b"", []
    for draft in (_FIRST, *drafts) if drafts else ():
        line = draft.raw
        if line is None:
            # Where a document has none, half of them have the field and half have not.
            values: dict[str, Any] = {
                name: value
                for name, value in draft.values.items()
                if value or name == "article" or draft is _FIRST or len(records) % 2
            }
            if values.get("id", "").isdecimal() and len(values["id"]) < 9:
                values["id"] = int(values["id"])
            line = json.dumps(values, ensure_ascii=corpus.escaped).encode()
        if line.strip():
            records.append(_record(path, f"byte {len(content)}", draft))
        content += line + b"\n"
    return content, records


def _csv(
    corpus: CorpusDraft, drafts: tuple[Draft, ...], path: str
) -> tuple[bytes, list[Record]]:
    del corpus
    content, records = _csv_row(_FIELDS), []
    for draft in drafts:
        is_bad = draft.raw is not None
        row = draft.raw + b"\n" if is_bad else _csv_row(map(draft.values.get, _FIELDS))
        records.append(_record(path, f"byte {len(content)}", draft))
        content += row
    return content, records


def _csv_row(cells: Any) -> bytes:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerow(cells)
    return text.getvalue().encode()


def _text(
    corpus: CorpusDraft, drafts: tuple[Draft, ...], path: str
) -> tuple[bytes, list[Record]]:
    del corpus
    if not drafts:
        return b"", [Record(path, "file", EMPTY, document_id=Path(path).stem)]
    (draft,) = drafts
    if draft.raw is not None:
        return draft.raw, [_record(path, "file", draft)]
    # A byte order mark at the beginning is no part of the text.
    article = draft.values["article"]
    read = article.removeprefix("\ufeff")
    values = {**draft.values, "article": read, "id": Path(path).stem, "highlights": ""}
    record = _record(path, "file", Draft(values, draft.key.removeprefix("\ufeff")))
    return article.encode(), [record]


def _parquet(
    corpus: CorpusDraft, drafts: tuple[Draft, ...], path: str
) -> tuple[bytes, list[Record]]:
    records = []
    for row, draft in enumerate(drafts):
        group, within = divmod(row, corpus.group_rows)
        records.append(_record(path, f"row group {group} row {within}", draft))
    # A record that is no document has no text.
    columns = {
        name: pa.array([draft.values.get(name) for draft in drafts], pa.string())
        for name in _FIELDS
    }
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file, row_group_size=corpus.group_rows)
    return file.getvalue(), records
