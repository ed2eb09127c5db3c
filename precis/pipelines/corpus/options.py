"""The flags of a corpus, and the syntax `scheme:where` of `--corpus`."""

import contextlib
import glob
import importlib
import itertools
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from precis.model.config import INPUT, NOTHING, Options, flag, required, setting
from precis.model.errors import UsageError
from precis.model.text.document import CLEANINGS, TextSettings
from precis.pipelines.corpus.kept_fields import KINDS, parse_kept_fields
from precis.pipelines.corpus.opening import written_argument
from precis.pipelines.corpus.schemes import SCHEMES, scheme_of
from precis.pipelines.corpus.task import Fields, KeptField


def clean_flag() -> Any:
    """The field `clean` of an options class."""
    return flag(
        "standard",
        "how articles are cleaned: standard normalises the text, removes boilerplate "
        "and puts it on one line; html takes the text out of HTML first; none keeps "
        "the text unchanged",
        choices=CLEANINGS,
    )


_MOST_FILES = 1000  # whose sizes are added
_HASH_SPLITS = ("train", "validation", "test")
ENCODINGS = ("utf-8", "latin-1", "cp1252", "utf-16")
_SCHEMES = [f"{name}:{SCHEMES[name].where}" for name in SCHEMES]
_WITH_FIELDS = tuple(name for name in SCHEMES if SCHEMES[name].has_fields)


@dataclass(frozen=True, kw_only=True)
class CorpusOptions(Options):
    """Corpus."""

    # Where the documents come from.
    corpus: str = required(
        f"the corpus: {', '.join(_SCHEMES)}; a GLOB may be local, gs://, s3:// or "
        "hf://; several corpora are separated by commas",
        metavar="SCHEME:WHERE",
        takes_list=True,
        is_common=True,
        place=INPUT,
    )
    # The field names of jsonl, csv, parquet and tfds records; None if the user gave
    # none.
    article_field: str = flag(
        "article", "field of the article", metavar="FIELD", is_common=True
    )
    highlights_field: str | None = flag(
        None,
        "field of the reference summary (default: highlights, if there is one); the "
        "items of a list are several references, or with FIELD:lines the lines of one",
        metavar="FIELD[:lines]",
        is_common=True,
    )
    id_field: str | None = flag(
        None,
        "field of the id (default: id, if there is one, else a hash of the text)",
        metavar="FIELD",
        is_common=True,
    )
    split_field: str = flag(
        "",
        "field of the split (default: the name of a folder split=NAME, else chosen by "
        "a hash of the id)",
        metavar="FIELD",
        is_common=True,
    )
    keep_fields: str = flag(
        "",
        "fields that are copied to columns of the result, separated by commas; a type "
        "may follow the name, as in date:timestamp,section; types: "
        + ", ".join(KINDS)
        + ", and other forms of times as in day:date(%d.%m.%Y)",
        metavar="FIELD[:TYPE],...",
        takes_list=True,
    )
    # How the files are written.
    delimiter: str = flag(
        "",
        "delimiter of csv: files, such as ';' or '\\t' (default: , ; tab or |, "
        "whichever fits the header)",
        metavar="SIGN",
    )
    quote: str = flag(
        "",
        "quote character of csv: files; none keeps quotes as text (default: detected)",
        choices=('"', "none"),
    )
    escape: str = flag(
        "",
        "character that escapes a quote in csv: files; none if quotes are doubled "
        "(default: detected)",
        choices=("\\", "none"),
    )
    null: str = flag(
        "\\N", "unquoted cell of csv: files that means no value", metavar="TEXT"
    )
    encoding: str = flag(
        "utf-8", "encoding of jsonl:, csv: and text: files", choices=ENCODINGS
    )
    # Which documents to read.
    split: str = flag(
        "", "read only documents of this split", metavar="NAME", is_common=True
    )
    limit: int = flag(
        0,
        "read only the first N documents; 0 reads all",
        metavar="DOCUMENTS",
        default_text="all",
        least=0,
        zero="reads all",
    )
    sample: int = flag(
        0,
        "read N documents drawn at random from the whole corpus; 0 reads all",
        metavar="DOCUMENTS",
        default_text="all",
        least=0,
        zero="reads all",
    )
    data_dir: str = flag(
        "",
        "folder of prepared TensorFlow Datasets (default: the folder of the library)",
        place=INPUT,
    )
    # The size of a task: small tasks balance better, large tasks make fewer files.
    task_bytes: int = flag(
        16 << 20,
        "approximate bytes that one task reads; each task writes one output file",
        metavar="BYTES",
        default_text="16 MiB",
        least=1,
    )
    # A longer record is seldom a single text, and would take as much memory and time as
    # all other documents together.
    max_record_mb: int = flag(
        8,
        "maximum size of a record in MiB; a larger record becomes a dead letter",
        metavar="MIB",
        least=1,
    )
    # How the article's text is read.
    clean: str = clean_flag()
    language: str | None = flag(
        None,
        "language of every document, as a code of ISO 639, such as de; its rules for "
        "words, sentences and ROUGE apply",
        metavar="CODE",
        default_text="detected in each document",
    )
    # Splits by hash.
    seed: int = setting(
        17,
        "seed of the choice of a split for documents without one, and of the documents "
        "that --sample draws",
    )
    validation_share: float = flag(
        0.05,
        "share of documents without a split that become validation documents",
        metavar="SHARE",
    )
    test_share: float = setting(
        0.05, "share of documents without a split that become test documents"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        # Results record the flag, so it must be UTF-8.
        object.__setattr__(self, "corpus", written_argument(self.corpus))
        schemes = {scheme for scheme, _ in parse_addresses(self.corpus)}
        if self.limit and self.sample:
            raise UsageError(
                "--limit reads the first documents and --sample draws from the whole "
                "corpus; leave one of them out"
            )
        if self.language:
            from precis.model.text.language import check_language

            check_language(self.language)
        if self.clean == "html":  # A missing package shows at the start.
            importlib.import_module("precis.model.text.html")
        shares = self.validation_share, self.test_share
        if min(shares) < 0 or sum(shares) > 1:
            raise UsageError(
                "--validation_share and test_share must be from 0 to 1 and add up to "
                f"at most 1, not {shares[0]:g} and {shares[1]:g}; 0.05 is 5 percent"
            )
        if self.delimiter not in ("", "\\t") and len(self.delimiter) != 1:
            raise UsageError(
                f"--delimiter must be one character, such as ';' or '\\t', not "
                f"{self.delimiter!r}"
            )
        _check_schemes(self, schemes)

    @property
    def fields(self) -> Fields:
        """The names of the fields to read, including defaults."""
        return Fields(
            self.article_field,
            self.highlights_field or "highlights",
            self.id_field or "id",
            self.split_field,
            self.kept_fields,
        ).with_lines()

    def typed_fields(self, kind_of: Callable[[str], str]) -> Fields:
        """The fields to read; kept fields without a type get the type that the corpus
        has for them.
        """
        kept = [
            KeptField(name, kind or kind_of(name)) for name, kind in self.kept_fields
        ]
        return self.fields._replace(kept=tuple(kept))

    @property
    def text_settings(self) -> TextSettings:
        """How documents become articles."""
        return TextSettings(self.clean, self.language)

    @property
    def max_record_bytes(self) -> int:
        """The maximum size of a record in bytes."""
        return self.max_record_mb << 20

    @property
    def kept_fields(self) -> tuple[KeptField, ...]:
        """The fields of `keep_fields`."""
        return parse_kept_fields(self.keep_fields)

    @property
    def required_fields(self) -> tuple[str, ...]:
        """The fields that records must have: the article and those the user named."""
        highlights = self.highlights_field and self.fields.highlights
        names = highlights, self.id_field, self.split_field
        kept = (field.name for field in self.kept_fields)
        return (self.article_field, *filter(None, names), *kept)


@dataclass(frozen=True, kw_only=True)
class FailureOptions(Options):
    """Failures"""

    max_failed_share: float = flag(
        0.01,
        "share of the records that may fail before the job fails with exit code 1",
        metavar="SHARE",
        is_common=True,
        affects=NOTHING,
    )
    max_empty_share: float = flag(
        0.5,
        "share of the articles that may be empty before the job fails with exit code 1",
        metavar="SHARE",
        affects=NOTHING,
    )

    def __post_init__(self) -> None:
        for name in ("max_failed_share", "max_empty_share"):
            share = getattr(self, name)
            if not 0 <= share <= 1:
                raise UsageError(f"--{name} must be a share from 0 to 1, not {share}")


def parse_addresses(corpus: str) -> list[tuple[str, str]]:
    """Splits `--corpus` into its corpora: one, or several with commas between them.

    jsonl:news/*.jsonl,text:old/*   ->   (jsonl, news/*.jsonl), (text, old/*)

    Raises:
      UsageError: the scheme does not exist, or nothing follows it.
    """
    addresses = []
    for part in re.split(rf",(?=(?:{'|'.join(SCHEMES)}):)", corpus):
        scheme, colon, where = part.partition(":")
        if not colon or scheme not in SCHEMES:
            meant = scheme_of(part)
            question = f"did you mean '{meant}:{part}'? " if meant else ""
            raise UsageError(
                f"unknown corpus {part!r}; {question}write SCHEME:WHERE, such as "
                f"'jsonl:news/*.jsonl'; the schemes are {', '.join(SCHEMES)}"
            )
        if not where and not SCHEMES[scheme].where.startswith("["):
            raise UsageError(
                f"{part!r} does not say where the corpus is; "
                f"write {scheme}:WHERE, such as 'jsonl:news/*.jsonl'"
            )
        addresses.append((scheme, where))
    return addresses


def local_size(corpus: str) -> int:
    """The size in bytes of the local files that `--corpus` names: a guess before the
    corpus is listed, of at most a thousand files, also of those that are not read.

    Raises:
      UsageError: as `parse_addresses`.
    """
    patterns = [
        os.path.join(where, "*") if os.path.isdir(where) else where
        for scheme, where in parse_addresses(corpus)
        if SCHEMES[scheme].has_files
    ]
    found = itertools.chain.from_iterable(map(glob.iglob, patterns))
    size = 0
    with contextlib.suppress(OSError):  # Another process has removed a file.
        for name in filter(os.path.isfile, itertools.islice(found, _MOST_FILES)):
            size += os.path.getsize(name)
    return size


def _check_schemes(options: CorpusOptions, schemes: set[str]) -> None:
    """Refuses flags that only apply to other corpora."""
    without_fields = schemes.difference(_WITH_FIELDS)
    names = *options.required_fields[1:], options.article_field != "article"
    is_of_none = schemes == without_fields or (without_fields and options.keep_fields)
    if any(names) and is_of_none:
        raise UsageError(
            f"{'/'.join(sorted(without_fields))}: has no fields; flags such as "
            f"--article_field are for {', '.join(_WITH_FIELDS)}"
        )
    if options.data_dir and "tfds" not in schemes:
        raise UsageError(
            f"--data_dir is only for tfds:, not for {options.corpus}; leave it out"
        )
    has_splits = all(SCHEMES[name].has_splits for name in schemes)
    is_other = options.split not in ("", *_HASH_SPLITS)
    if is_other and not (options.split_field or has_splits):
        raise UsageError(
            f"{options.corpus} has the splits {', '.join(_HASH_SPLITS)}, not "
            f"{options.split!r}; if a field holds other splits, name it with "
            "--split_field"
        )
