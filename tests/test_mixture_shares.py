"""The share of each record set in an epoch of a mixture, and the order of turns."""

from precis.model.training.mixture import Part, epoch_span, turns


def spans(parts, number: int, epochs: int) -> list[tuple[int, int]]:
    return [epoch_span(parts, number, epoch) for epoch in range(epochs)]


def test_an_epoch_goes_on_where_the_epoch_before_stopped_by_hand():
    parts = (Part(2, 6, 1), Part(1, 2, 1))
    assert spans(parts, 0, 3) == [(0, 4), (4, 8), (8, 12)]
    assert spans(parts, 1, 3) == [(0, 4), (4, 8), (8, 12)]
    thirds = (Part(1, 5, 1), Part(1, 5, 2))  # 3 1/3 and 6 2/3 of ten
    assert spans(thirds, 0, 4) == [(0, 3), (3, 6), (6, 10), (10, 13)]
    assert spans(thirds, 1, 4) == [(0, 6), (6, 13), (13, 20), (20, 26)]


def test_a_set_alone_is_read_once_an_epoch_whatever_its_weight():
    for weight in (0.1, 0.7, 1 / 3, 3):
        assert all(
            epoch_span([Part(1, 7, weight)], 0, epoch) == (7 * epoch, 7 * epoch + 7)
            for epoch in range(200)
        )


def test_whole_shares_are_exact():
    parts = (Part(1, 40, 0.29), Part(1, 60, 0.71))
    assert int(0.29 * 100) == 28  # in floating point
    assert all(
        epoch_span(parts, 0, epoch) == (29 * epoch, 29 * epoch + 29)
        for epoch in range(200)
    )


def test_turns_are_evenly_spread_by_hand():
    assert turns([4, 4]).tolist() == [0, 1, 0, 1, 0, 1, 0, 1]
    # The documents stand at 1/12 3/12 5/12 7/12 9/12 11/12 and at 3/12 9/12.
    assert turns([6, 2]).tolist() == [0, 0, 1, 0, 0, 0, 1, 0]
    assert turns([1, 3, 2]).tolist() == [1, 2, 0, 1, 2, 1]
    assert turns([0, 2]).tolist() == [1, 1] and turns([3]).tolist() == [0, 0, 0]
