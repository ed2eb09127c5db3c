"""The size and the speed of a SavedModel of `precis export` beside `precis summarize`.

    python benchmarks/saved_model.py [--bundle DIR] [--documents 500] [--jit]

prints `name value unit` lines. Both search the same documents of the built-in corpus,
by default with a network of random weights. The SavedModel runs in a process without
precis, in batches as the documents come; `summarize` sorts them by length and has as
many search processes as cores. The first batch of the SavedModel, which prepares it, is
not counted; the rate of `summarize` is from its manifest and includes compilation. With
--jit, XLA compiles what it can of the SavedModel, again for each new shape, so all
batches run once before they are timed. `equal` counts the texts that are the same.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pyarrow.dataset as ds
from command_runs import run_command
from overhead import random_bundle

from precis.pipelines.corpus.sample import generator

_XLA = "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit"
_ALONE = """
import json, sys, time
sys.modules["precis"] = None
import tensorflow as tf, tensorflow_text
folder, path, size, warm = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
summarize = tf.saved_model.load(folder).signatures["serving_default"]
articles = [json.loads(line)["article"] for line in open(path, encoding="utf-8")]
batches = [articles[n : n + size] for n in range(0, len(articles), size)]
for batch in batches[: warm or None]:
    summarize(article=tf.constant(batch))
started = time.perf_counter()
texts = [
    text.decode()
    for batch in batches
    for text in summarize(article=tf.constant(batch))["summary"].numpy()
]
print(json.dumps({"seconds": time.perf_counter() - started, "texts": texts}))
"""


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs both and prints their rates."""
    parser = argparse.ArgumentParser(description="A SavedModel beside summarize.")
    parser.add_argument("--bundle", help="a bundle (default: of random weights)")
    parser.add_argument("--network", default="tiny", help="its size (default: tiny)")
    parser.add_argument("--documents", type=int, default=500, help="(default: 500)")
    parser.add_argument("--batch", type=int, default=16, help="articles of a batch")
    parser.add_argument("--jit", action="store_true", help="compile with XLA")
    flags = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        bundle = flags.bundle or os.path.join(folder, "bundle")
        if not flags.bundle:
            random_bundle(bundle, flags.network)
        saved, run = os.path.join(folder, "saved"), os.path.join(folder, "run")
        path = Path(folder, "articles.jsonl")
        with path.open("w", encoding="utf-8") as file:
            for number in range(flags.documents):
                article = generator.document(number).article
                file.write(json.dumps({"id": f"{number}", "article": article}) + "\n")
        run_command("export", bundle, "--format=saved_model", f"--output={saved}")
        flags_of_run = ("--clean=none", "--long_documents=head", f"--output={run}")
        run_command(
            "summarize", f"--corpus=jsonl:{path}", f"--bundle={bundle}", *flags_of_run
        )
        # 0 is all of them.
        numbers = map(str, (flags.batch, 0 if flags.jit else 1))
        done = subprocess.run(
            [sys.executable, "-I", "-c", _ALONE, saved, path, *numbers],
            env={**os.environ, **({"TF_XLA_FLAGS": _XLA} if flags.jit else {})},
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        alone = json.loads(done.stdout)
        rows = ds.dataset(f"{run}/data").to_table().to_pylist()
        texts = {int(row["document_id"]): row["abstractive_summary"] for row in rows}
        equal = sum(texts[n] == text for n, text in enumerate(alone["texts"]))
        search = json.loads(Path(run, "manifest.json").read_bytes())["search"]
        size = sum(each.stat().st_size for each in Path(saved).rglob("*.*"))
        print(f"size {size / 1e6:.1f} MB")
        print(f"saved_model {flags.documents / alone['seconds']:.1f} articles/s")
        print(f"summarize {search['documents_per_second']:.1f} articles/s")
        print(f"equal {equal} of {flags.documents} texts")


if __name__ == "__main__":
    main()
