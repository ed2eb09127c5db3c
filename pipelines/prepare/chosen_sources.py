"""`precis prepare --extractive METHOD`: sources of articles that are longer than a
network reads are their best sentences, as `precis summarize --long_documents
extract_then_write` chooses them.

The extractive methods are imported where they are used: they take a third of a second.
"""

from typing import TYPE_CHECKING

from precis.model.bundle.manifest import EXTRACTIVE, open_bundle_config
from precis.model.config import suggestion
from precis.model.errors import UsageError
from precis.model.inference.passages import PassageCutter
from precis.model.text.article import Article, body_parts
from precis.model.tokenization.folder import AnyTokenizer
from precis.model.tokenization.source import EncodedSource
from precis.pipelines.options.prepare import PrepareOptions

if TYPE_CHECKING:  # It imports TensorFlow.
    from precis.model.inference.sentence_scorer import SentenceScorer


class SourceChooser:
    """Chooses the sentences of one tokenizer's sources."""

    def __init__(self, options: PrepareOptions, tokenizer: AnyTokenizer) -> None:
        """Opens the bundle of the extractor, where the method needs one.

        Raises:
          DataError: the bundle is damaged.
        """
        self._method = options.extractive
        self._scorer: SentenceScorer | None = None
        if options.extractive_bundle:
            from precis.model.inference.sentence_scorer import load_scorer

            self._scorer = load_scorer(options.extractive_bundle)
        self._cutter = PassageCutter(
            tokenizer,
            task_prefix=options.task_prefix,
            max_source_tokens=options.max_source_tokens,
        )

    def choose(self, article: Article, source: EncodedSource) -> EncodedSource:
        """The source as it is, or where it was cut, that of the best sentences."""
        from precis.pipelines.summarize.extractive_summaries import rank_sentences

        if not source.is_truncated or self._cutter.room < 1:
            return source
        ids = self._cutter.choose(
            body_parts(article),
            lambda sentences: rank_sentences(
                sentences, method=self._method, scorer=self._scorer
            ),
        )
        return source._replace(ids=ids)


def check_method(options: PrepareOptions) -> dict[str, str]:
    """Checks the method that chooses sources.

    Returns:
      What records depend on: the model_id of its bundle, "" without one, under the flag
      that names the bundle.

    Raises:
      UsageError: there is no such method, or it and its bundle are not named together.
      DataError: the bundle is damaged.
    """
    method, bundle = options.extractive, options.extractive_bundle
    if not method and not bundle:
        return {"extractive_bundle": ""}
    from precis.model.extractive.methods import METHODS
    from precis.pipelines.summarize.extractive_summaries import NEURAL

    known = sorted([*METHODS, NEURAL])
    if method and method not in known:
        way_out = suggestion(method, known) or f"known are {', '.join(known)}"
        raise UsageError(f"--extractive: there is no method {method!r}; {way_out}")
    if (method == NEURAL) != bool(bundle):
        raise UsageError(
            "--extractive neural and --extractive_bundle, the --output of `precis "
            "train-extractor`, belong together; name both or neither"
        )
    model_id = open_bundle_config(bundle, EXTRACTIVE).model_id if bundle else ""
    return {"extractive_bundle": model_id}
