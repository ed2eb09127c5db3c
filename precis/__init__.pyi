"""Made by `python -m precis.pipelines.command_line.signatures`."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from precis.model.records.dataset import DatasetInfo
from precis.model.training.export import TrainResult
from precis.pipelines.doctor.findings import Diagnosis
from precis.pipelines.loaders.loaders import LoaderFiles
from precis.pipelines.report.report import ReportResult
from precis.pipelines.verification.verify import Verification
from precis.pipelines.warehouse.table_result import TableResult

__version__: str

def attention(
    *,
    bundle: str | os.PathLike[str],
    text: str | os.PathLike[str],
    output: str | os.PathLike[str],
    summary: str | os.PathLike[str] = "",
    block: str = "cross",
    layer: int = 0,
    heads: str | Sequence[Any] = "mean",
    pieces: bool = False,
    columns: int = 60,
    clean: str = "standard",
    strip_boilerplate: bool = True,
    task_prefix: str = "",
    beam_width: int = 4,
    n_best: int = 1,
    length_penalty: float = 1.0,
    length_penalty_form: str = "wu",
    coverage_penalty: float = 0.0,
    min_summary_tokens: int = 0,
    max_summary_tokens: int = 128,
    no_repeat_ngram: int = 3,
    repetition_penalty: float = 1.0,
    repetition_penalty_form: str = "log_probs",
    early_stopping: str = "never",
    unfinished: str = "last",
    supported: str | Sequence[Any] = "",
    common_pieces: int = 0,
    beam_groups: int = 1,
    diversity_penalty: float = 0.0,
) -> str:
    """Draws the attention weights of one document."""

def card(
    *,
    bundle: str | os.PathLike[str],
    evaluation: str | os.PathLike[str] = "",
    license: str = "",
    language: str = "",
    output: str | os.PathLike[str] = "",
) -> str:
    """The model card of a bundle; with `output` also writes it there."""

def digest(
    *,
    run: str | os.PathLike[str],
) -> str:
    """A hash of the content of a run: equal for equal results, wherever and however
    they were computed."""

def doctor(
    *,
    command: str = "",
    flags: Mapping[str, Any] | None = None,
    beam_args: Sequence[str] = (),
) -> list[Diagnosis]:
    """Checks the installation, or what a command needs, before anything is spent."""

def evaluate(
    *,
    beam_args: Sequence[str] = (),
    input: str | os.PathLike[str],
    output: str | os.PathLike[str] = "",
    baseline: str = "",
    split_sentences: bool = False,
    show: int = 0,
    show_seed: int = 17,
    resamples: int = 1000,
    confidence: float = 0.95,
    workers: int = 0,
) -> dict[str, Any]:
    """Scores the summaries of a run, writes rouge.json, rouge.md and scores/, and
    prints the table."""

def export(
    *,
    bundle: str | os.PathLike[str],
    output: str | os.PathLike[str],
    format: str = "saved_model",
    clean: str = "standard",
    strip_boilerplate: bool = True,
    task_prefix: str = "",
    precision: str = "float32",
    beam_width: int = 4,
    n_best: int = 1,
    length_penalty: float = 1.0,
    length_penalty_form: str = "wu",
    coverage_penalty: float = 0.0,
    min_summary_tokens: int = 0,
    max_summary_tokens: int = 128,
    no_repeat_ngram: int = 3,
    repetition_penalty: float = 1.0,
    repetition_penalty_form: str = "log_probs",
    early_stopping: str = "never",
    unfinished: str = "last",
    supported: str | Sequence[Any] = "",
    common_pieces: int = 0,
    beam_groups: int = 1,
    diversity_penalty: float = 0.0,
) -> dict[str, Any]:
    """Writes a bundle as a SavedModel that runs without precis, or as a checkpoint that
    transformers loads."""

def import_checkpoint(
    *,
    checkpoint: str | os.PathLike[str],
    output: str | os.PathLike[str],
    max_source_tokens: int = 0,
) -> str:
    """Turns a checkpoint in the layout of Hugging Face, or a preset, into a bundle."""

def load(
    *,
    run: str | os.PathLike[str],
    table: str,
    table_key: str | Sequence[Any] = "document_id,document_id_repeat",
) -> TableResult:
    """Loads a finished run into a table, once; docs/WAREHOUSE.md says how."""

def loaders(
    *,
    run: str | os.PathLike[str],
    for_: str,
    table: str = "summaries",
    output: str | os.PathLike[str] = "",
    location: str | os.PathLike[str] = "",
    copy_rows: str | os.PathLike[str] = "",
    table_key: str | Sequence[Any] = ...,
) -> LoaderFiles:
    """Writes the SQL that loads a finished run; docs/LOADERS.md says how to use it."""

def prepare(
    *,
    beam_args: Sequence[str] = (),
    corpus: str,
    article_field: str = "article",
    highlights_field: str | None = None,
    id_field: str | None = None,
    split_field: str = "",
    keep_fields: str | Sequence[Any] = "",
    split: str = "",
    limit: int = 0,
    sample: int = 0,
    sample_seed: int = 17,
    data_dir: str | os.PathLike[str] = "",
    stories_dir: str | os.PathLike[str] = "",
    urls_dir: str | os.PathLike[str] = "",
    task_bytes: int = 16777216,
    max_record_mb: int = 8,
    clean: str = "standard",
    strip_boilerplate: bool = True,
    redact: str | Sequence[Any] = "",
    seed: int = 17,
    validation_share: float = 0.05,
    test_share: float = 0.05,
    output: str | os.PathLike[str],
    target: str = "highlights",
    min_support: float = 0.6,
    task_prefix: str = "",
    tokenizer: str | os.PathLike[str] = "",
    source_tokenizer: str | os.PathLike[str] = "",
    vocabulary_size: int = 16000,
    lower_case: bool = False,
    reserved_tokens: str | Sequence[Any] = "",
    max_source_tokens: int = 512,
    max_target_tokens: int = 128,
    extractive: str = "",
    extractive_bundle: str | os.PathLike[str] = "",
    oracle_sentences: int = 0,
    max_failed_share: float = 0.01,
    max_empty_share: float = 0.5,
    workers: int = 0,
) -> DatasetInfo:
    """Turns a corpus into a vocabulary and TFRecord shards."""

def report(
    *,
    run: str | os.PathLike[str],
    output: str | os.PathLike[str] = "",
    evaluation: str | os.PathLike[str] = "",
    compare: str | os.PathLike[str] = "",
    documents: int = 10000,
    max_page_mb: int = 19,
    attention_documents: int = 3,
) -> ReportResult:
    """Writes a page about a run."""

def run(
    *,
    job: str | os.PathLike[str],
    vars: str | Sequence[Any] = "",
    from_step: str = "",
    only_step: str = "",
    dry_run: bool = False,
) -> dict[str, str]:
    """Runs the steps of a job file, each as a process; leaves out what is finished."""

def summarize(
    *,
    beam_args: Sequence[str] = (),
    corpus: str,
    article_field: str = "article",
    highlights_field: str | None = None,
    id_field: str | None = None,
    split_field: str = "",
    keep_fields: str | Sequence[Any] = "",
    split: str = "",
    limit: int = 0,
    sample: int = 0,
    sample_seed: int = 17,
    data_dir: str | os.PathLike[str] = "",
    stories_dir: str | os.PathLike[str] = "",
    urls_dir: str | os.PathLike[str] = "",
    task_bytes: int = 16777216,
    max_record_mb: int = 8,
    clean: str = "standard",
    strip_boilerplate: bool = True,
    redact: str | Sequence[Any] = "",
    seed: int = 17,
    validation_share: float = 0.05,
    test_share: float = 0.05,
    output: str | os.PathLike[str],
    bundle: str | os.PathLike[str] = "",
    task_prefix: str = "",
    extractive: str | Sequence[Any] = "frequency,lead",
    extractive_bundle: str | os.PathLike[str] = "",
    keyphrase_bundle: str | os.PathLike[str] = "",
    keyphrases: int = 10,
    window_documents: int = 512,
    search_processes: int = 0,
    long_documents: str = "chunk_merge",
    merged_length: float = 0.0,
    write: str = "article",
    written_sentences: int = 6,
    precision: str = "float32",
    batch_invariant: bool = False,
    sentences: int = 0,
    max_words: int = 0,
    redundancy: str = "trigrams",
    mmr_lambda: float = 0.7,
    min_summary_words: int = 3,
    max_repetition_rate: float = 0.1,
    min_mean_log_prob: float = -2.0,
    fallback: str = "none",
    fallback_flags: str | Sequence[Any] = ...,
    min_source_words: int = 30,
    beam_width: int = 4,
    n_best: int = 1,
    length_penalty: float = 1.0,
    length_penalty_form: str = "wu",
    coverage_penalty: float = 0.0,
    min_summary_tokens: int = 0,
    max_summary_tokens: int = 128,
    no_repeat_ngram: int = 3,
    repetition_penalty: float = 1.0,
    repetition_penalty_form: str = "log_probs",
    early_stopping: str = "never",
    unfinished: str = "last",
    supported: str | Sequence[Any] = "",
    common_pieces: int = 0,
    beam_groups: int = 1,
    diversity_penalty: float = 0.0,
    reuse: str | Sequence[Any] = "",
    retry_failures: str = "",
    on_duplicate_id: str = "keep",
    target_file_mb: int = 256,
    row_group_mb: int = 64,
    partition_by: str | Sequence[Any] = "",
    flat: bool = False,
    table: str = "",
    max_failed_share: float = 0.01,
    max_empty_share: float = 0.5,
    workers: int = 0,
) -> dict[str, Any]:
    """Summarizes every document of a corpus."""

def summarize_text(
    text: str,
    *,
    clean: str = "standard",
    strip_boilerplate: bool = True,
    bundle: str | os.PathLike[str] = "",
    task_prefix: str = "",
    extractive: str | Sequence[Any] = "frequency,lead",
    extractive_bundle: str | os.PathLike[str] = "",
    keyphrase_bundle: str | os.PathLike[str] = "",
    keyphrases: int = 10,
    long_documents: str = "chunk_merge",
    merged_length: float = 0.0,
    write: str = "article",
    written_sentences: int = 6,
    precision: str = "float32",
    batch_invariant: bool = False,
    sentences: int = 0,
    max_words: int = 0,
    redundancy: str = "trigrams",
    mmr_lambda: float = 0.7,
    min_summary_words: int = 3,
    max_repetition_rate: float = 0.1,
    min_mean_log_prob: float = -2.0,
    fallback: str = "none",
    fallback_flags: str | Sequence[Any] = ...,
    min_source_words: int = 30,
    beam_width: int = 4,
    n_best: int = 1,
    length_penalty: float = 1.0,
    length_penalty_form: str = "wu",
    coverage_penalty: float = 0.0,
    min_summary_tokens: int = 0,
    max_summary_tokens: int = 128,
    no_repeat_ngram: int = 3,
    repetition_penalty: float = 1.0,
    repetition_penalty_form: str = "log_probs",
    early_stopping: str = "never",
    unfinished: str = "last",
    supported: str | Sequence[Any] = "",
    common_pieces: int = 0,
    beam_groups: int = 1,
    diversity_penalty: float = 0.0,
    reuse: str | Sequence[Any] = "",
    retry_failures: str = "",
    on_duplicate_id: str = "keep",
    target_file_mb: int = 256,
    row_group_mb: int = 64,
    partition_by: str | Sequence[Any] = "",
    flat: bool = False,
    table: str = "",
    workers: int = 0,
) -> dict[str, Any]:
    """Summarizes one document."""

def train(
    *,
    records: str | os.PathLike[str] | Sequence[Any],
    output: str | os.PathLike[str],
    recipe: str = "",
    mixture: str | Sequence[Any] = "",
    init_from: str | os.PathLike[str] = "",
    encoder: str | os.PathLike[str] = "",
    word_vectors: str | os.PathLike[str] = "",
    architecture: str = "transformer",
    network: str = "small",
    layout: str = "vaswani",
    width: int = 0,
    heads: int = 0,
    feed_forward: int = 0,
    encoder_layers: int = 0,
    decoder_layers: int = 0,
    layers: int = 0,
    cell: str = "",
    attention: str = "",
    input_feeding: bool = True,
    convolutional_gate: bool = False,
    pointer: bool = True,
    coverage: bool = False,
    tied_output: bool = True,
    dropout: float = 0.1,
    max_source_tokens: int = 0,
    max_target_tokens: int = 0,
    steps: int = 10000,
    batch_tokens: int = 8192,
    accumulate: int = 1,
    learning_rate: float = 0.0,
    warmup_steps: int = 4000,
    schedule: str = "inverse_sqrt",
    epochs: int = 0,
    encoder_learning_rate: float = 0.0,
    encoder_warmup_steps: int = 0,
    freeze_encoder: bool = False,
    coverage_weight: float = 1.0,
    label_smoothing: float = 0.1,
    clip_norm: float = 1.0,
    precision: str = "float32",
    strategy: str = "auto",
    steps_per_loop: int = 1,
    seed: int = 17,
    shuffle_documents: int = 10000,
    checkpoint_steps: int = 500,
    keep_checkpoints: int = 3,
    average_checkpoints: int = 0,
    patience: int = 0,
    validation_steps: int = 1000,
    validation_documents: int = 200,
    validation_beam_width: int = 1,
) -> TrainResult:
    """Trains a network that writes summaries and saves it as a bundle; goes on where an
    interrupted run of the same flags stopped."""

def train_extractor(
    *,
    records: str | os.PathLike[str],
    output: str | os.PathLike[str],
    encoder: str | os.PathLike[str] = "",
    vector_precision: str = "mixed_bfloat16",
    epochs: int = 6,
    window_sentences: int = 48,
    batch_documents: int = 64,
    learning_rate: float = 0.002,
    dropout: float = 0.1,
    importance_articles: int = 16000,
    seed: int = 17,
) -> TrainResult:
    """Trains a network that picks sentences and saves it as a bundle, for the method
    `neural` of `precis summarize`; goes on where an interrupted run stopped."""

def train_keyphrases(
    *,
    records: str | os.PathLike[str],
    output: str | os.PathLike[str],
) -> TrainResult:
    """Trains the classifier behind the column `keyphrases` and saves it as a bundle."""

def train_summarizer(
    *,
    corpus: str,
    article_field: str = "article",
    highlights_field: str | None = None,
    id_field: str | None = None,
    split_field: str = "",
    keep_fields: str | Sequence[Any] = "",
    split: str = "",
    limit: int = 0,
    sample: int = 0,
    sample_seed: int = 17,
    data_dir: str | os.PathLike[str] = "",
    stories_dir: str | os.PathLike[str] = "",
    urls_dir: str | os.PathLike[str] = "",
    task_bytes: int = 16777216,
    max_record_mb: int = 8,
    clean: str = "standard",
    strip_boilerplate: bool = True,
    redact: str | Sequence[Any] = "",
    seed: int = 17,
    validation_share: float = 0.02,
    test_share: float = 0.05,
    output: str | os.PathLike[str],
    recipe: str = "news-cpu",
    writer_steps: int = 0,
    max_failed_share: float = 0.01,
    max_empty_share: float = 0.5,
    workers: int = 0,
) -> TrainResult:
    """Trains an extractor and a writer on a corpus with references and saves them as
    one bundle; goes on where an interrupted run of the same flags stopped."""

def verify(
    *,
    folder: str | os.PathLike[str],
    corpus: str = "",
    article_field: str = "article",
    highlights_field: str | None = None,
    id_field: str | None = None,
    split_field: str = "",
    keep_fields: str | Sequence[Any] = "",
    split: str = "",
    limit: int = 0,
    sample: int = 0,
    sample_seed: int = 17,
    data_dir: str | os.PathLike[str] = "",
    stories_dir: str | os.PathLike[str] = "",
    urls_dir: str | os.PathLike[str] = "",
    task_bytes: int = 16777216,
    max_record_mb: int = 8,
    clean: str = "standard",
    strip_boilerplate: bool = True,
    redact: str | Sequence[Any] = "",
    seed: int = 17,
    validation_share: float = 0.05,
    test_share: float = 0.05,
) -> Verification:
    """Checks that a run, records or a bundle are complete and as they were written."""
