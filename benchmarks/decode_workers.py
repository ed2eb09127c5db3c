"""What `decode.py` runs in processes of their own: one engine each, set up once and
then timed as often as it is told to.

A worker prints `READY seconds`, then answers each line on its standard input with one
on its standard output:

    go             decodes all its documents          T seconds
    tokens PATH    decodes the first batch, keeps it  T seconds

It runs in the interpreter that has the engine: beyond the standard library and NumPy, a
function imports what it needs.
"""

import concurrent.futures
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import IO, NamedTuple

import numpy as np
from decode_networks import (
    BEAM_WIDTH,
    CONVERTED,
    END,
    NO_REPEAT_NGRAM,
    PAD,
    POSITIONS,
    SIZES,
    START,
    WEIGHTS,
    source_tokens,
    token_texts,
)

AGREEMENT_DOCUMENTS = 16


class Engine(NamedTuple):
    """A way to decode.

    Attributes:
      kind: what decodes, a key of ENGINES.
      precision: what it computes in.
      label: what tells it from others of its kind and precision.
      batch: documents decoded at once.
      processes: that share the documents.
      callers: batches that each process decodes at the same time.
      op_threads: threads that work on one batch.
    """

    kind: str
    precision: str
    label: str = ""
    batch: int = 16
    processes: int = 1
    callers: int = 1
    op_threads: int = 1


class Job(NamedTuple):
    """What a worker is told: its engine, the name and the folder of the size, and its
    documents.
    """

    engine: Engine
    size: str
    folder: str
    first: int
    documents: int


Decode = Callable[[np.ndarray], np.ndarray]


def start(
    python: str, job: Job, errors: IO[str] | None = None
) -> subprocess.Popen[str]:
    """A worker that is setting itself up."""
    environment = {
        **os.environ,
        "CUDA_VISIBLE_DEVICES": "-1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "KERAS_BACKEND": "tensorflow",
    }
    command = [python, os.path.abspath(__file__), json.dumps(job)]
    return subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
    )


def tell(worker: subprocess.Popen[str], line: str) -> None:
    """Sends a worker one line."""
    assert worker.stdin
    worker.stdin.write(line + "\n")
    worker.stdin.flush()


def answer(worker: subprocess.Popen[str], word: str) -> float:
    """Waits for the line of a worker that begins with a word, and returns the seconds
    in it.

    Raises:
      EOFError: the worker ended without it.
    """
    assert worker.stdout
    for line in worker.stdout:
        if line.startswith(word + " "):
            return float(line.split()[1])
    raise EOFError(f"the worker ended and never said {word}")


def _in_batches(decode: Decode, engine: Engine) -> Decode:
    """A function that decodes any number of documents, `engine.callers` batches at the
    same time.
    """
    pool = concurrent.futures.ThreadPoolExecutor(engine.callers)
    return lambda source: np.concatenate(
        list(
            pool.map(
                decode,
                [
                    source[row : row + engine.batch]
                    for row in range(0, len(source), engine.batch)
                ],
            )
        )
    )


def precis_engine(job: Job) -> Decode:
    """The search of this project as `precis summarize` runs it, on an imported network."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(job.engine.op_threads)
    tf.config.threading.set_inter_op_parallelism_threads(job.engine.op_threads)
    from precis.model.bundle.converters.checkpoint import load_checkpoint
    from precis.model.inference.searcher import Searcher
    from precis.model.search.config import SearchConfig, SpecialTokens

    length = SIZES[job.size].new_tokens
    config = SearchConfig(
        beam_width=BEAM_WIDTH,
        min_summary_tokens=length - 1,
        max_summary_tokens=length,
        length_penalty_form="average",
        no_repeat_ngram=NO_REPEAT_NGRAM,
        unfinished="compete",
        early_stopping="bound",
    )
    special = SpecialTokens(
        start_id=START, end_id=END, pad_id=PAD, suppressed=(END,)
    )  # every summary has all its tokens
    network = load_checkpoint(
        os.path.join(job.folder, WEIGHTS), precision=job.engine.precision
    ).network
    searcher = Searcher(network, config=config, special=special)
    return _in_batches(
        lambda source: searcher.search_batch(tf.constant(source, tf.int32))[0][
            :, 0
        ].numpy(),
        job.engine,
    )


def ctranslate2_engine(job: Job) -> Decode:
    """CTranslate2, which takes and gives tokens as text and makes its batches itself."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        if {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"} <= set(
            file.read().split()
        ):
            os.environ.setdefault(
                "CT2_FORCE_CPU_ISA", "AVX512"
            )  # it does not choose this by itself on every chip that has it
    import ctranslate2

    engine, length = job.engine, SIZES[job.size].new_tokens
    translator = ctranslate2.Translator(
        os.path.join(job.folder, CONVERTED),
        device="cpu",
        compute_type=engine.precision,
        inter_threads=engine.callers,
        intra_threads=engine.op_threads,
    )
    pieces = token_texts(SIZES[job.size])
    ids = {piece: token for token, piece in enumerate(pieces)}

    def decode(source: np.ndarray) -> np.ndarray:
        found = translator.translate_batch(
            [[pieces[token] for token in row] for row in source],
            max_batch_size=engine.batch,
            beam_size=BEAM_WIDTH,
            min_decoding_length=length,
            max_decoding_length=length,
            no_repeat_ngram_size=NO_REPEAT_NGRAM,
            max_input_length=0,
        )
        return np.array(
            [[ids[piece] for piece in result.hypotheses[0]] for result in found]
        )

    return decode


def transformers_engine(job: Job) -> Decode:
    """Hugging Face's `generate` on PyTorch, eager."""
    import torch
    from transformers import BartForConditionalGeneration

    torch.set_num_threads(job.engine.op_threads)
    folder, length = os.path.join(job.folder, WEIGHTS), SIZES[job.size].new_tokens
    network = BartForConditionalGeneration.from_pretrained(
        folder, dtype=getattr(torch, job.engine.precision)
    ).eval()

    def decode(source: np.ndarray) -> np.ndarray:
        rows = torch.tensor(source)
        with torch.inference_mode():
            found = network.generate(
                input_ids=rows,
                attention_mask=torch.ones_like(rows),
                num_beams=BEAM_WIDTH,
                do_sample=False,
                min_new_tokens=length,
                max_new_tokens=length,
                no_repeat_ngram_size=NO_REPEAT_NGRAM,
            )
        return found[:, 1:].numpy()  # without the start token

    return _in_batches(decode, job.engine)


def keras_hub_engine(job: Job) -> Decode:
    """KerasHub's beam search on TensorFlow, compiled by XLA, with weights of its own.
    It cannot forbid repeated n-grams.
    """
    import keras_hub
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(job.engine.op_threads)
    tf.config.threading.set_inter_op_parallelism_threads(job.engine.op_threads)
    size = SIZES[job.size]
    backbone = keras_hub.models.BartBackbone(
        vocabulary_size=size.vocabulary_size,
        num_layers=size.encoder_layers,
        num_heads=size.heads,
        hidden_dim=size.width,
        intermediate_dim=size.feed_forward,
        max_sequence_length=POSITIONS,
    )
    network = keras_hub.models.BartSeq2SeqLM(backbone=backbone, preprocessor=None)
    network.compile(
        sampler=keras_hub.samplers.BeamSampler(num_beams=BEAM_WIDTH), jit_compile=True
    )

    def decode(source: np.ndarray) -> np.ndarray:
        written = np.full((len(source), size.new_tokens + 1), 0, "int32")
        written[:, 0] = START
        rows = {
            "encoder_token_ids": source.astype("int32"),
            "encoder_padding_mask": np.ones(source.shape, bool),
        }
        rows |= {
            "decoder_token_ids": written,
            "decoder_padding_mask": np.arange(size.new_tokens + 1)
            < np.ones((len(source), 1)),
        }
        return np.asarray(
            network.generate(rows, stop_token_ids=None)["decoder_token_ids"]
        )[:, 1:]

    return _in_batches(decode, job.engine)


ENGINES = {
    "ours": precis_engine,
    "ctranslate2": ctranslate2_engine,
    "transformers": transformers_engine,
    "keras_hub": keras_hub_engine,
}


def matrix_rate(precision: str, threads: int) -> float:
    """FLOP/s of the best of some products of two matrices of 2048 x 2048, by
    TensorFlow.
    """
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    number = 2048
    matrix = tf.cast(tf.random.normal([number, number], seed=0), precision)

    def seconds() -> float:
        began = time.perf_counter()
        tf.matmul(matrix, matrix).numpy()
        return time.perf_counter() - began

    return 2 * number**3 / min(seconds() for _ in range(25))


def work(job: Job) -> Iterator[str]:
    """The worker: what it answers, as it is told what to do."""
    began, size, engine = time.perf_counter(), SIZES[job.size], job.engine
    shares = [
        job.documents * part // engine.processes for part in range(engine.processes + 1)
    ]
    alone = engine._replace(processes=1)
    others = [
        start(
            sys.executable,
            Job(alone, job.size, job.folder, job.first + here, after - here),
        )
        for here, after in zip(shares[1:], shares[2:], strict=False)
    ]
    source = source_tokens(size, job.first, shares[1])
    decode = ENGINES[engine.kind](job)
    decode(source[: engine.callers * engine.batch])
    for other in others:
        answer(other, "READY")
    yield f"READY {time.perf_counter() - began:.2f}"
    for line in sys.stdin:
        began = time.perf_counter()
        if line.startswith("tokens "):
            np.save(
                line.split(maxsplit=1)[1].strip(),
                decode(source_tokens(size, 0, AGREEMENT_DOCUMENTS)),
            )
        else:
            for other in others:
                tell(other, "go")
            found = decode(source)
            assert found.shape == (len(source), size.new_tokens), (
                f"{found.shape} is not the work that was asked for"
            )
            for other in others:
                answer(other, "T")
        yield f"T {time.perf_counter() - began:.5f}"


if __name__ == "__main__":
    if sys.argv[1] == "matrix_rate":
        print(matrix_rate(sys.argv[2], int(sys.argv[3])))
    else:
        about, *rest = json.loads(sys.argv[1])
        for reply in work(Job(Engine(*about), *rest)):
            print(reply, flush=True)
