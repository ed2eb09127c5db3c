"""`precis export --format saved_model`: texts in, summaries out, without precis."""

import json
import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.ml.inference.base import RunInference
from apache_beam.testing.util import assert_that, equal_to
from support.command_line import exit_code, precis, write_jsonl
from support.huggingface_bundles import SIZES, sample_bodies
from support.plain_network import scramble
from support.small_checkpoint import (
    write_checkpoint,
    write_sentencepiece,
    write_tokenizer,
)
from support.summarize_runs import rows_of
from tokenizers import Tokenizer as Library
from tokenizers import models

from precis.model.bundle.network_bundle import load_bundle, save_bundle
from precis.model.errors import UsageError
from precis.model.network.build import build_network
from precis.model.network.config import TransformerConfig
from precis.model.tokenization.imported import ImportedTokenizer
from precis.model.tokenization.vocabulary import count_words, learn
from precis.model.tokenization.wordpiece import Tokenizer
from precis.pipelines.bundles.export import export
from precis.pipelines.bundles.import_checkpoint import import_checkpoint
from precis.pipelines.corpus.sample import generator
from precis.transforms import SavedModelHandler

NEWS = [generator.document(900 + n).article for n in range(12)]
ARTICLES = [
    *NEWS,
    unicodedata.normalize("NFD", "Zoë’s café, Ångström: " + NEWS[0]),
    "a▁b▁ c␤d " + NEWS[1],
    "\t" + NEWS[2].replace(" ", "\t\u00a0") + "\n\n",
    NEWS[3].replace(" ", "\u200b \u200d"),
    "\r\n".join(NEWS[4].split(". ")),
    "\u2028line\u2029by\x85line\x0b\x0c\x1c" + NEWS[5],
    "東京都は新しい橋を建設した。橋は2024年に開通する。" * 4,
    "รัฐบาลกำลังทำงาน ดีมาก🙂ครับ " * 5,
    "ΑΣ İSTANBUL ΣΑΣ IJ I\u0300 " + NEWS[6],
    "[PAD] [UNK] [START] [END] \0 \ufffd\ufffe" + NEWS[7],
    "a</s>b <extra_id_0> <pad><n> <unk_2> \ufdd0 " + NEWS[9],
    "ﬁne oﬃce, tie\u0302\u0301ng Vie\u0323\u0302t ½™\u0301 ﾊﾟﾝ " + NEWS[10],
    "w" * 70_000 + " ended",
    NEWS[8] * 40,
    "x",
]
SLOW = [pytest.param(kind, marks=pytest.mark.slow) for kind in ("t5", "pegasus")]
EMPTY = ["", " \n\t", "\ufeff\u200b"]
SEARCH = {"beam_width": 3, "n_best": 2}

# A process that cannot import precis. Its language is Turkish, in which ICU gives I
# another lower case.
ALONE = """
import json, sys
sys.modules["precis"] = None
import tensorflow as tf, tensorflow_text
from tensorflow.python.tools import saved_model_cli

folder, articles = sys.argv[1], json.load(open(sys.argv[2]))
summarize = tf.saved_model.load(folder).signatures["serving_default"]
outputs = summarize(article=tf.constant(articles))
json.dump(
    {name: part.numpy().tolist() for name, part in outputs.items()},
    open(sys.argv[3], "w"),
    default=bytes.decode,
)
sys.argv[1:] = ["run", "--dir", folder, "--tag_set", "serve"]
sys.argv += ["--signature_def", "serving_examples", "--input_examples"]
sys.argv.append("examples=" + json.dumps([{"article": articles[:1]}]))
saved_model_cli.main()
"""


@pytest.fixture(scope="module", params=["precis", *SLOW])
def bundle(request, tmp_path_factory) -> str:
    """A network whose tokenizer has lower case, and letters of Thai words, or an
    imported one.
    """
    folder = str(tmp_path_factory.mktemp("written") / "bundle")
    if request.param != "precis":
        checkpoint = tmp_path_factory.mktemp("checkpoint")
        task = {"task_specific_params": {"summarization": {"prefix": "summarize: "}}}
        settings = task if request.param == "t5" else {}
        write_checkpoint(checkpoint, kind=request.param, settings=settings)
        write_sentencepiece(checkpoint, request.param, sample_bodies(40))
        import_checkpoint(checkpoint=checkpoint, output=folder)
        return folder
    texts = [*sample_bodies(40), "ดีมาก ครับ 東京"]
    tokenizer = Tokenizer(
        learn(count_words(texts, lower_case=True), size=600), lower_case=True
    )
    sizes = {"encoder_layers": 1, "decoder_layers": 1, "max_target_tokens": 10}
    sizes |= {"vocabulary_size": tokenizer.vocabulary_size, "pad_id": tokenizer.pad_id}
    config = TransformerConfig(**{**SIZES, **sizes, "pointer": True})
    network = build_network(config, seed=5)
    scramble(network, seed=3, scale=0.4)
    provenance = {"command": "train"}
    save_bundle(folder, network=network, tokenizer=tokenizer, provenance=provenance)
    return folder


@pytest.fixture(scope="module")
def saved(bundle, tmp_path_factory) -> str:
    folder = str(tmp_path_factory.mktemp("exported") / "saved")
    flags = [f"--{name}={value}" for name, value in SEARCH.items()]
    format_flags = ("--format", "saved_model", "--output", folder)
    assert exit_code("export", bundle, *format_flags, *flags) == 0
    return folder


@pytest.fixture(scope="module")
def expected(bundle, tmp_path_factory) -> list[list[str]]:
    """The summaries that `precis summarize` writes of each of ARTICLES."""
    folder = tmp_path_factory.mktemp("summarized")
    lines = [{"id": f"{n}", "article": text} for n, text in enumerate(ARTICLES + EMPTY)]
    corpus = write_jsonl(folder / "articles.jsonl", lines)
    flags = {"clean": "none", "long_documents": "head", "min_source_words": 0, **SEARCH}
    run = folder / "run"
    assert precis("summarize", corpus=corpus, bundle=bundle, output=run, **flags) == 0
    rows = {int(row["document_id"]): row["abstractive"] for row in rows_of(run)}
    assert sorted(rows) == list(range(len(ARTICLES)))
    return [[each["text"] for each in rows[n]] for n in sorted(rows)]


@pytest.mark.slow
def test_a_process_without_precis_writes_the_summaries_of_summarize(
    saved, expected, tmp_path
):
    assert len(set(map(tuple, expected))) > 15
    paths = tmp_path / "articles.json", tmp_path / "outputs.json"
    paths[0].write_text(json.dumps(ARTICLES + EMPTY))
    done = subprocess.run(
        [sys.executable, "-I", "-c", ALONE, saved, *map(str, paths)],
        env={**os.environ, "LC_ALL": "tr_TR.UTF-8"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    outputs = json.loads(paths[1].read_text())
    for place, texts in enumerate(expected):
        rows = {name: part[place] for name, part in outputs.items()}
        assert rows["summaries"] == [*texts, *[""] * (2 - len(texts))], place
        assert rows["summary"] == texts[0] and rows["score"] == rows["scores"][0]
        assert [score > -1e9 for score in rows["scores"]] == [True, len(texts) == 2]
    assert outputs["summary"][len(ARTICLES) :] == [""] * len(EMPTY)
    assert outputs["score"][len(ARTICLES) :] == [-float("inf")] * len(EMPTY)
    # The second signature, by saved_model_cli.
    assert f"Result for output key summary:\n[{expected[0][0].encode()}]" in done.stdout


def test_a_pipeline_runs_it_by_run_inference(saved, expected):
    with beam.Pipeline() as pipeline:
        results = (
            pipeline
            | beam.Create(ARTICLES)
            | RunInference(SavedModelHandler(saved, max_batch_size=7))
            | beam.Map(
                lambda result: (result.example, result.inference["summaries"][0])
            )
        )
        texts = [
            (text, best) for text, (best, *_) in zip(ARTICLES, expected, strict=True)
        ]
        assert_that(results, equal_to(texts))


def test_the_manifest_says_what_was_exported(bundle, saved, tmp_path):
    manifest = json.loads(Path(saved, "manifest.json").read_text())
    assert (manifest["kind"], manifest["decoding"]["n_best"]) == ("saved_model", 2)
    assert {"saved_model.pb", "variables/variables.index"} < set(manifest["sha256"])
    assert "tf.saved_model.load" in Path(saved, "README.md").read_text()
    (tmp_path / "manifest.json").write_text('{"kind": "huggingface"}')
    with pytest.raises(UsageError, match="holds something else of the kind hugg"):
        export(bundle=bundle, output=tmp_path, format="saved_model")


def test_imported_tokenizers_are_refused(tmp_path):
    write_checkpoint(tmp_path / "checkpoint")
    write_tokenizer(tmp_path / "checkpoint")
    folder = tmp_path / "bundle"
    import_checkpoint(checkpoint=tmp_path / "checkpoint", output=folder)
    imported = load_bundle(str(folder))
    pieces = [(f"piece{n}", -1.0) for n in range(imported.tokenizer.vocabulary_size)]
    unigram = ImportedTokenizer(Library(models.Unigram(pieces, unk_id=0)).to_str())
    save_bundle(
        str(tmp_path / "unigram"),
        network=imported.network,
        tokenizer=unigram,
        provenance={"command": "import"},
        special=imported.special,
    )
    for name, part in (("bundle", "model .*BPE"), ("unigram", "pre_token.*Sentence")):
        refusal = f"{name}: the {part}.* cannot be part .*; use --format hugg"
        with pytest.raises(UsageError, match=refusal):
            export(bundle=tmp_path / name, output=tmp_path / "o", format="saved_model")
    assert not (tmp_path / "o").exists()
