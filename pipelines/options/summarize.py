"""The options of `precis summarize`."""

import dataclasses

from precis.model import files
from precis.model.config import AUTO, PRECISIONS, check_choices, flag, required
from precis.model.errors import UsageError
from precis.model.extractive.config import SelectionConfig
from precis.model.quality.fallback import FallbackConfig
from precis.model.quality.flags import QualityConfig
from precis.model.search.config import SearchConfig
from precis.pipelines.corpus.failures import FailureOptions
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.options.output import check_output
from precis.pipelines.options.results import EarlierRunOptions, ResultOptions
from precis.pipelines.options.workers import WorkerOptions

CHUNK_MERGE = "chunk_merge"
EXTRACT_THEN_WRITE = "extract_then_write"
HEAD = "head"
REJECT = "reject"
LONG_DOCUMENTS = (CHUNK_MERGE, EXTRACT_THEN_WRITE, HEAD, REJECT)
WRITE_ARTICLE = "article"
WRITE_SENTENCES = "sentences"


def decode_id(
    decoding: SearchConfig, precision: str, *, batch_invariant: bool = False
) -> str:
    """Names a search in every row it writes and in every graph that was exported with
    it: 16 hexadecimal digits.
    """
    search = {**dataclasses.asdict(decoding), "precision": precision}
    # Left out where they are off: searches keep the names that earlier versions wrote.
    if not decoding.supported:
        del search["supported"]
    if not decoding.common_pieces:
        del search["common_pieces"]
    if batch_invariant:
        search["batch_invariant"] = True
    return files.sha256_json(search)[:16]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SummarizeOptions:
    """Summaries"""

    output: str = required(
        "folder for the summaries, dead letters and manifest",
        metavar="DIR",
        is_common=True,
    )
    bundle: str = flag(
        "",
        "network, the --output of `precis train` or `precis import`; without it only "
        "extractive summaries are written",
        metavar="DIR",
        is_common=True,
    )
    task_prefix: str = flag(
        "",
        "text before each article that says what to write of it; the bundle's own if "
        "it has one",
        metavar="TEXT",
        default_text="the bundle's",
    )
    extractive: str = flag(
        "frequency,lead",
        "extractive methods with commas between them; the first gives "
        "extractive_summary. neural needs --extractive_bundle; oracle, the "
        "sentences closest to the reference, is the upper bound to evaluate the "
        "others with, and first only if it is alone",
        metavar="METHOD,...",
        is_common=True,
        takes_list=True,
    )
    extractive_bundle: str = flag(
        "",
        "network of the method neural, the --output of `precis train-extractor`",
        metavar="DIR",
        is_common=True,
    )
    keyphrase_bundle: str = flag(
        "",
        "classifier of phrases, the --output of `precis train-keyphrases`; "
        "without it there are none",
        metavar="DIR",
    )
    keyphrases: int = flag(10, "keyphrases of a document, at most", metavar="PHRASES")
    window_documents: int = flag(
        512,
        "documents read ahead, so that those of similar length are searched together",
        metavar="DOCUMENTS",
    )
    search_processes: int = flag(
        0,
        "processes that search, one thread each; 1 searches without further processes, "
        "on all threads; "
        "0 is as many as --workers, or 1 where TensorFlow has an accelerator or Beam "
        "has processes of its own",
        metavar="PROCESSES",
        default_text="--workers",
    )
    long_documents: str = flag(
        "chunk_merge",
        "documents that are longer than the network reads: "
        "chunk_merge summarizes passages and merges their summaries, "
        "extract_then_write reads the sentences that the first of --extractive "
        "chooses, head reads the beginning, reject writes a dead letter",
        choices=LONG_DOCUMENTS,
    )
    merged_length: float = flag(
        0.0,
        "about the length of a merged summary, in mean lengths of the summary of one "
        "of its passages; 0 is the square root of their number",
        metavar="SUMMARIES",
        default_text="the square root of the passages",
    )
    write: str = flag(
        WRITE_ARTICLE,
        "what the network writes of: the article, or sentences: each of the "
        "--written_sentences that the extractor finds best, and the best of what it "
        "wrote is put together, however long the article is; for a network of `precis "
        "prepare --target sentences`",
        choices=(WRITE_ARTICLE, WRITE_SENTENCES),
    )
    written_sentences: int = flag(
        6,
        "sentences of an article that --write sentences rewrites, at most",
        metavar="SENTENCES",
    )
    precision: str = flag(
        "float32",
        "number format of the network's layers; others than float32 may change a "
        "summary; auto takes the fastest of those measured on this kind of chip",
        choices=(*PRECISIONS, AUTO),
    )
    batch_invariant: bool = flag(
        False,
        "compute every document alone and on one thread, so that its row is the same "
        "to the last bit whatever other documents, windows and processes there are, on "
        "one kind of processor; slower",
    )

    def __post_init__(self) -> None:
        check_output(self.output)
        check_choices(self)
        for name in ("keyphrases", "window_documents", "written_sentences"):
            if getattr(self, name) < 1:
                raise UsageError(
                    f"--{name} must be at least 1, not {getattr(self, name)}"
                )
        if not (self.merged_length == 0 or self.merged_length > 1):
            raise UsageError(
                f"--merged_length must be above 1, not {self.merged_length:g}; "
                "0 is the square root of the number of passages"
            )
        if self.search_processes < 0:
            raise UsageError(
                "--search_processes must not be negative, but is "
                f"{self.search_processes}; 0 is one per core"
            )

    @property
    def methods(self) -> tuple[str, ...]:
        """The names in `extractive`, in order."""
        return tuple(
            name.strip() for name in self.extractive.split(",") if name.strip()
        )


# Flags that mean nothing where one text is summarized.
NOT_FOR_A_TEXT = ("output", "window_documents", "search_processes")
SUMMARIZE = (
    CorpusOptions,
    SummarizeOptions,
    SelectionConfig,
    QualityConfig,
    FallbackConfig,
    SearchConfig,
    EarlierRunOptions,
    ResultOptions,
    FailureOptions,
    WorkerOptions,
)
