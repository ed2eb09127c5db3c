"""The commands `import`, `export`, `card` and `attention`, which work on a bundle."""

import json
import sys
from typing import Any

from precis.model.progress.stages import stage
from precis.pipelines.options.bundles import HUGGINGFACE
from precis.pipelines.run.job_progress import load_tensorflow
from precis.pipelines.run.last_lines import end_with, say_next, unused_output


def run_import(values: dict[str, Any], _: list[str]) -> int:
    """Imports a checkpoint; prints the command that uses it."""
    load_tensorflow()
    from precis.model.bundle.manifest import ENCODER, read_manifest
    from precis.pipelines.bundles.import_checkpoint import import_checkpoint

    print(f"model {import_checkpoint(**values)}")
    output = values["output"]
    if read_manifest(output)["kind"] == ENCODER:
        flags = ("train-extractor", "--records", "records", "--encoder", output)
        end_with(output, "precis", *flags, "--output", unused_output("extractor"))
    else:
        flags = ("summarize", "--corpus", "jsonl:news/*.jsonl", "--bundle", output)
        end_with(output, "precis", *flags, "--output", unused_output("summaries"))
    return 0


def run_export(values: dict[str, Any], _: list[str]) -> int:
    """Exports a bundle; prints a Python line that calls what was written."""
    is_graph = values.get("format") != HUGGINGFACE
    if is_graph:
        load_tensorflow()
    from precis.pipelines.bundles.export import export

    print(f"model {export(**values)['model_id']}")
    output = values["output"]
    end_with(output, sys.executable, "-c", _call(str(output), is_graph=is_graph))
    return 0


def _call(output: str, *, is_graph: bool) -> str:
    """The Python program that summarizes a text with an export."""
    folder = json.dumps(output)
    if is_graph:
        return (
            "import tensorflow as tf, tensorflow_text; "
            f"graph = tf.saved_model.load({folder}); "
            'summarize = graph.signatures["serving_default"]; '
            'print(summarize(articles=tf.constant(["Rain."])))'
        )
    return (
        "from transformers import AutoModelForSeq2SeqLM, AutoTokenizer; "
        f"tokenizer = AutoTokenizer.from_pretrained({folder}); "
        f"network = AutoModelForSeq2SeqLM.from_pretrained({folder}); "
        'inputs = tokenizer(["Rain."], truncation=True, return_tensors="pt"); '
        "print(tokenizer.batch_decode(network.generate(**inputs), "
        "skip_special_tokens=True))"
    )


def run_card(values: dict[str, Any], _: list[str]) -> int:
    """Prints the card of a bundle, or writes it into a file."""
    from precis.pipelines.bundles.card import card

    text = card(**values)
    if not values.get("output"):
        print(text, end="")
        return 0
    end_with(values["output"], "precis", "verify", values["bundle"])
    return 0


def run_attention(values: dict[str, Any], _: list[str]) -> int:
    """Draws a picture of attention; prints its path."""
    load_tensorflow()
    from precis.pipelines.bundles.attention import attention

    with stage("drawing", is_brief=True):
        picture = attention(**values)
    print(f"wrote {picture}")
    say_next("look at the picture")
    return 0
