"""The speed of network, loss, optimizer and search on Keras's JAX backend, on the
device that JAX finds: a GPU, a TPU or a processor.

    pip install '.[jax]'        # on a GPU: pip install 'jax[cuda13]'
    python benchmarks/accelerator.py --network small --precision mixed_bfloat16

prints tokens/s of training, documents/s of beam search, and the share of the chip's
peak that their matrix products use. The peak is given in TFLOP/s or measured by one
large product. Everything is compiled before it is timed; the results are medians.
"""

import argparse
import os
import statistics
import time

os.environ["KERAS_BACKEND"] = "jax"

import jax
import jax.numpy as jnp
import keras
import numpy as np

from precis.model.network.architectures import named_network
from precis.model.network.build import build_network
from precis.model.search.beam import beam_search
from precis.model.search.config import SearchConfig, SpecialTokens
from precis.model.training.config import TrainingConfig
from precis.model.training.loss import smoothed_cross_entropy
from precis.model.training.optimizer import make_optimizer

PAD, START, END = 0, 2, 3


def main() -> None:
    """Parses the flags, runs the benchmark and prints the results."""
    args = parse_options()
    config = named_network(
        args.network,
        architecture=args.architecture,
        vocabulary_size=args.vocabulary_size,
        pad_id=PAD,
        pointer=args.pointer,
        max_source_tokens=args.source_tokens,
        max_target_tokens=args.target_tokens,
    )
    network = build_network(config, precision=args.precision)
    rng = np.random.default_rng(0)
    source = random_tokens(rng, args, args.source_tokens)
    target = random_tokens(rng, args, args.target_tokens)
    parameters = sum(
        int(np.prod(weight.shape)) for weight in network.trainable_variables
    )
    peak = args.peak_tflops * 1e12 or measure_peak(args.precision)
    device = jax.devices()[0]
    print(f"device {device.platform} {device.device_kind}")
    print(f"parameters {parameters:,}")
    print(f"peak {peak / 1e12:.2f} TFLOP/s")

    # A step takes six operations for each parameter and token, forward and backward,
    # a search two (Kaplan et al. 2020, section 2.1). An embedding that is not also the
    # output layer is in no product.
    matrices = parameters
    if not config.tied_output:
        matrices -= args.vocabulary_size * config.width
    tokens = source.size + target.size
    seconds = statistics.median(
        train_seconds(network, source, target, rounds=args.rounds)
    )
    print(f"train {tokens / seconds:,.0f} tokens/s")
    print(f"train_share_of_peak {6 * matrices * tokens / seconds / peak:.1%}")
    tokens = source.size + args.documents * args.beam_width * args.target_tokens
    seconds = statistics.median(search_seconds(network, source, args))
    print(f"search {args.documents / seconds:.2f} documents/s")
    print(f"search_share_of_peak {2 * matrices * tokens / seconds / peak:.1%}")


def parse_options() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--network", default="small")
    parser.add_argument("--architecture", default="transformer")
    parser.add_argument(
        "--pointer", action=argparse.BooleanOptionalAction, default=True
    )
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--documents", type=int, default=32, help="of a batch")
    parser.add_argument("--source_tokens", type=int, default=400)
    parser.add_argument("--target_tokens", type=int, default=100)
    parser.add_argument("--vocabulary_size", type=int, default=16_000)
    parser.add_argument("--beam_width", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--peak_tflops",
        type=float,
        default=0.0,
        help="of the chip in this precision; 0 measures one large product",
    )
    return parser.parse_args()


def random_tokens(
    rng: np.random.Generator, args: argparse.Namespace, length: int
) -> np.ndarray:
    """Documents of one length without special tokens, int32 [B, length]."""
    tokens = rng.integers(4, args.vocabulary_size, (args.documents, length))
    return tokens.astype("int32")


def train_seconds(
    network: keras.Model, source: np.ndarray, target: np.ndarray, *, rounds: int
) -> list[float]:
    """The seconds of training steps on one batch; the loss must fall."""
    optimizer = make_optimizer(
        TrainingConfig(learning_rate=1e-3, warmup_steps=1), network.config.width
    )
    optimizer.build(network.trainable_variables)
    start = np.full((len(target), 1), START, "int32")
    shifted = np.concatenate([start, target[:, :-1]], axis=1)

    def loss(trainable: list, other: list) -> tuple:
        mapping = [
            *zip(network.trainable_variables, trainable, strict=True),
            *zip(network.non_trainable_variables, other, strict=True),
        ]
        with keras.StatelessScope(state_mapping=mapping) as scope:
            prediction = network.predict_next(source, shifted, training=True)
            sums = smoothed_cross_entropy(
                prediction, jnp.asarray(target), pad_id=PAD, smoothing=0.1
            )
        other = [
            scope.get_current_value(variable)
            for variable in network.non_trainable_variables
        ]
        return sums.loss / sums.tokens, other

    @jax.jit
    def step(trainable: list, other: list, state: list) -> tuple:
        (value, other), gradients = jax.value_and_grad(loss, has_aux=True)(
            trainable, other
        )
        trainable, state = optimizer.stateless_apply(state, gradients, trainable)
        return value, trainable, other, state

    variables = (
        network.trainable_variables,
        network.non_trainable_variables,
        optimizer.variables,
    )
    state = tuple([variable.value for variable in part] for part in variables)
    first, *state = step(*state)
    jax.block_until_ready(first)
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        value, *state = step(*state)
        jax.block_until_ready(state)
        seconds.append(time.perf_counter() - started)
    assert float(value) < float(first), (float(first), float(value))
    return seconds


def search_seconds(
    network: keras.Model, source: np.ndarray, args: argparse.Namespace
) -> list[float]:
    """The seconds of searches of one batch for summaries of exactly `target_tokens`."""
    length = args.target_tokens
    config = SearchConfig(
        beam_width=args.beam_width,
        max_summary_tokens=length,
        min_summary_tokens=length - 1,
    )
    special = SpecialTokens(
        start_id=START, end_id=END, pad_id=PAD, suppressed=(PAD, START)
    )

    @jax.jit
    def search(values: list, source: jax.Array) -> jax.Array:
        with keras.StatelessScope(
            state_mapping=list(zip(network.variables, values, strict=True))
        ):
            result = beam_search(
                network,
                network.encode(source),
                batch=len(source),
                config=config,
                special=special,
            )
        return result.tokens

    values = [variable.value for variable in network.variables]
    jax.block_until_ready(search(values, source))
    seconds = []
    for _ in range(args.rounds):
        started = time.perf_counter()
        jax.block_until_ready(search(values, source))
        seconds.append(time.perf_counter() - started)
    return seconds


def measure_peak(precision: str) -> float:
    """Operations a second of a large matrix product, the fastest of ten."""
    dtype = "float32" if precision == "float32" else precision.removeprefix("mixed_")
    size = 8192 if jax.devices()[0].platform != "cpu" else 2048
    square = jnp.ones((size, size), dtype)
    product = jax.jit(jnp.matmul)
    jax.block_until_ready(product(square, square))
    seconds = []
    for _ in range(10):
        started = time.perf_counter()
        jax.block_until_ready(product(square, square))
        seconds.append(time.perf_counter() - started)
    return 2 * size**3 / min(seconds)


if __name__ == "__main__":
    main()
