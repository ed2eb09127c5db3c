"""The workers of `decode.py`: one engine in a process, set up once and then timed on
request.

A worker prints `READY seconds`, then answers each line on its standard input:

    go             decodes all its documents                 T seconds
    tokens PATH    decodes some documents, saves the tokens  T seconds

It runs in the interpreter that has the engine. So the module imports only the standard
library and NumPy, and each engine imports its library in its function.
"""

import concurrent.futures
import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import IO, NamedTuple

import numpy as np
import worker_process
from decode_networks import (
    BEAM_WIDTH,
    CONVERTED,
    END,
    NO_REPEAT_NGRAM,
    POSITIONS,
    SIZES,
    START,
    WEIGHTS,
    source_tokens,
    token_texts,
)

AGREEMENT_DOCUMENTS = 16  # whose tokens are compared with the reference
_AVX512 = {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"}


class Engine(NamedTuple):
    """A way to decode.

    Attributes:
      kind: a key of ENGINES.
      precision: the type that it computes in.
      label: distinguishes it from others of its kind and precision.
      batch: documents of a batch.
      processes: how many processes share the documents.
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


class DecodeJob(NamedTuple):
    """The job of a worker: its engine, the name and the folder of the size, and its
    documents from number `first` on.
    """

    engine: Engine
    size: str
    folder: str
    first: int
    documents: int


Decode = Callable[[np.ndarray], np.ndarray]


def start(
    python: str, job: DecodeJob, errors: IO[str] | None = None
) -> subprocess.Popen[str]:
    """Starts a worker, which sets itself up."""
    return worker_process.start(__file__, python, job, errors)


def _in_batches(decode: Decode, engine: Engine) -> Decode:
    """A function that decodes any number of documents, `engine.callers` batches at the
    same time.
    """
    pool = concurrent.futures.ThreadPoolExecutor(engine.callers)

    def decode_all(source: np.ndarray) -> np.ndarray:
        batches = [
            source[row : row + engine.batch]
            for row in range(0, len(source), engine.batch)
        ]
        return np.concatenate(list(pool.map(decode, batches)))

    return decode_all


def precis_engine(job: DecodeJob) -> Decode:
    """The search of this project as `precis summarize` runs it, on an imported
    network.
    """
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(job.engine.op_threads)
    tf.config.threading.set_inter_op_parallelism_threads(job.engine.op_threads)
    from precis.model.bundle.checkpoints.importer import load_checkpoint
    from precis.model.inference.searcher import TensorFlowSearcher
    from precis.model.own_process import prepare_own_process
    from precis.model.search.config import SearchConfig

    prepare_own_process()  # as a command does
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
    folder = os.path.join(job.folder, WEIGHTS)
    checkpoint = load_checkpoint(folder, precision=job.engine.precision)
    assert checkpoint.special
    # The end token is suppressed, so that every summary has its full length.
    special = dataclasses.replace(checkpoint.special, suppressed=(END,))
    searcher = TensorFlowSearcher(checkpoint.network, config=config, special=special)

    def decode(source: np.ndarray) -> np.ndarray:
        tokens, *_ = searcher.search_batch(tf.constant(source, tf.int32))
        return tokens[:, 0].numpy()  # of the best hypothesis

    return _in_batches(decode, job.engine)


def ctranslate2_engine(job: DecodeJob) -> Decode:
    """CTranslate2, which reads and writes tokens as text and forms batches itself."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        if set(file.read().split()) >= _AVX512:
            # CTranslate2 does not choose AVX-512 on every chip that has it.
            os.environ.setdefault("CT2_FORCE_CPU_ISA", "AVX512")
    import ctranslate2

    engine, size = job.engine, SIZES[job.size]
    settings = {
        "max_batch_size": engine.batch,
        "beam_size": BEAM_WIDTH,
        "no_repeat_ngram_size": NO_REPEAT_NGRAM,
    }
    make = ctranslate2.Translator if size.encoder_layers else ctranslate2.Generator
    model = make(
        os.path.join(job.folder, CONVERTED),
        device="cpu",
        compute_type=engine.precision,
        inter_threads=engine.callers,
        intra_threads=engine.op_threads,
    )
    pieces = token_texts(size)
    ids = {piece: token for token, piece in enumerate(pieces)}

    def decode(source: np.ndarray) -> np.ndarray:
        texts = [[pieces[token] for token in row] for row in source]
        if size.encoder_layers:
            results = model.translate_batch(
                texts,
                min_decoding_length=size.new_tokens,
                max_decoding_length=size.new_tokens,
                max_input_length=0,
                **settings,
            )
            hypotheses = [result.hypotheses[0] for result in results]
            return np.array([[ids[piece] for piece in each] for each in hypotheses])
        results = model.generate_batch(
            texts,
            min_length=size.new_tokens,
            max_length=size.new_tokens,
            include_prompt_in_result=False,
            **settings,
        )
        return np.array([result.sequences_ids[0] for result in results])

    return decode


def transformers_engine(job: DecodeJob) -> Decode:
    """Hugging Face's `generate` on PyTorch, in eager mode."""
    import torch
    import transformers

    torch.set_num_threads(job.engine.op_threads)
    length = SIZES[job.size].new_tokens
    folder = os.path.join(job.folder, WEIGHTS)
    (name,) = transformers.AutoConfig.from_pretrained(folder).architectures  # pyright: ignore[reportGeneralTypeIssues]  # Set.
    network = (
        getattr(transformers, name)
        .from_pretrained(folder, dtype=getattr(torch, job.engine.precision))
        .eval()
    )

    def decode(source: np.ndarray) -> np.ndarray:
        rows = torch.tensor(source)
        with torch.inference_mode():
            tokens = network.generate(
                input_ids=rows,
                attention_mask=torch.ones_like(rows),
                num_beams=BEAM_WIDTH,
                do_sample=False,
                min_new_tokens=length,
                max_new_tokens=length,
                no_repeat_ngram_size=NO_REPEAT_NGRAM,
            )
        # Without what stands before: the start token, or the source.
        return tokens[:, -length:].numpy()

    return _in_batches(decode, job.engine)


def keras_hub_engine(job: DecodeJob) -> Decode:
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
        target = np.zeros((len(source), size.new_tokens + 1), "int32")
        target[:, 0] = START
        is_start = np.zeros(target.shape, bool)
        is_start[:, 0] = True
        inputs = {
            "encoder_token_ids": source.astype("int32"),
            "encoder_padding_mask": np.ones(source.shape, bool),
            "decoder_token_ids": target,
            "decoder_padding_mask": is_start,
        }
        outputs = network.generate(inputs, stop_token_ids=None)
        return np.asarray(outputs["decoder_token_ids"])[:, 1:]

    return _in_batches(decode, job.engine)


ENGINES = {
    "ours": precis_engine,
    "ctranslate2": ctranslate2_engine,
    "transformers": transformers_engine,
    "keras_hub": keras_hub_engine,
}


def matrix_rate(precision: str, threads: int) -> float:
    """FLOP/s of the fastest of 25 products of 2048 x 2048 matrices in TensorFlow."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    size = 2048
    matrix = tf.cast(tf.random.normal([size, size], seed=0), precision)

    def seconds() -> float:
        started = time.perf_counter()
        tf.matmul(matrix, matrix).numpy()
        return time.perf_counter() - started

    return 2 * size**3 / min(seconds() for _ in range(25))


def run_worker(job: DecodeJob) -> Iterator[str]:
    """Sets up the engine, follows the lines of the standard input, and yields the
    answers.

    The first of the engine's processes is this one; it starts the others as workers.
    """
    started = time.perf_counter()
    engine = job.engine
    borders = [
        job.documents * part // engine.processes for part in range(engine.processes + 1)
    ]
    others = []
    for first, end in zip(borders[1:], borders[2:], strict=False):
        share = job._replace(
            engine=engine._replace(processes=1),
            first=job.first + first,
            documents=end - first,
        )
        others.append(start(sys.executable, share))
    source = source_tokens(SIZES[job.size], job.first, borders[1])
    decode = ENGINES[engine.kind](job)
    decode(source[: engine.callers * engine.batch])
    for other in others:
        worker_process.answer(other, "READY")
    yield f"READY {time.perf_counter() - started:.2f}"
    for line in sys.stdin:
        started = time.perf_counter()
        if line.startswith("tokens "):
            _save_tokens(line.removeprefix("tokens ").strip(), decode, job)
        else:
            _decode_documents(source, decode, job, others)
        yield f"T {time.perf_counter() - started:.5f}"


def _save_tokens(path: str, decode: Decode, job: DecodeJob) -> None:
    documents = source_tokens(SIZES[job.size], 0, AGREEMENT_DOCUMENTS)
    np.save(path, decode(documents))


def _decode_documents(
    source: np.ndarray,
    decode: Decode,
    job: DecodeJob,
    others: list[subprocess.Popen[str]],
) -> None:
    for other in others:
        worker_process.tell(other, "go")
    tokens = decode(source)
    assert tokens.shape == (len(source), SIZES[job.size].new_tokens), (
        f"{tokens.shape} is not the work that was asked for"
    )
    for other in others:
        worker_process.answer(other, "T")


if __name__ == "__main__":
    if sys.argv[1] == "matrix_rate":
        print(matrix_rate(sys.argv[2], int(sys.argv[3])))
    else:
        engine_fields, *fields = json.loads(sys.argv[1])
        for reply in run_worker(DecodeJob(Engine(*engine_fields), *fields)):
            print(reply, flush=True)
