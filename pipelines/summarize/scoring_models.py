"""The models that score sentences and phrases in a run."""

from precis.model.errors import DataError
from precis.pipelines.summarize.summary_rows import ScoringModels
from precis.pipelines.summarize.summary_settings import SummarySettings


def open_scoring_models(settings: SummarySettings) -> ScoringModels:
    """Opens the bundles for sentences and phrases.

    Raises:
      DataError: a bundle is damaged or holds another model than the settings say.
    """
    options = settings.options
    neural = None
    keyphrases = None
    if options.extractive_bundle:
        from precis.model.inference.sentence_scorer import load_scorer

        neural = load_scorer(
            options.extractive_bundle, batch_invariant=options.batch_invariant
        )
        expected = settings.model_ids["extractive_model_id"]
        _check_unchanged(options.extractive_bundle, neural.model_id, expected)
    if options.keyphrase_bundle:
        from precis.model.keyphrases.classifier import KeyphraseModel

        keyphrases = KeyphraseModel.load(options.keyphrase_bundle)
        expected = settings.model_ids["keyphrase_model_id"]
        _check_unchanged(options.keyphrase_bundle, keyphrases.model_id, expected)
    return ScoringModels(neural, keyphrases)


def _check_unchanged(folder: str, model_id: str, expected: str | None) -> None:
    """Refuses a bundle that was replaced after the job began."""
    if model_id != expected:
        raise DataError(
            f"{folder} holds model {model_id} now, and this job began with {expected}; "
            "put that model back, or begin anew with another --output"
        )
