"""What a TPU needs of a training, on this processor: batches of one shape, a step that
is traced once, and a loop of steps that is traced once.
"""

import pytest
from support.small_training import losses, prepare_training, reports

from precis.model.errors import UsageError
from precis.model.training import state, step_runner


@pytest.mark.slow
def test_with_fixed_shapes_a_step_and_a_loop_are_traced_once(
    records_folder, tmp_path, monkeypatch
):
    """Two epochs with incomplete batches, accumulation and loops of three lengths."""
    monkeypatch.setattr(state, "needs_fixed_shapes", lambda _: True)
    functions = []

    def kept(make):
        def make_and_keep(*arguments, **settings):
            functions.append(make(*arguments, **settings))
            return functions[-1]

        return make_and_keep

    for module, name in (
        (step_runner, "make_train_step"),
        (step_runner, "make_train_loop"),
    ):
        monkeypatch.setattr(module, name, kept(getattr(module, name)))
    training = prepare_training(
        records_folder, tmp_path, steps_per_loop=3, accumulate=2
    )
    training.run()
    assert training.position.epoch >= 1
    step, loop = functions
    assert step.experimental_get_tracing_count() == 1
    assert loop.experimental_get_tracing_count() == 1
    (batch,), _ = step.get_concrete_function().structured_input_signature
    # 2400 // (192 + 49) = 9 rows, filled up to an even number.
    assert {name: tuple(spec.shape) for name, spec in batch.items()} == {
        "source": (10, 192),
        "target": (10, 49),
        "expected": (10, 49),
        "shard": (10,),
    }
    # Rows of padding are no tokens: every record is counted once an epoch.
    tokens = [row["tokens"] for row in reports(tmp_path)]
    assert len(losses(tmp_path)) == 12 and len(set(tokens)) > 1


def test_batches_of_one_shape_make_another_training(
    records_folder, tmp_path, monkeypatch
):
    """They hold other documents, so a TPU does not go on with a training of GPUs."""
    training = prepare_training(records_folder, tmp_path)
    state.save_state(training.setup, training.state)
    monkeypatch.setattr(state, "needs_fixed_shapes", lambda _: True)
    with pytest.raises(UsageError, match="other settings: fixed_shapes is .* here"):
        prepare_training(records_folder, tmp_path)


def test_a_loop_of_steps_on_several_devices_is_refused():
    state.check_loop(50, devices=1)
    state.check_loop(1, devices=8)
    with pytest.raises(
        UsageError, match="--steps_per_loop 50 works on one device, and there are 8;"
    ):
        state.check_loop(50, devices=8)
