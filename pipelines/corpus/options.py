"""The flags of a corpus, and the syntax `scheme:where` of `--corpus`."""

from dataclasses import dataclass
from typing import NamedTuple

from precis.model.config import check_choices, flag, required
from precis.model.errors import UsageError
from precis.pipelines.corpus.clean import clean_flag
from precis.pipelines.corpus.kept_values import KINDS, KeptField, parse_kept_fields
from precis.pipelines.corpus.names import written_argument
from precis.pipelines.corpus.task import Fields

SCHEMES = ("tfds", "stories", "jsonl", "csv", "parquet", "text", "sample")
_HASH_SPLITS = ("train", "validation", "test")
_SCHEMES_WITH_FIELDS = ("tfds", "jsonl", "csv", "parquet")

# The flags that decide what text of a document is read.
CLEANING_FLAGS = ("clean", "strip_boilerplate")


class Address(NamedTuple):
    """The value of `--corpus`: `jsonl:news/*.jsonl` has the scheme `jsonl`."""

    scheme: str
    where: str


@dataclass(frozen=True, kw_only=True)
class CorpusOptions:
    """Corpus."""

    # Where the documents come from.
    corpus: str = required(
        "the corpus: jsonl:GLOB, csv:GLOB, parquet:GLOB, text:GLOB (one document a "
        "file), stories:DIR (raw CNN/DailyMail), tfds:NAME[:SPLIT] or sample:[COUNT]; "
        "a GLOB may be local, gs:// or s3://",
        metavar="SCHEME:WHERE",
        is_common=True,
    )
    # The field names of jsonl, csv, parquet and tfds records; None if the user gave no
    # name.
    article_field: str = flag(
        "article", "field that holds the text", metavar="FIELD", is_common=True
    )
    highlights_field: str | None = flag(
        None,
        "field that holds the reference summary; highlights where the records have it",
        metavar="FIELD",
        is_common=True,
    )
    id_field: str | None = flag(
        None,
        "field that holds the document's id; "
        "id where the records have it, else the text's hash",
        metavar="FIELD",
        is_common=True,
    )
    split_field: str = flag(
        "",
        "field that holds the split's name; without it the hash of the id decides",
        metavar="FIELD",
        is_common=True,
    )
    keep_fields: str = flag(
        "",
        "fields that travel along with each document as columns of the result, with "
        "commas between them and, where the source's own type will not do, a type, as "
        "in date:timestamp,section; types: " + ", ".join(KINDS),
        metavar="FIELD[:TYPE],...",
        takes_list=True,
    )
    # Which documents to take.
    split: str = flag(
        "",
        "read only documents of this split, such as test",
        metavar="NAME",
        is_common=True,
    )
    limit: int = flag(
        0,
        "take the first documents of the corpus alone, so many; what lies behind them "
        "is not read",
        metavar="DOCUMENTS",
        default_text="all",
        word_for_zero="all",
    )
    sample: int = flag(
        0,
        "take so many documents, drawn from the whole corpus at random",
        metavar="DOCUMENTS",
        default_text="all",
        word_for_zero="all",
    )
    sample_seed: int = flag(17, "decides which documents --sample draws", metavar="N")
    # TensorFlow Datasets.
    data_dir: str = flag(
        "", "folder of prepared TensorFlow Datasets; theirs by default", metavar="DIR"
    )
    stories_dir: str = flag(
        "",
        "for tfds:cnn_dailymail: folder with cnn/stories and dailymail/stories, "
        "to prepare the data set from",
        metavar="DIR",
    )
    urls_dir: str = flag(
        "",
        "for tfds:cnn_dailymail: folder with all_train.txt, all_val.txt and "
        "all_test.txt, to go with --stories_dir",
        metavar="DIR",
    )
    # The size of a task: small tasks balance better, large tasks make fewer files.
    task_bytes: int = flag(
        16 << 20,
        "about how many bytes of the corpus one task reads and turns into one "
        "output file",
        metavar="BYTES",
        default_text="16 MiB",
    )
    # A record that is longer is seldom one text. Its memory and its time would be those
    # of all other documents together.
    max_record_mb: int = flag(
        8,
        "longest record in MiB; a longer one becomes a dead letter",
        metavar="MIB",
    )
    # What counts as the article's text.
    clean: str = clean_flag()
    strip_boilerplate: bool = flag(
        True,
        "leave out agency lines such as (CNN) and By ... PUBLISHED: ...; "
        "--clean none leaves them in too",
    )
    # Splits by hash.
    seed: int = flag(
        17,
        "decides with the document's id which split a document without one falls into",
        metavar="N",
    )
    validation_share: float = flag(
        0.05,
        "share of validation documents in a corpus without splits",
        metavar="SHARE",
    )
    test_share: float = flag(
        0.05, "share of test documents in a corpus without splits", metavar="SHARE"
    )

    def __post_init__(self) -> None:
        check_choices(self)
        # Results record the flag, and they are UTF-8.
        object.__setattr__(self, "corpus", written_argument(self.corpus))
        address = parse_address(self.corpus)
        if self.task_bytes < 1:
            raise UsageError(
                f"--task_bytes must be at least 1, not {self.task_bytes}; "
                "leave it out for 16 MiB"
            )
        if self.max_record_mb < 1:
            raise UsageError(
                f"--max_record_mb must be at least 1, not {self.max_record_mb}; "
                "leave it out for 8"
            )
        _check_selection(self.limit, self.sample)
        _check_shares(self.validation_share, self.test_share)
        _check_fields(self, address.scheme)
        _check_tfds_folders(self, address)
        _check_split(self, address.scheme)

    @property
    def fields(self) -> Fields:
        """The names of the fields to read, with the defaults."""
        return Fields(
            self.article_field,
            self.highlights_field or "highlights",
            self.id_field or "id",
            self.split_field,
            self.kept_fields,
        )

    @property
    def max_record_bytes(self) -> int:
        """The length of the longest record in bytes."""
        return self.max_record_mb << 20

    @property
    def kept_fields(self) -> tuple[KeptField, ...]:
        """The fields of `keep_fields`."""
        return parse_kept_fields(self.keep_fields)

    @property
    def required_fields(self) -> tuple[str, ...]:
        """The fields that records must have: the article's and those the user named."""
        names = (
            self.article_field,
            self.highlights_field,
            self.id_field,
            self.split_field,
            *(field.name for field in self.kept_fields),
        )
        return tuple(name for name in names if name)


def parse_address(corpus: str) -> Address:
    """Divides the value of `--corpus` at its first colon.

    Raises:
      UsageError: there is no such scheme, or nothing follows it.
    """
    scheme, colon, where = corpus.partition(":")
    if not colon or scheme not in SCHEMES:
        raise UsageError(
            f"unknown corpus {corpus!r}; write scheme:where, as in "
            f"'jsonl:news/*.jsonl'; the schemes are {', '.join(SCHEMES)}"
        )
    if not where and scheme != "sample":
        raise UsageError(
            f"{corpus!r} says no place; "
            f"write {scheme}:where, as in 'jsonl:news/*.jsonl'"
        )
    return Address(scheme, where)


def _check_selection(limit: int, sample: int) -> None:
    for name, documents in (("limit", limit), ("sample", sample)):
        if documents < 0:
            raise UsageError(
                f"--{name} must be at least 1, not {documents}; leave it out for all "
                "documents"
            )
    if limit and sample:
        raise UsageError(
            "--limit takes the first documents and --sample some from all over the "
            "corpus; leave one of them out"
        )


def _check_shares(validation_share: float, test_share: float) -> None:
    for name, share in (
        ("validation_share", validation_share),
        ("test_share", test_share),
    ):
        if not 0 <= share <= 1:
            raise UsageError(
                f"--{name} must lie between 0 and 1, not {share}; "
                "0.05 is one document in twenty"
            )
    if validation_share + test_share > 1:
        raise UsageError(
            "--validation_share and --test_share must add up to at most 1, "
            f"not {validation_share + test_share:g}; lower one"
        )


def _check_fields(options: CorpusOptions, scheme: str) -> None:
    any_named = (
        options.article_field != "article"
        or options.highlights_field
        or options.id_field
        or options.split_field
        or options.kept_fields
    )
    if any_named and scheme not in _SCHEMES_WITH_FIELDS:
        raise UsageError(
            f"{scheme}: has no fields to name; --article_field and the like go with "
            f"{', '.join(_SCHEMES_WITH_FIELDS)}"
        )
    if not options.article_field:
        raise UsageError(
            "--article_field is empty; name the field that holds the text, "
            "or leave the flag out for 'article'"
        )


def _check_tfds_folders(options: CorpusOptions, address: Address) -> None:
    if options.data_dir and address.scheme != "tfds":
        raise UsageError(
            f"--data_dir goes with tfds: alone, not with {options.corpus}; leave it out"
        )
    if bool(options.stories_dir) != bool(options.urls_dir):
        raise UsageError(
            "--stories_dir and --urls_dir go together; give both or neither"
        )
    is_cnn_dailymail = address.scheme == "tfds" and address.where.startswith(
        "cnn_dailymail"
    )
    if options.stories_dir and not is_cnn_dailymail:
        raise UsageError(
            f"--stories_dir prepares tfds:cnn_dailymail alone, not {options.corpus}; "
            "stories:DIR reads raw stories as they are"
        )


def _check_split(options: CorpusOptions, scheme: str) -> None:
    names_any_split = scheme == "tfds" or options.split_field
    if options.split and not names_any_split and options.split not in _HASH_SPLITS:
        raise UsageError(
            f"{scheme}: has the splits {', '.join(_HASH_SPLITS)}, "
            f"not {options.split!r}; --split_field names a field that holds others"
        )
