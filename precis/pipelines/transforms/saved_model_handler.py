"""A model handler of RunInference for a SavedModel of `precis export`.

`TFModelHandlerTensor` of Beam loads it by way of Keras 3, which reads no SavedModel.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from apache_beam.ml.inference.base import ModelHandler, PredictionResult


class SavedModelHandler(ModelHandler[str, PredictionResult, Any]):
    """Summarizes articles with a SavedModel.

        results = articles | RunInference(SavedModelHandler("saved"))
        summaries = results | beam.Map(lambda result: result.inference["summary"])

    The inference of an article is a dictionary with the outputs of the model, as values
    of Python: `summary`, `score`, and perhaps `summaries` and `scores`. Workers need
    precis, tensorflow and tensorflow-text.
    """

    def __init__(self, folder: str, *, max_batch_size: int = 32) -> None:
        """Stores its arguments.

        Args:
          folder: the SavedModel, at a path that all workers reach.
          max_batch_size: the most articles that are searched together.
        """
        super().__init__(max_batch_size=max_batch_size)
        self._folder = folder

    def load_model(self) -> Any:
        """Loads the SavedModel, once per process."""
        import tensorflow as tf
        import tensorflow_text  # noqa: F401  # It registers the operations.

        return tf.saved_model.load(self._folder)

    def run_inference(
        self, batch: Sequence[str], model: Any, inference_args: Any = None
    ) -> Iterable[PredictionResult]:
        """Summarizes a batch of articles."""
        import tensorflow as tf

        outputs = model.signatures["serving_default"](article=tf.constant(batch))
        values = {name: part.numpy().tolist() for name, part in outputs.items()}
        for row, article in enumerate(batch):
            inference = {name: _text(part[row]) for name, part in values.items()}
            yield PredictionResult(article, inference, self._folder)


def _text(value: Any) -> Any:
    """Bytes, alone or in a list, as text; other values are unchanged."""
    if isinstance(value, list):
        return [_text(each) for each in value]
    return value.decode() if isinstance(value, bytes) else value
