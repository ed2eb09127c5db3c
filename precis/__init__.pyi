"""The jobs as functions, with the command line's names and flags as keyword arguments.

    import precis

    precis.prepare(corpus="jsonl:news/*.jsonl", output="records")
    precis.train(records="records", output="bundle", network="small")
    precis.summarize(corpus="jsonl:news/*.jsonl", bundle="bundle", output="summaries")
    precis.evaluate(input="summaries")
    assert not precis.verify("summaries").findings

    row = precis.summarize_text("Rain fell on Monday. ...", bundle="bundle")
    news = precis.summarize_frame(news, text="body")  # of pandas, polars or Arrow

`precis.import_checkpoint("bart-large-cnn", output="bundle")` is `precis import`, whose
name Python keeps for itself. A model of the hub has a name in place of a bundle:
bundle="hf://facebook/bart-large-cnn". A value that the command line writes with commas
may be a list. UsageError, DataError and JobError are what the functions raise.

What editors and type checkers see is __init__.pyi, which docs/site/stub.py writes.
"""

# docs/site/stub.py writes this file.
# ruff: noqa: E501

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from precis.model.errors import DataError, JobError, UsageError
from precis.model.records.dataset import DatasetInfo
from precis.model.training.loop import TrainResult
from precis.pipelines.bundles.attention import AttentionResult
from precis.pipelines.doctor.options import Diagnosis
from precis.pipelines.evaluate.evaluation_table import Scores
from precis.pipelines.report.report import ReportResult
from precis.pipelines.summarize.run_output import RunManifest
from precis.pipelines.verify.verify import Verification
from precis.pipelines.warehouse.load import TableResult
from precis.pipelines.warehouse.loaders import LoaderFiles

__all__ = [
    "DataError",
    "JobError",
    "UsageError",
    "__version__",
    "attention",
    "digest",
    "doctor",
    "evaluate",
    "export",
    "import_checkpoint",
    "load",
    "loaders",
    "prepare",
    "report",
    "summarize",
    "summarize_frame",
    "summarize_text",
    "train",
    "train_selector",
    "train_keyphrases",
    "train_summarizer",
    "verify",
]
__version__: str

def attention(
    *,
    bundle: str | os.PathLike[str],
    text: str | os.PathLike[str],
    output: str | os.PathLike[str],
    summary: str | os.PathLike[str] = "",
    block: Literal["encoder", "self", "cross", "copy"] = "cross",
    layer: int = 0,
    heads: Literal["mean", "all"] = "mean",
    columns: int = 60,
    clean: Literal["standard", "none"] = "standard",
    task_prefix: str = "",
) -> AttentionResult:
    """Draws the attention weights of one document.

    Args:
      bundle: network, the --output of `precis train` or `precis import`.
      text: file with one article, plain text in UTF-8.
      output: file for the picture, a PNG.
      summary: file with a summary to read as if it were being written; without it the
          network writes its own.
      block: encoder reads the source, self what was written, cross the source; copy is
          the pointer.
      layer: from 1 at the bottom; 0 is the last.
      heads: mean draws the mean of all heads, all one map a head; copy has one map.
      columns: tokens across, at most: those that are read most; 0 draws all.
      task_prefix: text before each article that says what to write of it; the bundle's
          own if it has one.
      others: see `precis attention --help all`.

    Raises:
      UsageError: no bundle, no text, or a block or layer that the network does not
        have.
      DataError: a damaged bundle, or a text that is not UTF-8.
    """

def digest(run: str | os.PathLike[str]) -> str:
    """A hash of the content of a run: equal for equal results, wherever and however
    they were computed.

    Args:
      run: finished run, the --output of `precis summarize`.

    Returns:
      64 hexadecimal digits.

    Raises:
      UsageError: the folder does not exist.
      DataError: the run is not finished, or a file of it is damaged.
    """

def doctor(
    command: str = "",
    *,
    flags: Mapping[str, Any] | None = None,
    beam_args: Sequence[str] = (),
) -> list[Diagnosis]:
    """Checks the installation, or what a command needs, before anything is spent.

    Args:
      command: such as `summarize`; without one, the installation alone is checked.
      flags: of that command, by name.
      beam_args: flags for Beam itself.

    Returns:
      What was found, with what to do about it.

    Raises:
      UsageError: there is no such command, or it refuses its flags.
    """

def evaluate(
    *,
    beam_args: Sequence[str] = (),
    input: str | os.PathLike[str],
    output: str | os.PathLike[str] = "",
    baseline: str = "",
    group_references: str | os.PathLike[str] = "",
    split_sentences: bool = False,
    resamples: int = 1000,
    workers: int = 0,
) -> Scores:
    """Scores the summaries of a run, writes rouge.json, rouge.md and scores/, and
    prints the table.

    Args:
      beam_args: flags for Beam itself.
      input: run folder written by `precis summarize`, or a pattern of Parquet files.
      output: folder for rouge.json, rouge.md and scores/; if empty, the folder of the
          run with -evaluation behind its name, and of groups `groups` in it.
      baseline: system that the others are compared with by paired bootstrap; if empty,
          lead where it is there.
      split_sentences: cut texts that hold several sentences and no line break into one
          a line before they are scored.
      resamples: bootstrap samples behind each interval.
      workers: processes of this machine that share the work; other Beam runners have
          flags of their own for that.
      others: see `precis evaluate --help all`.

    Returns:
      The content of rouge.json.

    Raises:
      UsageError: a flag, an input that is no finished run, one without a single
          reference, or a baseline that it does not have.
    """

def export(
    bundle: str | os.PathLike[str],
    *,
    output: str | os.PathLike[str],
    task_prefix: str = "",
    beam_width: int = 4,
    n_best: int = 1,
    length_penalty: float = 1.0,
    length_penalty_form: Literal["none", "average", "wu"] = "wu",
    min_summary_tokens: int = 0,
    max_summary_tokens: int = 128,
    no_repeat_ngram: int = 3,
    repetition_penalty: float = 1.0,
    repetition_penalty_form: Literal["log_probs", "logits"] = "log_probs",
    early_stopping: Literal["never", "first_k", "bound"] = "never",
    unfinished: Literal["last", "compete"] = "last",
    supported: str | Sequence[str] = "",
    common_pieces: int = 0,
) -> dict[str, Any]:
    """Writes a bundle as a checkpoint that transformers loads.

    Args:
      bundle: network, the --output of `precis train` or `precis import`.
      output: folder for the result.
      task_prefix: text before each article that says what to write of it; the bundle's
          own if it has one.
      beam_width: hypotheses kept at each step; 1 is greedy search.
      others: see `precis export --help all`.
        the bundle state a search, it is what transformers has in place of the defaults
        of `precis summarize`.

    Returns:
      The content of manifest.json.

    Raises:
      UsageError: no bundle, a network or a search that transformers does not have, or
        a folder that holds something else.
      DataError: a damaged bundle.
    """

def import_checkpoint(
    checkpoint: str | os.PathLike[str],
    *,
    output: str | os.PathLike[str] = "",
    max_source_tokens: int = 0,
) -> str:
    """Turns a checkpoint in the layout of Hugging Face into a bundle.

    The result is the bundle of a network that writes, or of an encoder.

    Args:
      checkpoint: BART, PEGASUS, T5, T5Gemma 2, Llama, Qwen, ModernBERT or BERT-type
          encoder: its name on the Hugging Face hub, as hf://facebook/bart-large-cnn, or
          a folder in that layout.
      output: folder for the bundle; a model of the hub needs none, and is then imported
          into the cache, where its name stands for it.
      max_source_tokens: longest source the network reads; 0 takes the checkpoint's
          limit, and where positions are learned that is the largest.

    Returns:
      The model_id.

    Raises:
      UsageError: the folder is no checkpoint, lacks a file, or has an unknown
          architecture.
      DataError: a file is damaged, a tensor does not fit, or a setting is not
          supported.
    """

def load(
    run: str | os.PathLike[str],
    *,
    table_key: str | Sequence[str] = "document_id,source_file,source_position",
    table: str,
) -> TableResult:
    """Makes a finished run one snapshot of a table; docs/RESULTS.md says how.

    Rows of the table with the same key are replaced, the others stay. A second load of
    the run changes nothing.

    Args:
      run: finished run, the --output of `precis summarize`.
      table_key: columns that tell the rows of the table apart; rows of the table with
          the key of a row of the run are replaced.
      table: table that takes the run: iceberg://CATALOG/NAMESPACE.TABLE,
          iceberg+sqlite://FOLDER/NAMESPACE.TABLE or delta://FOLDER; it is made if it is
          not there.

    Returns:
      The snapshot of the table and what it replaced.

    Raises:
      UsageError: no finished run with rows of documents, no such catalogue, or a table
          that takes no such run.
      DataError: the run is damaged, its key is not unique, or its types do not fit.
      JobError: another writer changed the table at the same time.
    """

def loaders(
    run: str | os.PathLike[str],
    *,
    table_key: str
    | Sequence[
        str
    ] = "document_id,source_file,source_position,model_id,decode_id,schema_version",
    for_: Literal[
        "bigquery", "snowflake", "databricks", "duckdb", "postgresql", "clickhouse"
    ],
    table: str = "summaries",
    output: str | os.PathLike[str] = "",
    location: str | os.PathLike[str] = "",
    copy_rows: str | os.PathLike[str] = "",
) -> LoaderFiles:
    """Writes the SQL that loads a finished run; docs/RESULTS.md says how to use it.

    Args:
      run: finished run, the --output of `precis summarize`.
      table_key: columns that tell the rows of the table apart; rows of the table with
          the key of a row of the run are replaced.
      for_: the warehouse whose SQL is written.
      table: the table that takes the run, with its schema, dataset or catalogue:
          news.summaries.
      output: folder for create.sql, load.sql, merge.sql and view.sql.
      location: where the warehouse sees the files of the run: gs://, s3://, a stage of
          Snowflake as in @news/summaries, a path.
      copy_rows: file that takes the rows of the run in the text format of COPY, for
          PostgreSQL, which reads no Parquet.

    Returns:
      The texts, which are also in the folder `output` if it is given.

    Raises:
      UsageError: no finished run with rows of documents, an output within it, a name
          that the warehouse does not take, or a column whose type it does not have.
      DataError: the run is damaged, or its key is not unique.
    """

def prepare(
    *,
    beam_args: Sequence[str] = (),
    corpus: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    article_field: str = "article",
    highlights_field: str | None = None,
    id_field: str | None = None,
    split_field: str = "",
    keep_fields: str | Sequence[str] = "",
    delimiter: str = "",
    quote: Literal['"', "none", ""] = "",
    escape: Literal["\\", "none", ""] = "",
    null: str = "\\N",
    encoding: Literal["utf-8", "latin-1", "cp1252", "utf-16"] = "utf-8",
    split: str = "",
    limit: int = 0,
    sample: int = 0,
    data_dir: str | os.PathLike[str] = "",
    task_bytes: int = 16777216,
    max_record_mb: int = 8,
    clean: Literal["standard", "none"] = "standard",
    seed: int = 17,
    validation_share: float = 0.05,
    test_share: float = 0.05,
    output: str | os.PathLike[str],
    target: Literal[
        "highlights", "headline", "keyphrases", "sentences", "cuts"
    ] = "highlights",
    task_prefix: str = "",
    tokenizer: str | os.PathLike[str] = "",
    source_tokenizer: str | os.PathLike[str] = "",
    vocabulary_size: int = 16000,
    lower_case: bool = False,
    max_source_tokens: int = 512,
    max_target_tokens: int = 128,
    oracle_sentences: int = 0,
    max_failed_share: float = 0.01,
    max_empty_share: float = 0.5,
    workers: int = 0,
) -> DatasetInfo:
    """Turns a corpus into a vocabulary and TFRecord shards.

    Args:
      beam_args: flags for Beam itself.
      corpus: the corpus: jsonl:GLOB, csv:GLOB, parquet:GLOB, text:GLOB (one document a
          file), tfds:NAME[:SPLIT] (TensorFlow Datasets), sample:[COUNT] (built in); a
          GLOB may be local, gs:// or s3://; several corpora are separated by commas.
      article_field: field of the article.
      highlights_field: field of the reference summary (default: highlights, if there is
          one).
      id_field: field of the id (default: id, if there is one, else a hash of the text).
      split_field: field of the split (default: the name of a folder split=NAME, else
          chosen by a hash of the id).
      split: read only documents of this split.
      output: folder for the records, the vocabulary and dataset.json.
      target: what the network learns to write: highlights; headline, the first of them;
          keyphrases, the phrases that article and highlights share; sentences, each
          highlight from the sentence of the article that says it; cuts, only the
          highlights that shorten their sentence by leaving out words.
      tokenizer: tokenizer to use: the folder of a tokenizer, of records or of a bundle,
          such as an imported network to train further (default: a vocabulary is
          learned).
      vocabulary_size: maximum number of pieces of the learned vocabulary.
      max_source_tokens: cut articles off after this; source_tokens keeps their full
          length.
      max_target_tokens: cut targets off after this.
      oracle_sentences: also write the sentences of each article and mark at most N that
          match the reference best; train-selector and train-keyphrases need them, 5 is
          usual.
      max_failed_share: share of the records that may fail before the job fails with
          exit code 1.
      workers: processes of this machine that share the work; other Beam runners have
          flags of their own for that.
      others: see `precis prepare --help all`.

    Returns:
      The content of dataset.json.

    Raises:
      UsageError: an invalid flag or corpus; nothing was written.
      DataError: too many records failed, there is nothing to train on, or a tokenizer
          is damaged.
      JobError: another process took over the output.
    """

def report(
    run: str | os.PathLike[str],
    *,
    output: str | os.PathLike[str] = "",
    documents: int = 10000,
) -> ReportResult:
    """Writes a page about a run.

    Args:
      run: finished run, the --output of `precis summarize`.
      output: the page; an earlier one is replaced; if empty, the folder of the run with
          -report.html behind its name.
      documents: documents on the page, at most; of a larger run half are the worst, the
          others are drawn at random.

    Raises:
      UsageError: a flag, or a folder that holds no finished run.
      DataError: a file of a run is damaged.
    """

def summarize(
    *,
    beam_args: Sequence[str] = (),
    corpus: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    article_field: str = "article",
    highlights_field: str | None = None,
    id_field: str | None = None,
    split_field: str = "",
    keep_fields: str | Sequence[str] = "",
    delimiter: str = "",
    quote: Literal['"', "none", ""] = "",
    escape: Literal["\\", "none", ""] = "",
    null: str = "\\N",
    encoding: Literal["utf-8", "latin-1", "cp1252", "utf-16"] = "utf-8",
    split: str = "",
    limit: int = 0,
    sample: int = 0,
    data_dir: str | os.PathLike[str] = "",
    task_bytes: int = 16777216,
    max_record_mb: int = 8,
    clean: Literal["standard", "none"] = "standard",
    seed: int = 17,
    validation_share: float = 0.05,
    test_share: float = 0.05,
    output: str | os.PathLike[str],
    bundle: str | os.PathLike[str] = "",
    task_prefix: str = "",
    instruction: str = "",
    extractive: str | Sequence[str] = "",
    extractive_bundle: str | os.PathLike[str] = "",
    keyphrase_bundle: str | os.PathLike[str] = "",
    checker: str | os.PathLike[str] = "",
    keyphrases: int = 10,
    window_documents: int = 512,
    search_processes: int = 0,
    long_documents: Literal["chunk_merge", "head"] = "chunk_merge",
    merged_length: float = 0.0,
    write: Literal["article", "sentences"] = "article",
    written_sentences: int = 6,
    requests: int = 16,
    request_timeout: float = 120.0,
    request_json: str = "",
    context_tokens: int = 4096,
    precision: Literal[
        "float32", "mixed_bfloat16", "mixed_float16", "int8"
    ] = "float32",
    engine: Literal["tensorflow", "ctranslate2"] = "tensorflow",
    sentences: int = 0,
    max_words: int = 0,
    max_chars: int = 0,
    form: Literal["summary", "headline", "key_points"] = "summary",
    fallback: Literal["none", "extractive", "always"] = "none",
    fallback_flags: str
    | Sequence[
        str
    ] = "empty,repeated,unsupported_number,unsupported_date,unsupported_name,lost_attribution,doubtful_line",
    min_mean_log_prob: float = -2.0,
    min_confidence: float = 0.75,
    min_source_words: int = 30,
    beam_width: int = 4,
    n_best: int = 1,
    length_penalty: float = 1.0,
    length_penalty_form: Literal["none", "average", "wu"] = "wu",
    min_summary_tokens: int = 0,
    max_summary_tokens: int = 128,
    no_repeat_ngram: int = 3,
    repetition_penalty: float = 1.0,
    repetition_penalty_form: Literal["log_probs", "logits"] = "log_probs",
    early_stopping: Literal["never", "first_k", "bound"] = "never",
    unfinished: Literal["last", "compete"] = "last",
    supported: str | Sequence[str] = "",
    common_pieces: int = 0,
    reuse: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = "",
    deduplicate: bool = False,
    on_duplicate_id: Literal["keep", "fail"] = "keep",
    partition_by: str | Sequence[str] = "",
    flat: bool = False,
    group_by: str = "",
    rows: Literal["both", "groups"] = "both",
    max_group_candidates: int = 1000,
    order_by: str = "",
    group_task_candidates: int = 20000,
    max_failed_share: float = 0.01,
    max_empty_share: float = 0.5,
    workers: int = 0,
) -> RunManifest:
    """Summarizes every document of a corpus.

    Args:
      beam_args: flags for Beam itself.
      corpus: the corpus: jsonl:GLOB, csv:GLOB, parquet:GLOB, text:GLOB (one document a
          file), tfds:NAME[:SPLIT] (TensorFlow Datasets), sample:[COUNT] (built in); a
          GLOB may be local, gs:// or s3://; several corpora are separated by commas.
      article_field: field of the article.
      highlights_field: field of the reference summary (default: highlights, if there is
          one).
      id_field: field of the id (default: id, if there is one, else a hash of the text).
      split_field: field of the split (default: the name of a folder split=NAME, else
          chosen by a hash of the id).
      split: read only documents of this split.
      output: folder for the summaries, dead letters and manifest.
      bundle: writer of abstractive summaries: the --output of `precis train` or `precis
          import`; hf://ORG/NAME, a model of the hub; or openai://HOST:PORT/v1#MODEL, an
          endpoint (default: extractive summaries only).
      extractive: extractive methods, separated by commas; the first gives
          extractive_summary. neural scores sentences with --extractive_bundle; oracle
          chooses the sentences closest to the reference, as an upper bound to evaluate
          the others, and must not be the first of several.
      extractive_bundle: selector of the method neural, the --output of `precis train-
          selector`; builtin:news-en comes with precis: it is for English news, other
          documents get the method lead.
      sentences: sentences of an extractive summary, at most; 0 is 3, and for the method
          neural as many, up to 5, as it expects the highest ROUGE of.
      form: what is written: a summary; a headline, one line of at most 15 words, which
          extractive methods shorten an English sentence to; or key_points, up to five
          sentences, each a line; `sentences=`, `max_words=`, `max_chars=` and
          `instruction=` change that.
      fallback: what `summary` holds where the abstractive summary has one of
          fallback_flags: none keeps it with its flags, extractive takes the extractive
          one; always: the extractive one everywhere, so that the abstractive ones are
          drafts.
      beam_width: hypotheses kept at each step; 1 is greedy search.
      reuse: earlier runs, or folders of runs, whose summaries are reused if text and
          settings are the same.
      max_failed_share: share of the records that may fail before the job fails with
          exit code 1.
      workers: processes of this machine that share the work; other Beam runners have
          flags of their own for that.
      others: see `precis summarize --help all`.

    Returns:
      The content of manifest.json.

    Raises:
      UsageError: an invalid flag, corpus or bundle; nothing was written.
      DataError: too many records failed.
      JobError: another process took over the output.
    """

def summarize_frame(
    frame: Any,
    text: str,
    *,
    clean: str = "standard",
    bundle: str | os.PathLike[str] = "",
    task_prefix: str = "",
    instruction: str = "",
    extractive: str | Sequence[str] = "",
    extractive_bundle: str | os.PathLike[str] = "",
    keyphrase_bundle: str | os.PathLike[str] = "",
    checker: str | os.PathLike[str] = "",
    keyphrases: int = 10,
    window_documents: int = 512,
    search_processes: int = 0,
    long_documents: Literal["chunk_merge", "head"] = "chunk_merge",
    merged_length: float = 0.0,
    write: Literal["article", "sentences"] = "article",
    written_sentences: int = 6,
    requests: int = 16,
    request_timeout: float = 120.0,
    request_json: str = "",
    context_tokens: int = 4096,
    precision: Literal[
        "float32", "mixed_bfloat16", "mixed_float16", "int8"
    ] = "float32",
    engine: Literal["tensorflow", "ctranslate2"] = "tensorflow",
    sentences: int = 0,
    max_words: int = 0,
    max_chars: int = 0,
    form: Literal["summary", "headline", "key_points"] = "summary",
    fallback: Literal["none", "extractive", "always"] = "none",
    fallback_flags: str
    | Sequence[
        str
    ] = "empty,repeated,unsupported_number,unsupported_date,unsupported_name,lost_attribution,doubtful_line",
    min_mean_log_prob: float = -2.0,
    min_confidence: float = 0.75,
    min_source_words: int = 30,
    beam_width: int = 4,
    n_best: int = 1,
    length_penalty: float = 1.0,
    length_penalty_form: Literal["none", "average", "wu"] = "wu",
    min_summary_tokens: int = 0,
    max_summary_tokens: int = 128,
    no_repeat_ngram: int = 3,
    repetition_penalty: float = 1.0,
    repetition_penalty_form: Literal["log_probs", "logits"] = "log_probs",
    early_stopping: Literal["never", "first_k", "bound"] = "never",
    unfinished: Literal["last", "compete"] = "last",
    supported: str | Sequence[str] = "",
    common_pieces: int = 0,
) -> Any:
    """Summarizes the texts of a data frame.

        news = pandas.read_parquet("news.parquet")
        news = precis.summarize_frame(news, text="body", bundle="hf://org/name")
        print(news[["headline", "summary", "quality_flags"]])

    Args:
      frame: of pandas or polars, or an Arrow table.
      text: the column with the documents.
      clean: as `--clean` of `precis summarize`: standard or none.
      bundle: writer of abstractive summaries: the --output of `precis train` or `precis
          import`; hf://ORG/NAME, a model of the hub; or openai://HOST:PORT/v1#MODEL, an
          endpoint (default: extractive summaries only).
      extractive: extractive methods, separated by commas; the first gives
          extractive_summary. neural scores sentences with --extractive_bundle; oracle
          chooses the sentences closest to the reference, as an upper bound to evaluate
          the others, and must not be the first of several.
      extractive_bundle: selector of the method neural, the --output of `precis train-
          selector`; builtin:news-en comes with precis: it is for English news, other
          documents get the method lead.
      sentences: sentences of an extractive summary, at most; 0 is 3, and for the method
          neural as many, up to 5, as it expects the highest ROUGE of.
      form: what is written: a summary; a headline, one line of at most 15 words, which
          extractive methods shorten an English sentence to; or key_points, up to five
          sentences, each a line; `sentences=`, `max_words=`, `max_chars=` and
          `instruction=` change that.
      fallback: what `summary` holds where the abstractive summary has one of
          fallback_flags: none keeps it with its flags, extractive takes the extractive
          one; always: the extractive one everywhere, so that the abstractive ones are
          drafts.
      beam_width: hypotheses kept at each step; 1 is greedy search.
      others: see `precis summarize --help all`.

    Returns:
      A frame of the same kind, with the same rows and columns, the columns of
      docs/SCHEMA.md that concern summaries, and `summary_failure`: why a row has no
      summary, else null.

    Raises:
      UsageError: an invalid flag or bundle, no such column, or a new column that the
        frame has.
      TypeError: this is no data frame.
      JobError: all rows fail alike.
    """

def summarize_text(
    text: str,
    *,
    clean: str = "standard",
    bundle: str | os.PathLike[str] = "",
    task_prefix: str = "",
    instruction: str = "",
    extractive: str | Sequence[str] = "",
    extractive_bundle: str | os.PathLike[str] = "",
    keyphrase_bundle: str | os.PathLike[str] = "",
    checker: str | os.PathLike[str] = "",
    keyphrases: int = 10,
    long_documents: Literal["chunk_merge", "head"] = "chunk_merge",
    merged_length: float = 0.0,
    write: Literal["article", "sentences"] = "article",
    written_sentences: int = 6,
    requests: int = 16,
    request_timeout: float = 120.0,
    request_json: str = "",
    context_tokens: int = 4096,
    precision: Literal[
        "float32", "mixed_bfloat16", "mixed_float16", "int8"
    ] = "float32",
    engine: Literal["tensorflow", "ctranslate2"] = "tensorflow",
    sentences: int = 0,
    max_words: int = 0,
    max_chars: int = 0,
    form: Literal["summary", "headline", "key_points"] = "summary",
    fallback: Literal["none", "extractive", "always"] = "none",
    fallback_flags: str
    | Sequence[
        str
    ] = "empty,repeated,unsupported_number,unsupported_date,unsupported_name,lost_attribution,doubtful_line",
    min_mean_log_prob: float = -2.0,
    min_confidence: float = 0.75,
    min_source_words: int = 30,
    beam_width: int = 4,
    n_best: int = 1,
    length_penalty: float = 1.0,
    length_penalty_form: Literal["none", "average", "wu"] = "wu",
    min_summary_tokens: int = 0,
    max_summary_tokens: int = 128,
    no_repeat_ngram: int = 3,
    repetition_penalty: float = 1.0,
    repetition_penalty_form: Literal["log_probs", "logits"] = "log_probs",
    early_stopping: Literal["never", "first_k", "bound"] = "never",
    unfinished: Literal["last", "compete"] = "last",
    supported: str | Sequence[str] = "",
    common_pieces: int = 0,
) -> dict[str, Any]:
    """Summarizes one document.

        row = precis.summarize_text(article, bundle="bundle", beam_width=6)
        print(row["summary"], row["quality_flags"])

    A bundle is loaded at the first call and kept, so later calls take only the time of
    the search. For many documents `precis.summarize` is faster by far.

    Args:
      text: the document.
      clean: as `--clean` of `precis summarize`: standard or none.
      bundle: writer of abstractive summaries: the --output of `precis train` or `precis
          import`; hf://ORG/NAME, a model of the hub; or openai://HOST:PORT/v1#MODEL, an
          endpoint (default: extractive summaries only).
      extractive: extractive methods, separated by commas; the first gives
          extractive_summary. neural scores sentences with --extractive_bundle; oracle
          chooses the sentences closest to the reference, as an upper bound to evaluate
          the others, and must not be the first of several.
      extractive_bundle: selector of the method neural, the --output of `precis train-
          selector`; builtin:news-en comes with precis: it is for English news, other
          documents get the method lead.
      sentences: sentences of an extractive summary, at most; 0 is 3, and for the method
          neural as many, up to 5, as it expects the highest ROUGE of.
      form: what is written: a summary; a headline, one line of at most 15 words, which
          extractive methods shorten an English sentence to; or key_points, up to five
          sentences, each a line; `sentences=`, `max_words=`, `max_chars=` and
          `instruction=` change that.
      fallback: what `summary` holds where the abstractive summary has one of
          fallback_flags: none keeps it with its flags, extractive takes the extractive
          one; always: the extractive one everywhere, so that the abstractive ones are
          drafts.
      beam_width: hypotheses kept at each step; 1 is greedy search.
      others: see `precis summarize --help all`.

    Returns:
      The row that `precis summarize` would write, a value for each column of
      docs/SCHEMA.md.

    Raises:
      UsageError: an invalid flag or bundle, or a text without words.
      JobError: the summary cannot be made, as where memory runs out.
    """

def train(
    *,
    records: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    recipe: Literal["bert_transformer", "fine_tune", ""] = "",
    init_from: str | os.PathLike[str] = "",
    encoder: str | os.PathLike[str] = "",
    word_vectors: str | os.PathLike[str] = "",
    architecture: Literal["transformer", "decoder_only", "recurrent"] = "transformer",
    network: Literal["tiny", "four_layers", "small", "six_layers", "base"] = "small",
    layout: Literal["vaswani", "bart", "pegasus", "t5"] = "vaswani",
    width: int = 0,
    heads: int = 0,
    feed_forward: int = 0,
    encoder_layers: int = 0,
    decoder_layers: int = 0,
    layers: int = 0,
    convolutional_gate: bool = False,
    pointer: bool = True,
    tied_output: bool = True,
    dropout: float = 0.1,
    max_source_tokens: int = 0,
    max_target_tokens: int = 0,
    steps: int = 10000,
    batch_tokens: int = 8192,
    accumulate: int = 1,
    learning_rate: float = 0.0,
    warmup_steps: int = 4000,
    schedule: Literal["inverse_sqrt", "linear"] = "inverse_sqrt",
    epochs: int = 0,
    freeze_encoder: bool = False,
    label_smoothing: float = 0.1,
    clip_norm: float = 1.0,
    precision: Literal["float32", "mixed_bfloat16", "mixed_float16"] = "float32",
    strategy: Literal["auto", "one", "mirrored", "tpu"] = "auto",
    seed: int = 17,
    checkpoint_steps: int = 500,
    keep_checkpoints: int = 3,
    patience: int = 0,
    validation_steps: int = 1000,
    validation_documents: int = 200,
) -> TrainResult:
    """Trains a network that writes summaries and saves it as a bundle; goes on where an
    interrupted run of the same flags stopped.

    Args:
      records: folder that `precis prepare` wrote; to train on several tasks, some with
          commas between them.
      output: folder for the bundle, and for checkpoints and logs in training/ below it.
      recipe: named settings, of which any flag given beside it replaces one;
          docs/MODELS.md has a table.
      init_from: bundle whose network is trained further; it brings the shape.
      encoder: bundle of a trained encoder, below a new decoder with a vocabulary of its
          own.
      architecture: kind of the network.
      network: size of the network.
      steps: optimizer steps.
      batch_tokens: padded source and target tokens of one step, over all replicas.
      learning_rate: the highest learning rate, reached at the end of the warm-up; 0
          takes D^-0.5 warmup^-0.5 (Vaswani et al. 2017).
      warmup_steps: steps of linear warm-up; after them the rate falls by `schedule=`.
      epochs: passes through the records, instead of a number of steps, each with a
          checkpoint at its end; 0 counts steps.
      precision: number format of the layers; weights stay float32.
      strategy: where to train: auto takes a TPU, else all GPUs, else this processor.
      validation_steps: steps between validations; 0 never validates.
      others: see `precis train --help all`.

    Raises:
      UsageError: invalid flags, or a folder without records.
      DataError: damaged records, or a loss that is not finite.
      Interrupted: at a signal, after the state was saved.
    """

def train_selector(
    *,
    records: str | os.PathLike[str],
    output: str | os.PathLike[str],
    encoder: str | os.PathLike[str] = "",
    vector_precision: Literal[
        "float32", "mixed_bfloat16", "mixed_float16"
    ] = "mixed_bfloat16",
    epochs: int = 6,
    window_sentences: int = 48,
    batch_documents: int = 64,
    learning_rate: float = 0.002,
    dropout: float = 0.1,
    shuffled_share: float = 0.0,
    importance_articles: int = 16000,
    seed: int = 17,
) -> TrainResult:
    """Trains a network that picks sentences and saves it as a bundle, for the method
    `neural` of `precis summarize`; goes on where an interrupted run stopped.

    Args:
      records: folder that `precis prepare --oracle_sentences 5` wrote.
      output: folder for the bundle, and for checkpoints and logs in training/ below it.
      encoder: bundle whose encoder reads the sentences, of `precis import` or `precis
          train`; without one features alone decide.
      epochs: passes through the records.
      learning_rate: the highest learning rate, reached after a tenth of the steps.
      dropout: share of values set to zero while training.
      seed: seed of weights, dropout and the order of documents.
      others: see `precis train-selector --help all`.

    Raises:
      UsageError: invalid flags, or records without oracle labels or without the
          split `validation`.
      DataError: damaged records, or a loss that is not finite.
    """

def train_keyphrases(
    *, records: str | os.PathLike[str], output: str | os.PathLike[str]
) -> TrainResult:
    """Trains the classifier behind the column `keyphrases` and saves it as a bundle.

    Args:
      records: folder that `precis prepare --oracle_sentences 5` wrote.
      output: folder for the bundle, and for checkpoints and logs in training/ below it.

    Raises:
      UsageError: invalid flags, or records without oracle labels.
      DataError: damaged records, or records without a candidate to learn from.
    """

def train_summarizer(
    *,
    corpus: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    article_field: str = "article",
    highlights_field: str | None = None,
    id_field: str | None = None,
    split_field: str = "",
    keep_fields: str | Sequence[str] = "",
    delimiter: str = "",
    quote: Literal['"', "none", ""] = "",
    escape: Literal["\\", "none", ""] = "",
    null: str = "\\N",
    encoding: Literal["utf-8", "latin-1", "cp1252", "utf-16"] = "utf-8",
    split: str = "",
    limit: int = 0,
    sample: int = 0,
    data_dir: str | os.PathLike[str] = "",
    task_bytes: int = 16777216,
    max_record_mb: int = 8,
    clean: Literal["standard", "none"] = "standard",
    seed: int = 17,
    validation_share: float = 0.02,
    test_share: float = 0.05,
    output: str | os.PathLike[str],
    writer_steps: int = 0,
    max_failed_share: float = 0.01,
    max_empty_share: float = 0.5,
    workers: int = 0,
) -> TrainResult:
    """Trains a selector and a writer on a corpus with references and saves them as
    one bundle; goes on where an interrupted run of the same flags stopped.

    Args:
      corpus: the corpus: jsonl:GLOB, csv:GLOB, parquet:GLOB, text:GLOB (one document a
          file), tfds:NAME[:SPLIT] (TensorFlow Datasets), sample:[COUNT] (built in); a
          GLOB may be local, gs:// or s3://; several corpora are separated by commas.
      article_field: field of the article.
      highlights_field: field of the reference summary (default: highlights, if there is
          one).
      id_field: field of the id (default: id, if there is one, else a hash of the text).
      split_field: field of the split (default: the name of a folder split=NAME, else
          chosen by a hash of the id).
      split: read only documents of this split.
      seed: seed of weights, dropout and the order of documents; it changes no split.
      validation_share: share of validation documents in a corpus without splits; they
          choose the best weights.
      output: folder for the summarizer; records, checkpoints and logs go to training/
          below it.
      writer_steps: optimizer steps of the network that shortens sentences, which take
          most of the time; 0 is one for ten pairs of a sentence and its line, at most
          2,500.
      max_failed_share: share of the records that may fail before the job fails with
          exit code 1.
      workers: processes of this machine that share the work; other Beam runners have
          flags of their own for that.
      others: see `precis train-summarizer --help all`.
        `pipelines.training.options.TRAIN_SUMMARIZER`.

    Returns:
      The bundle of the summarizer, with the step and the validation of its writer.

    Raises:
      UsageError: invalid flags, a corpus without a split that is needed, or a folder
          with something else.
      DataError: too many records failed, there is nothing to learn from, or a loss is
          not finite.
      Interrupted: at a signal, after the state of the writer was saved.
    """

def verify(
    folder: str | os.PathLike[str],
    *,
    corpus: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = "",
    article_field: str = "article",
    highlights_field: str | None = None,
    id_field: str | None = None,
    split_field: str = "",
    keep_fields: str | Sequence[str] = "",
    delimiter: str = "",
    quote: Literal['"', "none", ""] = "",
    escape: Literal["\\", "none", ""] = "",
    null: str = "\\N",
    encoding: Literal["utf-8", "latin-1", "cp1252", "utf-16"] = "utf-8",
    split: str = "",
    limit: int = 0,
    sample: int = 0,
    data_dir: str | os.PathLike[str] = "",
    task_bytes: int = 16777216,
    max_record_mb: int = 8,
    clean: Literal["standard", "none"] = "standard",
    seed: int = 17,
    validation_share: float = 0.05,
    test_share: float = 0.05,
) -> Verification:
    """Checks that a run, records or a bundle are complete and as they were written.

    Args:
      folder: run, records or bundle: the --output of another command.
      corpus: the corpus that the run was made of, to compare every row with its
          document.
      article_field: field of the article.
      highlights_field: field of the reference summary (default: highlights, if there is
          one).
      id_field: field of the id (default: id, if there is one, else a hash of the text).
      split_field: field of the split (default: the name of a folder split=NAME, else
          chosen by a hash of the id).
      split: read only documents of this split.
      others: see `precis verify --help all`.

    Returns:
      What is wrong with it, and how much was checked.

    Raises:
      UsageError: an invalid flag, or a folder that is none of the three.
    """
