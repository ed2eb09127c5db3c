"""`precis attention`: weights with the tokens they belong to, and their picture."""

import numpy as np
import pytest
import tensorflow as tf
from support.command_line import precis
from support.plain_network import scramble
from support.small_training import network_config

from precis.model.bundle.network_bundle import Bundle, save_bundle
from precis.model.errors import DataError, UsageError
from precis.model.inference.attention import HeadWeights, read_attention
from precis.model.inference.heat_map import draw, most_read
from precis.model.inference.searcher import Searcher
from precis.model.network.build import build_network
from precis.model.network.config import DecoderOnlyConfig
from precis.model.search.config import SearchConfig
from precis.model.search.special import special_tokens
from precis.model.tokenization.folder import load_tokenizers
from precis.pipelines.bundles.attention import attention as attention_command

TEXT = "Rain fell on Paris. Nobody was hurt."
SUMMARY = "Rain fell."
SEARCH = SearchConfig(beam_width=1, max_summary_tokens=7, min_summary_tokens=3)


def make_bundle(records_folder, config) -> Bundle:
    tokenizer = load_tokenizers(records_folder).target
    network = build_network(config)
    scramble(network, seed=2)
    return Bundle(network, tokenizer, tokenizer, "id", None)


@pytest.fixture(scope="module")
def bundle(records_folder) -> Bundle:
    config = network_config(encoder_layers=2, decoder_layers=3, width=8)
    return make_bundle(records_folder, config)


def pieces(bundle, ids):
    return [bundle.tokenizer.vocabulary[token] for token in ids]


def test_weights_stand_with_the_tokens_they_belong_to(bundle):
    (source,) = bundle.tokenizer.encode([TEXT])
    (written,) = bundle.tokenizer.encode(["Rain fell."])
    attention = read_attention(
        bundle, TEXT, block="cross", layer=2, decoding=SEARCH, summary="Rain fell."
    )
    assert attention.columns == pieces(bundle, source)
    assert attention.rows == [*pieces(bundle, written), "[END]"]
    assert (attention.block, attention.layer) == ("cross", 2)
    assert attention.weights.shape == (2, len(written) + 1, len(source))
    np.testing.assert_allclose(attention.weights.sum(axis=-1), 1.0, rtol=1e-5)
    # The weights of a row are read while its token is chosen: the input of the network
    # ends with the token before.
    inputs = np.array([[bundle.tokenizer.start_id, *written]], "int32")
    maps = bundle.network.attention(source[None].astype("int32"), inputs)
    (cross,) = (part for part in maps if (part.block, part.layer) == ("cross", 1))
    np.testing.assert_array_equal(attention.weights, cross.weights[0])


def test_a_text_is_cut_at_the_length_that_the_network_reads(bundle):
    limit = bundle.network.config.max_source_tokens
    (source,) = bundle.tokenizer.encode([TEXT * 40])
    assert len(source) > limit
    attention = read_attention(
        bundle, TEXT * 40, block="cross", layer=0, decoding=SEARCH, summary="Rain."
    )
    assert attention.columns == pieces(bundle, source[:limit])


def test_every_block_has_its_tokens(bundle):
    length = len(bundle.tokenizer.encode([TEXT])[0])
    steps = len(bundle.tokenizer.encode([SUMMARY])[0]) + 1
    shapes = {}
    for block in ("encoder", "self", "cross", "copy"):
        attention = read_attention(
            bundle, TEXT, block=block, layer=0, decoding=SEARCH, summary=SUMMARY
        )
        tokens = (len(attention.rows), len(attention.columns))
        assert attention.weights.shape[1:] == tokens
        shapes[block] = (attention.layer, *attention.weights.shape)
    assert shapes == {
        "encoder": (2, 2, length, length),
        "self": (3, 2, steps, steps),
        "cross": (3, 2, steps, length),
        "copy": (1, 1, steps, length),
    }


@pytest.fixture
def eagerly():
    """Without graphs, which take longer to build than a short search runs."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.mark.usefixtures("eagerly")
def test_without_a_summary_it_is_the_one_that_the_network_writes(bundle):
    special = special_tokens(bundle.tokenizer)
    (source,) = bundle.tokenizer.encode([TEXT])
    searcher = Searcher(bundle.network, config=SEARCH, special=special)
    ((best,),) = searcher.search([source.astype("int32")])
    attention = read_attention(bundle, TEXT, block="self", layer=0, decoding=SEARCH)
    assert attention.rows == pieces(bundle, best.tokens)
    assert attention.columns == ["[START]", *attention.rows[:-1]]
    assert 3 <= len(attention.rows) <= 7


def test_a_decoder_only_network_reads_source_and_summary_as_one(records_folder):
    config = DecoderOnlyConfig(
        vocabulary_size=load_tokenizers(records_folder).target.vocabulary_size,
        pad_id=0,
        width=8,
        heads=2,
        feed_forward=8,
        layers=1,
        max_target_tokens=20,
    )
    bundle = make_bundle(records_folder, config)
    given = {"layer": 1, "decoding": SEARCH, "summary": SUMMARY}
    attention = read_attention(bundle, TEXT, block="self", **given)
    rows = attention.rows
    assert attention.columns[-len(rows) :] == ["[START]", *rows[:-1]]
    with pytest.raises(
        UsageError,
        match="--block cross: this network has none; it has encoder, self, copy; self "
        "reads the source and the summary as one",
    ):
        read_attention(bundle, TEXT, block="cross", **given)


def test_layers_that_are_not_there_are_refused(bundle):
    with pytest.raises(
        UsageError, match="--layer 4: the block cross has the layers 1 to 3"
    ):
        read_attention(
            bundle, TEXT, block="cross", layer=4, decoding=SEARCH, summary=SUMMARY
        )


# The picture


def test_the_columns_with_the_largest_weights_are_drawn_in_their_order():
    weights = np.array(
        [
            [[0.1, 0.5, 0.1, 0.3], [0.0, 0.1, 0.2, 0.7]],
            [[0.25, 0.25, 0.4, 0.1], [0.1, 0.2, 0.35, 0.35]],
        ]
    )
    assert most_read(weights, 3).tolist() == [1, 2, 3]
    assert most_read(weights, 1).tolist() == [3]
    assert most_read(weights, 0).tolist() == [0, 1, 2, 3]
    assert most_read(weights, 4).tolist() == [0, 1, 2, 3]


def draw_to(path, block="copy", **flags):
    """Draws three heads, each row of which reads a single token, and reads the picture
    back, float32 [height, width, 4].
    """
    from matplotlib import image

    rng = np.random.default_rng(0)
    weights = np.zeros((3, 4, 5), "float32")
    weights[np.arange(3)[:, None], np.arange(4), rng.integers(0, 5, (3, 4))] = 1.0
    rows = ["▁a", "$5", "▁␤", "[END]"]
    columns = [f"▁{number}" for number in range(5)]
    with open(path, "wb") as file:
        draw(HeadWeights(block, 2, weights, rows, columns), file, **flags)
    return image.imread(path)


# The colours of the weights one and zero.
YELLOW = (0.993248, 0.906157, 0.143936)
PURPLE = (0.267004, 0.004874, 0.329415)


@pytest.mark.parametrize("heads", [None, [2]])
def test_a_picture_has_a_cell_for_each_weight(tmp_path, heads):
    """Of each head's 20 cells four are one, and the others zero."""
    picture = draw_to(tmp_path / "drawn.png", heads=heads)[..., :3]
    ones, zeros = (
        (abs(picture - colour) < 0.02).all(axis=-1).sum() for colour in (YELLOW, PURPLE)
    )
    assert 0.18 < ones / (ones + zeros) < 0.22


@pytest.mark.filterwarnings("error")
def test_a_picture_has_a_glyph_for_a_line_break(tmp_path):
    # matplotlib warns of a missing glyph, which is an error here.
    assert draw_to(tmp_path / "drawn.png").size > 0


def test_fewer_columns_make_a_narrower_picture(tmp_path):
    two = draw_to(tmp_path / "two.png", most_columns=2, heads=[1])
    five = draw_to(tmp_path / "five.png", heads=[1])
    assert two.shape[1] < five.shape[1]


# The command


@pytest.fixture(scope="module")
def flags(bundle, tmp_path_factory) -> dict:
    """A bundle, and the files of an article and a summary."""
    folder = tmp_path_factory.mktemp("attention")
    save_bundle(
        str(folder / "bundle"),
        network=bundle.network,
        tokenizer=bundle.tokenizer,
        provenance={},
    )
    (folder / "a.txt").write_text(TEXT)
    (folder / "s.txt").write_text(SUMMARY)
    return {
        "bundle": str(folder / "bundle"),
        "text": str(folder / "a.txt"),
        "summary": str(folder / "s.txt"),
    }


def size_of(path) -> tuple[int, int]:
    """The width and height of a PNG in pixels."""
    head = path.read_bytes()[:24]
    assert head.startswith(b"\x89PNG")
    return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")


def test_the_command_draws_the_mean_of_all_heads_one_head_or_the_copies(
    flags, tmp_path
):
    mean, one_head, copied = (tmp_path / f"{name}.png" for name in ("mean", "1", "c"))
    assert precis("attention", output=mean, **flags) == 0
    written = attention_command(output=str(one_head), heads=[2], **flags)
    assert written == str(one_head)
    attention_command(output=str(copied), block="copy", **flags)
    assert size_of(mean)[0] == 1600
    # The copy distribution is drawn in tokens, of which there are more than words.
    assert size_of(one_head) < size_of(copied)


@pytest.mark.parametrize(
    ("content", "changes", "words"),
    [
        (None, {}, "--text .*other.txt: there is no such file; name one with plain"),
        (b"  \n", {}, "--text .*other.txt holds no text; name a file with an article"),
        (b"Caf\xe9", {}, "other.txt: byte 3 is no UTF-8; convert the file"),
        (b"Rain.", {"heads": "1,3"}, "--heads 1,3: the block cross has the heads 1 to"),
        (b"Rain.", {"heads": "0"}, "--heads is mean, all, or numbers from 1 on .*'0'"),
        (
            b"Rain.",
            {"heads": "1,"},
            "--heads is mean, all, or numbers from 1 on .*'1,'",
        ),
        (b"Rain.", {"layer": -1}, "--layer must not be negative, but is -1"),
        (
            b"Rain.",
            {"task_prefix": "x: "},
            "--task_prefix 'x: ' is not one that the network was trained with; it "
            "knows none",
        ),
        (b"Rain.", {"output": ""}, "--output is empty; name a file"),
        (
            b"Rain.",
            {"block": "other"},
            "--block is one of encoder, self, cross, copy, not 'other'",
        ),
    ],
)
def test_a_wrong_text_or_flag_is_refused(flags, tmp_path, content, changes, words):
    article, output = tmp_path / "other.txt", tmp_path / "p.png"
    if content is not None:
        article.write_bytes(content)
    given = {**flags, "text": str(article), "output": str(output), **changes}
    with pytest.raises((UsageError, DataError), match=words):
        attention_command(**given)
    assert not output.exists()
