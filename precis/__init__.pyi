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
may be a list. UsageError, DataError and JobError are what the functions raise, and
Unfinished if requests to a server have been submitted or written, but not answered.

What editors and type checkers see is __init__.pyi, which docs/site/stub.py writes.
"""

# docs/site/stub.py writes this file.
# ruff: noqa: E501

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from precis.model.errors import DataError, JobError, Unfinished, UsageError
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
    "Unfinished",
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
    clean: Literal["standard", "html", "none"] = "standard",
    task_prefix: str = "",
) -> AttentionResult:
    """Draws the attention weights of one document.

    Args:
      bundle: network, the --output of `precis train` or `precis import`.
      text: file with one article, plain text in UTF-8.
      output: PNG file for the picture.
      summary: file with a summary whose attention is drawn; without it the network
          writes a summary.
      block: which attention to draw: encoder, of the source to itself; self, of the
          summary to itself; cross, of the summary to the source; copy, the pointer.
      layer: layer, counted from 1 at the bottom; 0 is the last.
      heads: mean draws the mean of all heads, all draws one map per head; copy has only
          one map.
      columns: maximum number of tokens in the columns, those with the most attention; 0
          draws all.
      task_prefix: text before each article that tells the network what to write.
      others: see `precis attention --help all`.

    Raises:
      UsageError: the bundle or the text is missing, or the network does not have the
          block or layer.
      DataError: the bundle is damaged, or the text is not UTF-8.
    """

def digest(run: str | os.PathLike[str]) -> str:
    """A hash of the content of a run, which is the same for equal results, wherever and
    however they were computed.

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
    """Checks the installation, or whether a command can start, before it runs.

    Args:
      command: such as `summarize`; if empty, only the installation is checked.
      flags: the flags of the command, by name.
      beam_args: the flags for Beam itself.

    Returns:
      The findings, each with advice.

    Raises:
      UsageError: the command does not exist, or refuses its flags.
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
      beam_args: the flags for Beam itself.
      input: run folder written by `precis summarize`, or a pattern of Parquet files.
      output: folder for rouge.json, rouge.md and scores/; if empty, RUN-evaluation, and
          for groups its subfolder `groups`.
      baseline: system to compare the others with, by paired bootstrap; if empty, lead
          if the run has it.
      split_sentences: before scoring, put each sentence of a text without line breaks
          on a separate line.
      resamples: bootstrap samples for each interval.
      workers: processes of this machine that share the work; other Beam runners have
          flags of their own for that.
      others: see `precis evaluate --help all`.

    Returns:
      The content of rouge.json.

    Raises:
      UsageError: an invalid flag, an input that is not a finished run or has no
          reference, or an unknown baseline.
    """

def export(
    bundle: str | os.PathLike[str],
    *,
    output: str | os.PathLike[str],
    format: Literal["huggingface", "saved_model"] = "huggingface",
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
    """Writes a bundle as a checkpoint that transformers loads, or as a SavedModel.

    If neither the flags nor the bundle set a search value, a checkpoint has
    transformers' equivalent of the default of `precis summarize`.

    Args:
      bundle: network, the --output of `precis train` or `precis import`.
      output: folder for the result.
      format: huggingface is a checkpoint for transformers; saved_model is for
          TensorFlow Serving, Vertex AI and others that run TensorFlow: texts in,
          summaries out.
      task_prefix: text before each article that tells the network what to write.
      beam_width: hypotheses kept at each step; 1 is greedy search.
      others: see `precis export --help all`.

    Returns:
      The content of manifest.json.

    Raises:
      UsageError: the bundle is missing, the format does not support its network, its
          tokenizer or its search, or the folder holds something else.
      DataError: the bundle is damaged.
    """

def import_checkpoint(
    checkpoint: str | os.PathLike[str],
    *,
    output: str | os.PathLike[str] = "",
    max_source_tokens: int = 0,
) -> str:
    """Turns a checkpoint in the layout of Hugging Face into a bundle.

    The bundle holds a network that writes, or an encoder.

    Args:
      checkpoint: BART, PEGASUS, T5, T5Gemma 2, Llama, Qwen, ModernBERT or BERT-like
          encoder: its name on the Hugging Face hub, such as hf://facebook/bart-large-
          cnn, or a folder in the same layout.
      output: folder for the bundle; if empty, a model of the hub is imported into the
          cache and used by its name.
      max_source_tokens: maximum number of tokens that the network reads of a source; 0
          uses the limit of the checkpoint, which learned positions cannot exceed.

    Returns:
      The model_id of the bundle.

    Raises:
      UsageError: the folder is not a checkpoint, lacks a file, or has an unknown
          architecture.
      DataError: a file is damaged, or has an unsupported tensor or setting.
    """

def load(
    run: str | os.PathLike[str],
    *,
    table_key: str | Sequence[str] = "document_id,source_file,source_position",
    table: str,
    columns: str | Sequence[str] = "",
) -> TableResult:
    """Loads a finished run into a table as a whole; see docs/RESULTS.md.

    Table rows with the same key are replaced; other rows stay. Loading the run again
    changes nothing.

    Args:
      run: finished run, the --output of `precis summarize`.
      table_key: columns that identify a row; rows of the run replace rows of the table
          with the same key.
      table: table to load the run into: iceberg://CATALOG/NAMESPACE.TABLE,
          iceberg+sqlite://FOLDER/NAMESPACE.TABLE, delta://FOLDER, duckdb://FILE/TABLE,
          postgresql://USER@HOST/DATABASE#TABLE or parquet://FILE; it is created if it
          does not exist.
      columns: columns to load, besides those of the key.

    Returns:
      The version of the table, and the number of replaced rows.

    Raises:
      UsageError: the run is not finished or has no rows of documents, the catalogue or
          database cannot be opened, or the table cannot hold the run.
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
    """Writes SQL that loads a finished run; docs/RESULTS.md shows its use.

    Args:
      run: finished run, the --output of `precis summarize`.
      table_key: columns that identify a row; rows of the run replace rows of the table
          with the same key.
      for_: warehouse to write SQL for.
      table: table to load the run into, with its schema, dataset or catalogue, such as
          news.summaries.
      output: folder for create.sql, load.sql, merge.sql and view.sql.
      location: where the warehouse reads the files of the run: gs://, s3://, a stage of
          Snowflake such as @news/summaries, or a path.
      copy_rows: write the rows of the run to this file, in the text format of COPY, for
          PostgreSQL, which cannot read Parquet.

    Returns:
      The content of the files, which are written to `output` if it is given.

    Raises:
      UsageError: the run is not finished or has no rows of documents, the output is in
          it, or a name or type is not possible in the warehouse.
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
    clean: Literal["standard", "html", "none"] = "standard",
    language: str | None = None,
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
      beam_args: the flags for Beam itself.
      corpus: the corpus: jsonl:GLOB, csv:GLOB, parquet:GLOB, arrow:GLOB,
          delta:DIR[@VERSION] (Delta Lake), text:GLOB (one document a file), warc:GLOB
          (web archives), tfds:NAME[:SPLIT] (TensorFlow Datasets), sample:[COUNT] (built
          in); a GLOB may be local, gs://, s3:// or hf://; several corpora are separated
          by commas.
      article_field: field of the article.
      highlights_field: field of the reference summary (default: highlights, if there is
          one); the items of a list are several references, or with FIELD:lines the
          lines of one.
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
      DataError: too many records failed, no record is left to train on, or a tokenizer
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
      output: file for the page, which replaces an earlier one; if empty, RUN-
          report.html.
      documents: maximum number of documents on the page; for a larger run, half of them
          are the worst, and the others are drawn at random.

    Raises:
      UsageError: an invalid flag, or a folder that is not a finished run.
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
    clean: Literal["standard", "html", "none"] = "standard",
    language: str | None = None,
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
    batch_requests: int = 50000,
    submit_only: bool = False,
    requests_to: str | os.PathLike[str] = "",
    answers_from: str | os.PathLike[str] = "",
    precision: Literal[
        "float32", "mixed_bfloat16", "mixed_float16", "int8"
    ] = "float32",
    engine: Literal["tensorflow", "ctranslate2", "auto"] = "tensorflow",
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
      beam_args: the flags for Beam itself.
      corpus: the corpus: jsonl:GLOB, csv:GLOB, parquet:GLOB, arrow:GLOB,
          delta:DIR[@VERSION] (Delta Lake), text:GLOB (one document a file), warc:GLOB
          (web archives), tfds:NAME[:SPLIT] (TensorFlow Datasets), sample:[COUNT] (built
          in); a GLOB may be local, gs://, s3:// or hf://; several corpora are separated
          by commas.
      article_field: field of the article.
      highlights_field: field of the reference summary (default: highlights, if there is
          one); the items of a list are several references, or with FIELD:lines the
          lines of one.
      id_field: field of the id (default: id, if there is one, else a hash of the text).
      split_field: field of the split (default: the name of a folder split=NAME, else
          chosen by a hash of the id).
      split: read only documents of this split.
      output: folder for the summaries, dead letters and manifest.
      bundle: writer of abstractive summaries: the --output of `precis train` or `precis
          import`; hf://ORG/NAME, a model of the hub; or openai://HOST:PORT/v1#MODEL, an
          endpoint, which openai-batch:// asks in batches (default: extractive summaries
          only).
      extractive: extractive methods, separated by commas; the first gives
          extractive_summary. neural scores sentences with --extractive_bundle; oracle
          chooses the sentences closest to the reference, as an upper bound to evaluate
          the others, and must not be the first of several.
      extractive_bundle: selector of the method neural, the --output of `precis train-
          selector`; builtin:news-en comes with precis: it is for English news, other
          documents get the method lead.
      sentences: maximum number of sentences of an extractive summary; 0: 3, but the
          method neural chooses the number, up to 5, that it expects to score best.
      form: what to write: a summary; a headline, one line of at most 15 words, for
          which extractive methods shorten an English sentence; or key_points, up to
          five sentences, one per line; change this with `sentences=`, `max_words=`,
          `max_chars=` or `instruction=`.
      fallback: which text the column `summary` holds: none, the abstractive summary;
          extractive, the extract instead of an abstractive summary with any of
          fallback_flags; always, the extract in every row, so that abstractive
          summaries are only drafts.
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
      Unfinished: requests are submitted or written, and have no answers yet.
    """

def summarize_frame(
    frame: Any,
    text: str,
    *,
    columns: str | Sequence[str] = (),
    clean: str = "standard",
    language: str | None = None,
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
    batch_requests: int = 50000,
    submit_only: bool = False,
    requests_to: str | os.PathLike[str] = "",
    answers_from: str | os.PathLike[str] = "",
    precision: Literal[
        "float32", "mixed_bfloat16", "mixed_float16", "int8"
    ] = "float32",
    engine: Literal["tensorflow", "ctranslate2", "auto"] = "tensorflow",
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
      frame: a frame of pandas or polars, or an Arrow table.
      text: the name of the column with the documents.
      columns: the columns to add beside `summary_failure`, as a list or with commas;
        all if empty.
      clean, language: the values of these flags of `precis summarize`.
      bundle: writer of abstractive summaries: the --output of `precis train` or `precis
          import`; hf://ORG/NAME, a model of the hub; or openai://HOST:PORT/v1#MODEL, an
          endpoint, which openai-batch:// asks in batches (default: extractive summaries
          only).
      extractive: extractive methods, separated by commas; the first gives
          extractive_summary. neural scores sentences with --extractive_bundle; oracle
          chooses the sentences closest to the reference, as an upper bound to evaluate
          the others, and must not be the first of several.
      extractive_bundle: selector of the method neural, the --output of `precis train-
          selector`; builtin:news-en comes with precis: it is for English news, other
          documents get the method lead.
      sentences: maximum number of sentences of an extractive summary; 0: 3, but the
          method neural chooses the number, up to 5, that it expects to score best.
      form: what to write: a summary; a headline, one line of at most 15 words, for
          which extractive methods shorten an English sentence; or key_points, up to
          five sentences, one per line; change this with `sentences=`, `max_words=`,
          `max_chars=` or `instruction=`.
      fallback: which text the column `summary` holds: none, the abstractive summary;
          extractive, the extract instead of an abstractive summary with any of
          fallback_flags; always, the extract in every row, so that abstractive
          summaries are only drafts.
      beam_width: hypotheses kept at each step; 1 is greedy search.
      others: see `precis summarize --help all`.

    Returns:
      A frame of the same kind, with the same rows and columns, the added columns of
      docs/SCHEMA.md, by default all that concern summaries, and `summary_failure`: the
      reason if a row has no summary, else null.

    Raises:
      UsageError: an invalid flag or bundle, a missing column, or a new column that the
          frame already has.
      TypeError: `frame` is not a data frame.
      JobError: all rows fail in the same way.
    """

def summarize_text(
    text: str,
    *,
    clean: str = "standard",
    language: str | None = None,
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
    batch_requests: int = 50000,
    submit_only: bool = False,
    requests_to: str | os.PathLike[str] = "",
    answers_from: str | os.PathLike[str] = "",
    precision: Literal[
        "float32", "mixed_bfloat16", "mixed_float16", "int8"
    ] = "float32",
    engine: Literal["tensorflow", "ctranslate2", "auto"] = "tensorflow",
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

    A bundle is loaded at the first call and kept, so later calls only take the time of
    the search. For many documents, `precis.summarize` is much faster.

    Args:
      text: the document.
      clean, language: the values of these flags of `precis summarize`.
      bundle: writer of abstractive summaries: the --output of `precis train` or `precis
          import`; hf://ORG/NAME, a model of the hub; or openai://HOST:PORT/v1#MODEL, an
          endpoint, which openai-batch:// asks in batches (default: extractive summaries
          only).
      extractive: extractive methods, separated by commas; the first gives
          extractive_summary. neural scores sentences with --extractive_bundle; oracle
          chooses the sentences closest to the reference, as an upper bound to evaluate
          the others, and must not be the first of several.
      extractive_bundle: selector of the method neural, the --output of `precis train-
          selector`; builtin:news-en comes with precis: it is for English news, other
          documents get the method lead.
      sentences: maximum number of sentences of an extractive summary; 0: 3, but the
          method neural chooses the number, up to 5, that it expects to score best.
      form: what to write: a summary; a headline, one line of at most 15 words, for
          which extractive methods shorten an English sentence; or key_points, up to
          five sentences, one per line; change this with `sentences=`, `max_words=`,
          `max_chars=` or `instruction=`.
      fallback: which text the column `summary` holds: none, the abstractive summary;
          extractive, the extract instead of an abstractive summary with any of
          fallback_flags; always, the extract in every row, so that abstractive
          summaries are only drafts.
      beam_width: hypotheses kept at each step; 1 is greedy search.
      others: see `precis summarize --help all`.

    Returns:
      The row that `precis summarize` would write, with a value for each column of
      docs/SCHEMA.md.

    Raises:
      UsageError: an invalid flag or bundle, or a text without words.
      JobError: the summary cannot be made, for example because memory runs out.
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
    """Trains a network that writes summaries and saves it as a bundle; resumes an
    interrupted run with the same flags.

    Args:
      records: folder that `precis prepare` wrote; several, separated by commas, to
          train on several tasks.
      output: folder for the bundle; its subfolder training/ holds checkpoints and logs.
      recipe: set of settings for the flags below, any of which you can still give;
          docs/MODELS.md lists them.
      init_from: bundle whose network is trained further, in its shape.
      encoder: bundle of a trained encoder; the new decoder has a separate vocabulary.
      architecture: kind of the network.
      network: size of the network.
      steps: optimizer steps.
      batch_tokens: source and target tokens per step, padding included, over all
          replicas.
      learning_rate: highest learning rate, reached at the end of the warm-up; 0 sets
          D^-0.5 warmup^-0.5 (Vaswani et al. 2017).
      warmup_steps: steps of linear warm-up, after which the rate falls according to
          `schedule=`.
      epochs: number of passes through the records, with a checkpoint after each; 0
          trains for `steps=` instead.
      precision: number format of the layers; weights stay float32.
      strategy: where to train; auto: a TPU, else all GPUs, else the CPU.
      validation_steps: steps between validations; 0 never validates.
      others: see `precis train --help all`.

    Raises:
      UsageError: invalid flags, or a folder without records.
      DataError: damaged records, or a loss that is not finite.
      Interrupted: on a signal, after the state was saved.
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
    """Trains a network that scores sentences and saves it as a bundle, for the method
    `neural` of `precis summarize`; resumes an interrupted run.

    Args:
      records: folder that `precis prepare --oracle_sentences 5` wrote.
      output: folder for the bundle; its subfolder training/ holds checkpoints and logs.
      encoder: bundle of `precis import` or `precis train` whose encoder reads the
          sentences; without it the selector uses only features.
      epochs: passes through the records.
      learning_rate: highest learning rate, reached after a tenth of the steps.
      dropout: share of values set to zero during training.
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
    """Trains the classifier for the column `keyphrases` and saves it as a bundle.

    Args:
      records: folder that `precis prepare --oracle_sentences 5` wrote.
      output: folder for the bundle; its subfolder training/ holds checkpoints and logs.

    Raises:
      UsageError: invalid flags, or records without oracle labels.
      DataError: damaged records, or records without any candidate phrase.
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
    clean: Literal["standard", "html", "none"] = "standard",
    language: str | None = None,
    seed: int = 17,
    validation_share: float = 0.02,
    test_share: float = 0.05,
    output: str | os.PathLike[str],
    writer_steps: int = 0,
    max_failed_share: float = 0.01,
    max_empty_share: float = 0.5,
    workers: int = 0,
) -> TrainResult:
    """Trains a selector and a writer on a corpus with references and saves them as one
    bundle; resumes an interrupted run with the same flags.

    Args:
      corpus: the corpus: jsonl:GLOB, csv:GLOB, parquet:GLOB, arrow:GLOB,
          delta:DIR[@VERSION] (Delta Lake), text:GLOB (one document a file), warc:GLOB
          (web archives), tfds:NAME[:SPLIT] (TensorFlow Datasets), sample:[COUNT] (built
          in); a GLOB may be local, gs://, s3:// or hf://; several corpora are separated
          by commas.
      article_field: field of the article.
      highlights_field: field of the reference summary (default: highlights, if there is
          one); the items of a list are several references, or with FIELD:lines the
          lines of one.
      id_field: field of the id (default: id, if there is one, else a hash of the text).
      split_field: field of the split (default: the name of a folder split=NAME, else
          chosen by a hash of the id).
      split: read only documents of this split.
      seed: seed of weights, dropout and the order of documents, but not of the splits.
      validation_share: share of validation documents, which choose the best weights, in
          a corpus without splits.
      output: folder for the summarizer; its subfolder training/ holds records,
          checkpoints and logs.
      writer_steps: optimizer steps of the writer, which take most of the time; 0: one
          per ten pairs of a sentence and its line, at most 2,500.
      max_failed_share: share of the records that may fail before the job fails with
          exit code 1.
      workers: processes of this machine that share the work; other Beam runners have
          flags of their own for that.
      others: see `precis train-summarizer --help all`.

    Returns:
      The bundle of the summarizer, with the writer's step and validation.

    Raises:
      UsageError: invalid flags, a corpus without a needed split, or a folder with other
          content.
      DataError: too many records failed, there is nothing to learn from, or a loss is
          not finite.
      Interrupted: on a signal, after the state of the writer was saved.
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
    clean: Literal["standard", "html", "none"] = "standard",
    language: str | None = None,
    seed: int = 17,
    validation_share: float = 0.05,
    test_share: float = 0.05,
) -> Verification:
    """Checks that a run, records or a bundle is complete and undamaged.

    Args:
      folder: folder of a run, records or a bundle: the --output of another command.
      corpus: corpus of the run, to compare every row with its document.
      article_field: field of the article.
      highlights_field: field of the reference summary (default: highlights, if there is
          one); the items of a list are several references, or with FIELD:lines the
          lines of one.
      id_field: field of the id (default: id, if there is one, else a hash of the text).
      split_field: field of the split (default: the name of a folder split=NAME, else
          chosen by a hash of the id).
      split: read only documents of this split.
      others: see `precis verify --help all`.

    Returns:
      The findings, and how much was checked.

    Raises:
      UsageError: an invalid flag, or a folder that is none of the three.
    """
