"""The time that everything around the search takes: `precis summarize` against its
search processes alone, and as a whole command.

    python benchmarks/overhead.py [--documents 2000] [--processes 0] [--network tiny]

prints `name value unit` lines. Both search the same documents of the built-in corpus
with a network of random weights, in windows of the same size and in as many processes.
Both times begin with the first batch that is searched: they include one compilation and
exclude the start of the processes. That of the job ends with the job. The job also
writes the sentences of one extractive method (`lead`). Then the command is run for the
same documents as JSON lines, and its seconds are compared with those of the search that
its manifest counts: the difference is the start of all processes, and their end.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence

from command_runs import run_command

from precis.model.bundle.network_bundle import save_bundle
from precis.model.inference.bulk_summarizer import (
    BulkSummarizer,
    ModelSearch,
    PendingWindow,
)
from precis.model.network.architectures import named_network
from precis.model.processes import count_processes
from precis.model.search.config import SearchConfig
from precis.model.tensorflow_import import import_tensorflow
from precis.model.text.article import Article
from precis.model.tokenization.source import encode_sources
from precis.model.tokenization.vocabulary import count_words, learn
from precis.model.tokenization.wordpiece import Tokenizer
from precis.pipelines.corpus.sample import generator

VOCABULARY_SIZE = 8_000
MAX_SOURCE_TOKENS = 400
MAX_SUMMARY_TOKENS = 32
WINDOW_DOCUMENTS = 512


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs both and prints their times and the ratio."""
    parser = argparse.ArgumentParser(
        description="What `precis summarize` adds to its search."
    )
    parser.add_argument(
        "--documents", type=int, default=2_000, help="documents (default: 2000)"
    )
    parser.add_argument(
        "--processes",
        type=int,
        default=0,
        help="search processes; 0 is one per core (default: 0)",
    )
    parser.add_argument(
        "--network", default="tiny", help="size of the network (default: tiny)"
    )
    parser.add_argument(
        "--commands", type=int, default=3, help="runs of the command (default: 3)"
    )
    flags = parser.parse_args(argv)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import_tensorflow()
    processes = count_processes(flags.processes)
    with tempfile.TemporaryDirectory() as folder:
        search = random_bundle(os.path.join(folder, "bundle"), flags.network)
        output = os.path.join(folder, "out")
        job = job_seconds(search, flags.documents, processes, output)
        alone = search_seconds(search, flags.documents, processes)
        around = [
            around_search(search, flags.documents, processes, folder)
            for _ in range(flags.commands)
        ]
    print(f"processes {processes} count")
    print(f"search_alone {flags.documents / alone:.1f} documents/s")
    print(f"summarize {flags.documents / job:.1f} documents/s")
    print(f"overhead {100 * (job / alone - 1):.1f} %")
    commands, searches = zip(*around, strict=True)
    print(f"command {statistics.median(commands):.1f} s")
    print(f"command.search {statistics.median(searches):.1f} s")
    over = [command - searched for command, searched in around]
    print(f"command.over_search {statistics.median(over):.1f} s")
    print(f"command.over_search.range {min(over):.1f} to {max(over):.1f} s")


def random_bundle(folder: str, network: str) -> ModelSearch:
    """Saves a bundle of random weights with a vocabulary of the built-in corpus, and
    returns the search with it.
    """
    from precis.model.network.build import build_network

    counts = count_words(bodies(2_000))
    tokenizer = Tokenizer(learn(counts, size=VOCABULARY_SIZE))
    config = named_network(
        network,
        vocabulary_size=tokenizer.vocabulary_size,
        pad_id=tokenizer.pad_id,
        max_source_tokens=MAX_SOURCE_TOKENS,
        max_target_tokens=MAX_SUMMARY_TOKENS,
    )
    model_id = save_bundle(
        folder, network=build_network(config), tokenizer=tokenizer, provenance={}
    )
    search = SearchConfig(max_summary_tokens=MAX_SUMMARY_TOKENS)
    return ModelSearch(folder, model_id, "float32", search)


def bodies(documents: int) -> list[str]:
    """The texts of the first documents of the built-in corpus."""
    return [
        Article.from_text(generator.document(index).article).body
        for index in range(documents)
    ]


def job_seconds(
    search: ModelSearch, documents: int, processes: int, output: str
) -> float:
    """Seconds of the job from its first searched batch to its end.

    The first batch is read from `PendingWindow.summaries`, which is replaced meanwhile.
    """
    from precis.model.inference.summarizer import Summary
    from precis.model.isolation import Failure
    from precis.pipelines.summarize.summarize import summarize

    batch_starts: list[float] = []
    original = PendingWindow.summaries

    def summaries(
        self: PendingWindow, on_searched: Callable[[float], None] = lambda part: None
    ) -> list[list[Summary] | Failure]:
        result = original(self, on_searched)
        batch_starts.append(min(batch.started for batch in self.searched))
        return result

    PendingWindow.summaries = summaries  # pyright: ignore[reportAttributeAccessIssue]  # Counts.
    try:
        summarize(
            corpus=f"sample:{documents}",
            bundle=search.bundle,
            output=output,
            extractive="lead",
            search_processes=processes,
            window_documents=WINDOW_DOCUMENTS,
            max_summary_tokens=MAX_SUMMARY_TOKENS,
            task_bytes=1 << 40,
        )
    finally:
        PendingWindow.summaries = original  # pyright: ignore[reportAttributeAccessIssue]  # Counts.
    return time.monotonic() - batch_starts[0]


def search_seconds(search: ModelSearch, documents: int, processes: int) -> float:
    """Seconds of searching the same token ids from the start of the first batch to the
    end of the last, with all batches queued at once.
    """
    bulk = BulkSummarizer(search, processes=processes)
    encoded = encode_sources(
        bulk.source_tokenizer,
        bodies(documents),
        max_source_tokens=bulk.max_source_tokens,
    )
    sources = [source.ids for source in encoded]
    windows = [
        bulk.begin(sources[start : start + WINDOW_DOCUMENTS])
        for start in range(0, documents, WINDOW_DOCUMENTS)
    ]
    bulk.retain()
    for window in windows:
        window.summaries()
    bulk.release()
    batches = [batch for window in windows for batch in window.searched]
    first_start = min(batch.started for batch in batches)
    last_end = max(batch.ended for batch in batches)
    return last_end - first_start


def around_search(
    search: ModelSearch, documents: int, processes: int, folder: str
) -> tuple[float, float]:
    """The seconds of a command, and those from the start of its first searched batch to
    the end of the last.
    """
    corpus = os.path.join(folder, "corpus.jsonl")
    with open(corpus, "w", encoding="utf-8") as file:
        for index in range(documents):
            document = generator.document(index)
            line = {"id": document.document_id, "article": document.article}
            file.write(json.dumps(line) + "\n")
    with tempfile.TemporaryDirectory(dir=folder) as output:
        _, seconds = run_command(
            "summarize",
            *("--corpus", f"jsonl:{corpus}", "--output", output),
            *("--bundle", search.bundle, "--extractive", "lead"),
            *("--workers", str(processes)),
            *("--max_summary_tokens", str(MAX_SUMMARY_TOKENS)),
        )
        with open(os.path.join(output, "manifest.json"), encoding="utf-8") as file:
            searched = json.load(file)["search"]
    return seconds, searched["wall_seconds"]


if __name__ == "__main__":
    main()
