"""The options of `precis summarize`."""

import dataclasses
from typing import Any

from precis.model import files
from precis.model.bundle.address import BUILTIN_SELECTOR, is_batch, is_endpoint
from precis.model.config import (
    BUNDLE,
    ENDPOINTS,
    GROUPS,
    INPUT,
    LOCAL,
    NETWORKS,
    NOTHING,
    OUTPUT,
    PRECISIONS,
    SEARCH,
    Options,
    WriterKind,
    comma_list,
    flag,
    flag_info,
    required,
    setting,
)
from precis.model.errors import UsageError
from precis.model.extractive.config import (
    HEADLINE,
    KEY_POINTS,
    NEURAL,
    SUMMARY,
    SelectionConfig,
)
from precis.model.quality.flags import FallbackConfig
from precis.model.search.config import (
    AUTO,
    CTRANSLATE2,
    TENSORFLOW,
    SearchConfig,
)
from precis.pipelines.corpus.options import CorpusOptions, FailureOptions
from precis.pipelines.run.options import WorkerOptions, normal_path, option_fields
from precis.pipelines.tables.group_field import GroupField, parse_group_field

CHUNK_MERGE = "chunk_merge"
HEAD = "head"
INT8 = "int8"  # --precision with --engine ctranslate2
KEEP, FAIL = "keep", "fail"  # --on_duplicate_id
WRITE_ARTICLE = "article"
WRITE_SENTENCES = "sentences"
# The instruction for each value of --form.
INSTRUCTIONS = {
    SUMMARY: "Summarize the following document in two or three sentences. Use only "
    "facts that it states. Answer with the summary alone.",
    HEADLINE: "Write a headline for the following document. Use only facts that it "
    "states. Answer with the headline alone, on one line.",
    KEY_POINTS: "Write the three to five most important points of the following "
    "document, each a short sentence on a line of its own. Use only facts that it "
    "states. Answer with these lines alone.",
}


def decode_id(decoding: SearchConfig, precision: str, engine: str = TENSORFLOW) -> str:
    """The hash of the search settings, in every row and every exported checkpoint: 16
    hexadecimal digits.
    """
    # Ids must not change: they include three settings that no longer exist, and exclude
    # newer settings where they are off.
    search: dict[str, Any]
    search = {"coverage_penalty": 0.0, "beam_groups": 1, "diversity_penalty": 0.0}
    search |= {**dataclasses.asdict(decoding), "precision": precision}
    if not decoding.supported:
        del search["supported"]
    if not decoding.common_pieces:
        del search["common_pieces"]
    if engine != TENSORFLOW:
        search["engine"] = engine
    return files.sha256_json(search)[:16]


# The writers that read whole articles.
_OF_ARTICLES = tuple(writer for writer in WriterKind if writer != WriterKind.SUMMARIZER)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SummarizeOptions(Options):
    """Summaries"""

    output: str = required(
        "folder for the summaries, dead letters and manifest",
        is_common=True,
        affects=NOTHING,
        place=OUTPUT,
    )
    bundle: str = flag(
        "",
        "writer of abstractive summaries: the --output of `precis train` or `precis "
        "import`; hf://ORG/NAME, a model of the hub; or openai://HOST:PORT/v1#MODEL, "
        "an endpoint, which openai-batch:// asks in batches (default: extractive "
        "summaries only)",
        is_common=True,
        place=BUNDLE,
    )
    task_prefix: str = flag(
        "",
        "text put before each article, which names the task as in training",
        metavar="TEXT",
        default_text="the bundle's",
        writers=NETWORKS,
    )
    instruction: str = flag(
        "",
        "instruction for a language model of --bundle, for each document",
        metavar="TEXT",
        default_text="set by --form",
        writers=(WriterKind.LANGUAGE_MODEL, *ENDPOINTS),
    )
    extractive: str = flag(
        "",
        "extractive methods, separated by commas; the first gives extractive_summary. "
        "neural scores sentences with --extractive_bundle; oracle chooses the "
        "sentences closest to the reference, as an upper bound to evaluate the others, "
        "and must not be the first of several",
        metavar="METHOD,...",
        is_common=True,
        takes_list=True,
        default_text="neural,lead; with --bundle frequency,lead",
    )
    extractive_bundle: str = flag(
        "",
        "selector of the method neural, the --output of `precis train-selector`; "
        "builtin:news-en comes with precis: it is for English news, other documents "
        "get the method lead",
        is_common=True,
        default_text=BUILTIN_SELECTOR,
        place=BUNDLE,
    )
    keyphrase_bundle: str = flag(
        "",
        "classifier of keyphrases, the --output of `precis train-keyphrases` "
        "(default: no keyphrases)",
        place=BUNDLE,
    )
    checker: str = flag(
        "",
        "claim checker, the --output of `precis import`; it gives support_score, how "
        "well the article supports each summary",
        place=BUNDLE,
    )
    keyphrases: int = setting(
        10,
        "maximum number of keyphrases of a document",
        least=1,
        needs="keyphrase_bundle",
    )
    window_documents: int = setting(
        512,
        "documents read ahead, so that those of similar length are searched together",
        affects=NOTHING,
        least=1,
    )
    search_processes: int = setting(
        0,
        "processes that search, with one thread each; 1 searches in the main process "
        "on all threads; 0 is as many as --workers, or 1 if TensorFlow has an "
        "accelerator or Beam starts its own processes",
        affects=NOTHING,
        least=0,
        zero="means one per core",
    )
    long_documents: str = flag(
        "chunk_merge",
        "how to summarize documents that are longer than the network reads: "
        "chunk_merge summarizes passages and merges their summaries, head reads only "
        "the beginning",
        choices=(CHUNK_MERGE, HEAD),
        writers=_OF_ARTICLES,
    )
    merged_length: float = setting(
        0.0,
        "approximate length of a merged summary, divided by the mean length of the "
        "summaries of its passages; 0 is the square root of the number of passages",
        writers=_OF_ARTICLES,
    )
    write: str = setting(
        WRITE_ARTICLE,
        "what the network rewrites: article, or sentences: each of the "
        "written_sentences that the selector scores best, of which the best lines "
        "become the summary. sentences needs a network of `precis prepare --target "
        "sentences`; bundles of `precis train-summarizer` set it",
        choices=(WRITE_ARTICLE, WRITE_SENTENCES),
        writers=NETWORKS,
    )
    written_sentences: int = setting(
        6,
        "maximum number of sentences of an article that write=sentences rewrites",
        least=1,
        writers=(WriterKind.SUMMARIZER,),
    )
    requests: int = flag(
        16,
        "maximum number of parallel requests of each worker process to an endpoint",
        affects=NOTHING,
        least=1,
        writers=(WriterKind.ENDPOINT,),
    )
    request_timeout: float = flag(
        120.0,
        "seconds to wait for an answer of an endpoint",
        metavar="SECONDS",
        affects=NOTHING,
        least=1,
        writers=ENDPOINTS,
    )
    request_json: str = flag(
        "",
        "extra parameters of each request to an endpoint, as JSON",
        metavar="JSON",
        writers=ENDPOINTS,
    )
    context_tokens: int = flag(
        4096,
        "context of the model of an endpoint: tokens that it reads and writes at most",
        least=1,
        writers=ENDPOINTS,
    )
    batch_requests: int = flag(
        50_000,
        "maximum number of requests in a batch, which has at most 200 MB",
        affects=NOTHING,
        least=1,
        writers=(WriterKind.BATCH,),
    )
    submit_only: bool = flag(
        False,
        "end when all requests are submitted; the same command goes on later, on any "
        "machine that has the output",
        affects=NOTHING,
        writers=(WriterKind.BATCH,),
    )
    requests_to: str = flag(
        "",
        "write the files of requests to this folder instead of submitting them",
        affects=NOTHING,
        place=OUTPUT,
        writers=(WriterKind.BATCH,),
    )
    answers_from: str = flag(
        "",
        "take the answers from the files *.jsonl in this folder, which `vllm "
        "run-batch` or another machine made of the files of requests",
        affects=NOTHING,
        place=INPUT,
        writers=(WriterKind.BATCH,),
    )
    precision: str = flag(
        "float32",
        "number format of the network's layers; formats other than float32 may change "
        "a summary. int8 needs --engine ctranslate2, the mixed formats need tensorflow",
        choices=(*PRECISIONS, INT8),
        affects=SEARCH,
    )
    engine: str = flag(
        TENSORFLOW,
        "library that runs the network of --bundle; ctranslate2 is for BART, PEGASUS "
        "and T5 without a pointer, and may find other summaries; auto takes it where "
        "it is installed and finds the same",
        choices=(TENSORFLOW, CTRANSLATE2, AUTO),
        affects=SEARCH,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.merged_length == 0 or self.merged_length > 1):
            raise UsageError(
                f"merged_length must be above 1, not {self.merged_length:g}; "
                "0 is the square root of the number of passages"
            )
        allowed = {TENSORFLOW: PRECISIONS, CTRANSLATE2: (PRECISIONS[0], INT8)}
        if self.precision not in allowed.get(self.engine, PRECISIONS[:1]):
            raise UsageError(
                f"--engine {self.engine} has no --precision {self.precision}; use "
                "float32, or int8 with --engine ctranslate2"
            )

        if self.submit_only and (self.requests_to or self.answers_from):
            raise UsageError(
                "`submit_only=True` submits requests to a server, and `requests_to=` "
                "and `answers_from=` do without; leave one of them out"
            )

    @property
    def is_batch(self) -> bool:
        """Whether a model on a server writes, which is asked in batches."""
        return is_batch(self.bundle)

    @property
    def is_endpoint(self) -> bool:
        """Whether a model on a server writes."""
        return is_endpoint(self.bundle)

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods in `extractive`, in order without duplicates, or the default."""
        if self.extractive:
            return tuple(dict.fromkeys(comma_list(self.extractive)))
        is_neural = self.extractive_bundle or not self.bundle
        return (NEURAL if is_neural else "frequency", "lead")

    @property
    def selector(self) -> str:
        """The bundle of the selector; empty without one."""
        usual = BUILTIN_SELECTOR if NEURAL in self.methods else ""
        return self.extractive_bundle or usual


@dataclasses.dataclass(frozen=True, kw_only=True)
class EarlierRunOptions(Options):
    """Earlier runs"""

    reuse: str = flag(
        "",
        "earlier runs, or folders of runs, whose summaries are reused if text and "
        "settings are the same",
        metavar="RUN,...",
        is_common=True,
        takes_list=True,
        place=INPUT,
    )
    deduplicate: bool = flag(
        False,
        "summarize equal texts once: later documents copy the row of the first, which "
        "duplicate_of names; the corpus is read twice. --reuse implies it",
    )

    @property
    def reused_folders(self) -> tuple[str, ...]:
        """The folders in `reuse`, in order."""
        return tuple(map(normal_path, comma_list(self.reuse)))


@dataclasses.dataclass(frozen=True, kw_only=True)
class ResultOptions(Options):
    """Result"""

    on_duplicate_id: str = flag(
        KEEP,
        "what to do if several documents have the same id: keep them, so that `precis "
        "verify` reports them, or fail before summarizing, for which the corpus is "
        "read twice",
        choices=(KEEP, FAIL),
    )
    partition_by: str = flag(
        "",
        "columns whose values name the folders of the result, outermost first, as in "
        "data/split=test/: split, and fields of --keep_fields that are strings, "
        "integers, dates or booleans",
        metavar="COLUMN,...",
        takes_list=True,
    )
    flat: bool = flag(
        False,
        "write no nested columns: fields of a struct become columns, lists become JSON "
        "text",
    )

    @property
    def partitions(self) -> tuple[str, ...]:
        """The columns in `partition_by`, in order, each once."""
        return tuple(dict.fromkeys(comma_list(self.partition_by)))


BOTH = "both"  # --rows, or GROUPS


@dataclasses.dataclass(frozen=True, kw_only=True)
class GroupOptions(Options):
    """Groups"""

    group_by: str = flag(
        "",
        "also summarize each group of documents that share a value of this field of "
        "the corpus, or of split, language or source_file; day(FIELD), month(FIELD) "
        "and year(FIELD) are for a date or timestamp",
        metavar="FIELD",
        affects=GROUPS,
    )
    rows: str = flag(
        BOTH,
        "with --group_by: write rows of documents and groups, or of groups only, which "
        "no later run can --reuse",
        choices=(BOTH, GROUPS),
        needs="group_by",
    )
    max_group_candidates: int = flag(
        1000,
        "maximum number of sentences that the summary of a group is chosen from; "
        "sentences that most documents have come first, then the best of each document",
        metavar="SENTENCES",
        affects=GROUPS,
        needs="group_by",
        least=1,
    )
    order_by: str = flag(
        "",
        "field of the corpus, a date, timestamp or whole number, that orders the "
        "documents of a group and so its sentences (default: order by the place of a "
        "sentence in its document)",
        metavar="FIELD",
        affects=GROUPS,
        needs="group_by",
    )
    group_task_candidates: int = setting(
        20_000,
        "approximate number of candidates that one task reads",
        needs="group_by",
        least=1,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.group_by and (not self.field.name or "," in self.field.name):
            raise UsageError(
                f"--group_by {self.group_by}: groups have exactly one field; name it, "
                "such as topic or day(created)"
            )

    @property
    def field(self) -> GroupField:
        """The field in `group_by`."""
        return parse_group_field(self.group_by)


STANDARD_INPUT = "-"


@dataclasses.dataclass(frozen=True, kw_only=True)
class OneDocumentOptions(Options):
    """One document"""

    text: str = flag(
        "",
        "summarize one document, plain text in UTF-8, instead of a corpus, and print "
        "the summary; - reads the standard input",
        is_common=True,
        affects=NOTHING,
        place=LOCAL,
    )
    json: bool = flag(
        False,
        "with --text: print all columns as one line of JSON",
        affects=NOTHING,
    )

    def __post_init__(self) -> None:
        if self.json and not self.text:
            raise UsageError(
                "--json prints the columns of one document; name its file, as in "
                "`precis summarize --text article.txt --json`, or - for the standard "
                "input"
            )


# The options of summaries, wherever the documents come from.
SUMMARY_OPTIONS = (SummarizeOptions, SelectionConfig, FallbackConfig, SearchConfig)
# The options that mean nothing for a single text.
NOT_FOR_A_TEXT = tuple(
    field.name
    for field in option_fields(SUMMARY_OPTIONS)
    if flag_info(field).affects == NOTHING and not flag_info(field).writers
)
SUMMARIZE = (
    CorpusOptions,
    *SUMMARY_OPTIONS,
    EarlierRunOptions,
    ResultOptions,
    GroupOptions,
    FailureOptions,
    WorkerOptions,
)
