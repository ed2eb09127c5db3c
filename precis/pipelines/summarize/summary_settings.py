"""The settings of `precis summarize` that decide what the rows contain.

The command and the transform `SummarizeDocuments` read them from the same flags.
"""

import contextlib
import dataclasses
import functools
import importlib
import importlib.util
import json
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from precis.model import files
from precis.model.bundle.address import (
    SCHEME,
    bundle_folder,
    is_batch,
    parse_address,
)
from precis.model.bundle.manifest import (
    ABSTRACTIVE,
    EXTRACTIVE,
    SUMMARIZER,
    WEIGHTS_FILE,
    StoredBundle,
    open_stored,
)
from precis.model.bundle.network_bundle import (
    check_instruction,
    check_prefix,
    open_bundle,
)
from precis.model.bundle.summarizer_bundle import with_flags_of_bundle
from precis.model.config import (
    ENDPOINTS,
    SENTENCE_PAIRS,
    WriterKind,
    install_command,
    suggestion,
)
from precis.model.errors import PrecisError, UsageError
from precis.model.extractive.config import NEURAL, ORACLE, SelectionConfig
from precis.model.extractive.methods import METHODS
from precis.model.inference.bulk_summarizer import ModelSearch
from precis.model.inference.claim_checker import open_checker
from precis.model.keyphrases.classifier import KeyphraseModel
from precis.model.processes import has_accelerator
from precis.model.progress.stages import say
from precis.model.quality.flags import FallbackConfig
from precis.model.search.config import (
    AUTO,
    CTRANSLATE2,
    TENSORFLOW,
    SearchConfig,
    check_vocabularies,
)
from precis.model.text.document import CLEANINGS, STANDARD, TextSettings
from precis.model.text.language import check_language
from precis.model.text.length_limit import NO_LENGTH_LIMIT
from precis.model.text.words import word_breaker_version
from precis.pipelines.run.hub import with_local_bundles
from precis.pipelines.run.options import check_effects, read_flags, result_settings
from precis.pipelines.summarize.options import (
    INSTRUCTIONS,
    SUMMARY_OPTIONS,
    WRITE_SENTENCES,
    SummarizeOptions,
    decode_id,
)
from precis.pipelines.tables.schema import SCHEMA_VERSION

MODEL_COLUMNS = (
    *("model_id", "extractive_model_id", "keyphrase_model_id"),
    "checker_model_id",
)


class SummarySettings(NamedTuple):
    """All settings that summaries depend on.

    Attributes:
      options, selection, fallback, decoding: values of the flags.
      model_ids: the columns of a row that name the models and the search.
      text: how documents become articles, by flags of the corpus.
      word_breaker: the value of `word_breaker_version`.
      writer: the kind of writer; None if no abstractive summaries are written.
      reads_vectors: whether the selector has an encoder, which needs TensorFlow.
      journal: the file of a job with batches that keeps their answers.
    """

    options: SummarizeOptions
    selection: SelectionConfig
    fallback: FallbackConfig
    decoding: SearchConfig
    model_ids: dict[str, str | None]
    text: TextSettings
    word_breaker: str
    writer: WriterKind | None = None
    reads_vectors: bool = False
    journal: str = ""

    def __hash__(self) -> int:
        """Hashes only the flags, because the dictionary `model_ids` has no hash."""
        return hash(self[:4])

    @property
    def described(self) -> dict[str, Any]:
        """Everything that the summaries of a text depend on, by name.

        The settings that change a summary, with models in place of the paths of
        bundles. Settings of equal meaning have equal values.
        """
        described = result_settings(self[:4], self.writer)
        described |= {name: self.model_ids[name] for name in MODEL_COLUMNS}
        described["extractive"] = ",".join(self.options.methods)
        if self.writer:
            names = sorted(self.fallback.fallback_flag_names)
            described["fallback_flags"] = ",".join(names)
        if self.is_instructed:
            described["instruction"] = self.instruction
        if self.options.is_endpoint:
            described["request_json"] = self.parameters
        if self.text.language:
            described["language"] = self.text.language
        # Any text may name someone in Chinese characters.
        if self.word_breaker:
            described["word_breaker"] = self.word_breaker
        clean = self.text.clean
        return {**described, "clean": clean, "schema_version": SCHEMA_VERSION}

    @property
    def is_instructed(self) -> bool:
        """Whether the writer is a language model, which follows an instruction."""
        return self.writer in (WriterKind.LANGUAGE_MODEL, *ENDPOINTS)

    @property
    def settings_id(self) -> str:
        """The hash of the settings in every row: 16 hexadecimal digits."""
        return files.sha256_json(self.described)[:16]

    @property
    def instruction(self) -> str:
        """The instruction to a language model, including the length limit."""
        words, chars, _ = self.selection.limit
        told = self.options.instruction or INSTRUCTIONS[self.selection.form]
        told += f" Write at most {words} words." * bool(words)
        return told + f" Write at most {chars} characters." * bool(chars)

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of each request to an endpoint, except its messages.

        Raises:
          UsageError: `request_json` is not a JSON object.
        """
        given, text = None, self.options.request_json
        with contextlib.suppress(ValueError):
            given = json.loads(text or "{}")
        if not isinstance(given, dict):
            raise UsageError(
                f"--request_json {text}: this is not a JSON object; write it like "
                """'{"temperature": 0.7}'"""
            )
        every = {"temperature": 0, "seed": 0, "logprobs": True}
        every |= {"max_tokens": self.decoding.max_summary_tokens, **given}
        return {name: value for name, value in every.items() if value is not None}

    @property
    def search(self) -> ModelSearch:
        """The network and its search settings, if the settings have a bundle."""
        decoding, limit = self.decoding, self.selection.limit
        if self.options.write == WRITE_SENTENCES:
            # The summary is composed from all hypotheses of a sentence in the beam.
            decoding = dataclasses.replace(decoding, n_best=decoding.beam_width)
            limit = NO_LENGTH_LIMIT
        return ModelSearch(
            self.options.bundle,
            str(self.model_ids["model_id"]),
            self.options.precision,
            decoding,
            self.instruction if self.is_instructed else "",
            limit,
            self.options.engine,
        )

    @property
    def uses_tensorflow(self) -> bool:
        """Whether a TensorFlow network reads or writes."""
        writer = self.options.bundle and not self.options.is_endpoint
        return bool(writer or self.options.checker or self.reads_vectors)

    @property
    def uses_references(self) -> bool:
        """Whether a row depends on the reference of its document."""
        return "oracle" in self.options.methods or bool(self.options.keyphrase_bundle)


def read_settings(
    flags: Mapping[str, Any], text: TextSettings = STANDARD
) -> SummarySettings:
    """Reads the settings from the flags of `precis summarize`, except its output.

    Args:
      flags: the flags of the summaries.
      text: as for `SummarySettings`.

    Raises:
      UsageError: an unknown flag, an invalid value or bundle, or batches.
    """
    if is_batch(str(flags.get("bundle", ""))):
        raise UsageError(
            f"`bundle={flags['bundle']}`: only `precis summarize` of a corpus asks in "
            "batches; write openai://..."
        )
    # Options need an output folder, but nothing is written here.
    values = {**with_flags_of_bundle(with_local_bundles(flags)), "output": os.devnull}
    return summary_settings(*read_flags(SUMMARY_OPTIONS, values), text=text)


def summary_settings(
    options: SummarizeOptions,
    selection: SelectionConfig,
    fallback: FallbackConfig,
    decoding: SearchConfig,
    *,
    text: TextSettings,
) -> SummarySettings:
    """Combines options with the models of their bundles.

    Raises:
      UsageError: options contradict each other, or a folder is not a bundle.
    """
    if text.clean not in CLEANINGS:
        known = ", ".join(CLEANINGS)
        raise UsageError(f"clean must be one of {known}, not {text.clean!r}")
    if text.clean == "html":  # A missing package shows at the start.
        importlib.import_module("precis.model.text.html")
    check_language(text.language)
    check_methods(options)
    check_writing(options, decoding)
    if options.engine == AUTO and options.bundle and not options.is_endpoint:
        engine = choose_engine(options, selection, decoding)
        options = dataclasses.replace(options, engine=engine)
    writer = writer_of(options)
    check_effects([options, selection, fallback, decoding], writer)
    model_ids = read_model_ids(options, decoding)
    reads_vectors = False
    if options.selector:
        folder = bundle_folder(options.selector)
        reads_vectors = "encoder" in open_stored(folder, EXTRACTIVE).config
    settings = SummarySettings(
        *(options, selection, fallback, decoding, model_ids, text),
        word_breaker_version(),
        writer,
        reads_vectors,
    )
    if options.is_endpoint:
        # The import fails early if packages of the extra are missing.
        importlib.import_module("precis.model.inference.chat_client")
        model_ids["model_id"] = f"{SCHEME}:{parse_address(options.bundle)[1]}"
        model_ids["decode_id"] = files.sha256_json(settings.parameters)[:16]
    elif settings.is_instructed:
        check_instruction(settings.instruction, open_bundle(options.bundle))
    return settings


def writer_of(options: SummarizeOptions) -> WriterKind | None:
    """The kind of writer of abstractive summaries, if any."""
    if options.is_batch:
        return WriterKind.BATCH
    if not options.bundle or options.is_endpoint:
        return WriterKind.ENDPOINT if options.bundle else None
    if options.write == WRITE_SENTENCES:
        return WriterKind.SUMMARIZER
    if "chat" in open_stored(options.bundle, ABSTRACTIVE).config:
        return WriterKind.LANGUAGE_MODEL
    return (
        WriterKind.CTRANSLATE2 if options.engine == CTRANSLATE2 else WriterKind.NETWORK
    )


def choose_engine(
    options: SummarizeOptions, selection: SelectionConfig, decoding: SearchConfig
) -> str:
    """The engine that `auto` stands for: CTranslate2 if it is sure to write the tokens
    that TensorFlow writes. A line says which, and why.
    """
    if importlib.util.find_spec(CTRANSLATE2) is None:
        reason = f"ctranslate2 is not installed; {install_command(CTRANSLATE2)}"
    elif has_accelerator():
        reason = "this machine has an accelerator"
    elif options.write == WRITE_SENTENCES:
        reason = "a summarizer needs the probability of each token"
    else:
        from precis.model.inference.ctranslate2_searcher import why_not

        reason = why_not(open_bundle(options.bundle), decoding, selection.limit)
    engine = TENSORFLOW if reason else CTRANSLATE2
    reason = reason or "it writes the same tokens as tensorflow"
    _say_once(
        f"precis summarize: --engine auto is {engine} for {options.bundle}: {reason}"
    )
    return engine


# A program may summarize texts one by one with the same settings.
_say_once = functools.lru_cache(say)


def check_methods(options: SummarizeOptions) -> None:
    """Checks the names of the extractive methods.

    Raises:
      UsageError: no method is named; a method is unknown; `neural` is named without its
          bundle, or the bundle without `neural`; `oracle` is the first of several.
    """
    methods, names = options.methods, sorted([*METHODS, NEURAL, ORACLE])
    known = ", ".join(names)
    if not methods:
        raise UsageError(f"--extractive names no method; the methods are {known}")
    for name in sorted({*methods} - {*names}):
        way_out = suggestion(name, names) or f"the methods are {known}"
        raise UsageError(f"--extractive: unknown method {name!r}; {way_out}")
    bundle_folder(options.selector)
    needs_selector = NEURAL in methods or options.write == WRITE_SENTENCES
    if options.extractive_bundle and not needs_selector:
        raise UsageError(
            "--extractive_bundle is for the method neural, but --extractive is "
            f"{options.extractive}; add neural to it"
        )
    if methods[0] == ORACLE and len(methods) > 1:
        raise UsageError(
            "--extractive names oracle first, so the summary would be chosen with the "
            "help of the reference; name another method first, or only oracle"
        )


def check_writing(options: SummarizeOptions, decoding: SearchConfig) -> None:
    """Checks that the models fit the setting `write`: sentences need a selector, and
    articles need a network that did not learn from single sentences.

    Raises:
      UsageError: a bundle is missing or learned from sentences, the selector does not
          know the importance of words, or several candidates are asked for.
    """
    if options.write != WRITE_SENTENCES:
        if options.bundle and not options.is_endpoint:
            check_article_writer(options.bundle)
        return
    if options.engine == CTRANSLATE2:
        raise UsageError(
            "--engine ctranslate2 does not give the probability of each token, which a "
            "summarizer (write=sentences) needs; leave --engine out"
        )
    if decoding.n_best > 1:
        raise UsageError(
            f"--n_best {decoding.n_best}: write=sentences makes one summary from all "
            "candidates; leave it at 1"
        )
    if not (options.bundle and options.extractive_bundle):
        raise UsageError(
            "write=sentences needs --bundle, the --output of `precis train` on records "
            "of `--target sentences`, and --extractive_bundle, the --output of "
            "`precis train-selector`; name both"
        )
    folder = bundle_folder(options.extractive_bundle)
    contents = open_stored(folder, EXTRACTIVE)
    if "importance" not in contents.config:
        raise UsageError(
            f"{options.extractive_bundle}: does not know the importance of words that "
            "write=sentences needs; train it again"
        )


def check_article_writer(bundle: str) -> None:
    """Refuses the writer of a summarizer as the bundle for whole articles.

    Raises:
      UsageError: the bundle belongs to a summarizer, which the message names.
    """
    learned = open_stored(bundle).manifest["provenance"].get("data") or ()
    if not learned or any(each["target"] not in SENTENCE_PAIRS for each in learned):
        return
    way_out = 'in Python, give it to `precis.summarize` with write="sentences"'
    parent = os.path.dirname(bundle.rstrip("/")) or "."
    with contextlib.suppress(PrecisError):  # The folder above may be any folder.
        if open_stored(parent).kind == SUMMARIZER:
            way_out = f"name its summarizer, --bundle {parent}"
    raise UsageError(
        f"{bundle}: this network learned to shorten single sentences, not to "
        f"summarize whole articles; {way_out}"
    )


def read_model_ids(
    options: SummarizeOptions, decoding: SearchConfig
) -> dict[str, str | None]:
    """The ids of each model and of the search; None for a model that is not used.

    Raises:
      UsageError: a folder is not a bundle or of the wrong kind, or its network does not
          support the search settings or the prefix.
      DataError: a bundle is damaged.
    """
    ids: dict[str, str | None] = dict.fromkeys([*MODEL_COLUMNS, "decode_id"])
    # Ids are computed from the checksums of the weights, so the weights are checked,
    # even if no document is left to search.
    if options.bundle and not options.is_endpoint:
        network = open_bundle(options.bundle)
        of_sources = network.source_tokenizer.fingerprint
        has_one_vocabulary = network.tokenizer.fingerprint == of_sources
        check_vocabularies(decoding, has_one_vocabulary=has_one_vocabulary)
        check_prefix(options.task_prefix, network)
        if options.engine == CTRANSLATE2:
            from precis.model.inference.ctranslate2_searcher import check_engine

            check_engine(network, decoding)
        ids["model_id"] = _whole(open_stored(options.bundle))
        ids["decode_id"] = decode_id(decoding, options.precision, options.engine)
    if options.selector:
        stored = open_stored(bundle_folder(options.selector), EXTRACTIVE)
        ids["extractive_model_id"] = _whole(stored)
    if options.keyphrase_bundle:
        model = KeyphraseModel.load(options.keyphrase_bundle)
        ids["keyphrase_model_id"] = model.model_id
    if options.checker:
        ids["checker_model_id"] = _whole(open_checker(options.checker))
    return ids


def _whole(stored: StoredBundle) -> str:
    """The model_id of a bundle, after a check of its weights."""
    stored.check(WEIGHTS_FILE)
    return stored.model_id
