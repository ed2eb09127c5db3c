"""`precis train`: what its flags lead to, and as a command that goes on exactly after a
signal.
"""

import json
import shlex
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import read_table
from support.command_line import command_words, error_lines
from support.plain_network import scramble
from support.shared_networks import eagerly, shared_networks
from support.signalled import Ended, end_by_signal
from support.small_training import VOCABULARY, network_config, reports

from precis.model.bundle.network_bundle import load_bundle, save_bundle
from precis.model.errors import UsageError
from precis.model.network.build import build_network
from precis.model.network.config import EncoderConfig
from precis.model.tokenization.folder import load_tokenizers
from precis.pipelines.training.train import train

# So many that a signal comes long before the last.
STEPS = {"steps": 100, "checkpoint_steps": 5, "warmup_steps": 10}
SMALL = {"width": 16, "heads": 2, "feed_forward": 32}
PACE = {"batch_tokens": 1500, "validation_steps": 0, "strategy": "one"}


def newest(output: Path) -> str:
    """The newest checkpoint that is complete, or nothing."""
    found = output.glob("training/checkpoints/*/state.json")
    return max((path.parent.name for path in found), default="")


@pytest.mark.slow
def test_a_killed_and_stopped_command_ends_as_undisturbed(records_folder, tmp_path):
    """Killed wherever it was, told to stop when it went on, then finished."""
    ended, whole = tmp_path / "ended", tmp_path / "whole"
    settings = {"records": records_folder, "network": "tiny", "encoder_layers": 1}
    settings |= {"decoder_layers": 1, **SMALL, **STEPS, **PACE}
    flags = command_words("train", **settings, output=ended)

    def end_command(number: signal.Signals) -> Ended:
        """Sends a signal after the first checkpoint of this start."""
        before, folder = newest(ended), tmp_path / number.name
        done = end_by_signal(
            flags, number, lambda _: newest(ended) != before, folder=folder
        )
        assert not (ended / "manifest.json").exists(), "it ended before the signal came"
        return done

    assert end_command(signal.SIGKILL).code == -signal.SIGKILL
    for number in (signal.SIGTERM, signal.SIGINT):
        done = end_command(number)
        assert done.code == 128 + number and not done.left
        last = int(newest(ended).removeprefix("step-"))
        kept = f"the training was saved at step {last}"
        (line,) = error_lines("\n".join(done.lines), "train")
        # Where the disk has other work, the command is killed and the step is lost.
        if "finished work" in line:
            kept = "finished work is kept"
        said = f"stopped by {number.name}; {kept}; continue with: "
        assert line == f"precis train: {said}{shlex.join(['precis', *flags])}"
        steps = [row["step"] for row in reports(ended)]
        assert steps[:last] == list(range(1, last + 1))
    with shared_networks():
        for output in (ended, whole):
            assert train(**settings, output=str(output)).step == 100
    for name in ("training/losses.jsonl", "weights.safetensors"):
        assert (ended / name).read_bytes() == (whole / name).read_bytes()


def one_step(records, output, **flags) -> tuple[dict[str, Any], dict[str, Any]]:
    """The network's part of the configuration of a bundle that was trained a step, and
    its provenance.
    """
    settings = {**PACE, "steps": 1, "batch_tokens": 400}
    with eagerly():
        train(records=records, output=str(output), **settings, **flags)
    config, manifest = (
        json.loads((output / f"{name}.json").read_text())
        for name in ("config", "manifest")
    )
    return config["network"], manifest["provenance"]


def test_a_shape_and_several_tasks_by_flags(records_folder, copy_records, tmp_path):
    other = copy_records(tmp_path / "other")
    vector = " ".join(map(str, range(16)))
    (tmp_path / "vectors.txt").write_text(f"1 16\nthe {vector}\n")
    limits = {"max_source_tokens": 40, "max_target_tokens": 12}
    shape = {"layers": 1, "dropout": 0.2, "pointer": False, **limits, **SMALL}
    flags = {"network": "tiny", "architecture": "decoder_only", **shape}
    flags["word_vectors"] = str(tmp_path / "vectors.txt")
    records = f"{records_folder},{other}"
    network, provenance = one_step(records, tmp_path / "bundle", **flags)
    assert network.items() >= {"vocabulary_size": VOCABULARY, **shape}.items()
    assert provenance["training"]["steps"] == 1
    # "the" and its other pieces, as at the beginning of a sentence.
    assert int(provenance["start"]["word_vectors_found"].split(" of ")[0]) >= 1


def test_fine_tuning_by_its_recipe(records_folder, tmp_path):
    tokenizer, first = load_tokenizers(records_folder).target, str(tmp_path / "first")
    built = build_network(network_config())
    save_bundle(first, network=built, tokenizer=tokenizer, provenance={})
    flags = {"init_from": first, "recipe": "fine_tune", "patience": 0}
    network, provenance = one_step(records_folder, tmp_path / "second", **flags)
    assert network["width"] == 16
    assert provenance["training"]["learning_rate"] == 3e-5
    dataset = json.loads(Path(records_folder, "dataset.json").read_text())
    assert provenance["records_fingerprint"] == dataset["fingerprint"]
    assert provenance["start"]["init_from"] == load_bundle(first).model_id


def test_an_encoder_that_stays_as_it_is_and_a_new_decoder(records_folder, tmp_path):
    shape = {"width": 12, "heads": 3, "feed_forward": 20, "encoder_layers": 1}
    tokenizer, folder = load_tokenizers(records_folder).source, str(tmp_path / "e")
    limits = {"vocabulary_size": VOCABULARY, "pad_id": 0, "max_source_tokens": 30}
    encoder = build_network(EncoderConfig(**limits, **shape))
    scramble(encoder, seed=4)
    save_bundle(folder, network=encoder, tokenizer=tokenizer, provenance={})
    flags = {"encoder": folder, "freeze_encoder": True, "decoder_layers": 1, **SMALL}
    output = tmp_path / "bundle"
    network, _ = one_step(records_folder, output, network="tiny", **flags)
    assert (network["width"], network["decoder_stack"]["width"]) == (12, 16)
    trained, given = (
        {each.path.split("/", 1)[1]: each.numpy() for each in built.weights}
        for built in (load_bundle(str(output)).network, encoder)
    )
    for path, values in given.items():
        np.testing.assert_array_equal(trained[path], values, err_msg=path)


@pytest.mark.parametrize(("flags", "message"), read_table("refusals")["train_command"])
def test_contradictory_flags_are_refused(records_folder, tmp_path, flags, message):
    with pytest.raises(UsageError, match=message):
        train(records=records_folder, output=str(tmp_path / "o"), **flags)
    assert not (tmp_path / "o").exists()
