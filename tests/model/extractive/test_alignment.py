"""Lines of a reference and the sentences that say the same."""

from precis.model.extractive.alignment import AlignedLine, align_lines

ARTICLE = (
    "The valley was quiet for a week.",
    "At dawn on Monday, government troops seized the only bridge.",
    "The troops seized nothing else.",
)


def test_a_line_is_aligned_with_the_sentence_that_has_most_of_it():
    assert align_lines(ARTICLE, "Troops seized the bridge at dawn.") == [
        AlignedLine("Troops seized the bridge at dawn.", 1, 1.0)
    ]


def test_support_is_the_share_of_the_words_that_are_no_stop_words():
    # seized, bridge of seized, burned, bridge
    (aligned,) = align_lines(ARTICLE, "They seized and burned the bridge")
    assert (aligned.place, aligned.share) == (1, 2 / 3)
    # Stop words alone are compared as they are.
    (aligned,) = align_lines(ARTICLE, "for the")
    assert (aligned.place, aligned.share) == (0, 1.0)


def test_characters_of_longer_stop_words_count():
    # The stop word 了 does not count; 关 of the stop word 关于 does.
    (aligned,) = align_lines(["大桥今天关闭。"], "今天关闭了老桥。", "zh")
    assert aligned.share == 5 / 6


def test_of_equal_sentences_the_earlier_is_taken_and_lines_without_words_are_not():
    twice = ("Rain fell.", "Rain fell.")
    assert align_lines(twice, "Rain fell\n--\nRain") == [
        AlignedLine("Rain fell", 0, 1.0),
        AlignedLine("Rain", 0, 1.0),
    ]
