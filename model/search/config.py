"""The settings of a search; an imported bundle carries its own."""

import dataclasses

from precis.model.config import check_choices, flag
from precis.model.errors import UsageError

LENGTH_PENALTIES = ("none", "average", "wu")
REPETITION_PENALTIES = ("log_probs", "logits")
EARLY_STOPPING = ("never", "first_k", "bound")
UNFINISHED = ("last", "compete")
NUMBERS, NAMES = "numbers", "names"
# Pieces that the choice of candidates compares at once.
CANDIDATE_BLOCK = 64


@dataclasses.dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """Abstractive decoding; what an imported bundle sets itself comes before these
    defaults
    """

    beam_width: int = flag(
        4,
        "hypotheses kept at each step; 1 is greedy search",
        metavar="HYPOTHESES",
        is_common=True,
    )
    n_best: int = flag(
        1, "summaries kept for each document, best first", metavar="SUMMARIES"
    )
    length_penalty: float = flag(
        1.0,
        "alpha, the strength of the length penalty: 0 is none, larger values favour "
        "longer summaries",
        metavar="ALPHA",
    )
    length_penalty_form: str = flag(
        "wu",
        "what the log-probability of a summary of n pieces is divided by: "
        "wu ((5 + n) / 6)^alpha (Wu et al. 2016), average n^alpha, none 1",
        choices=LENGTH_PENALTIES,
    )
    coverage_penalty: float = flag(
        0.0,
        "beta of Wu et al. 2016: larger values favour summaries that read all of the "
        "source; 0 is off",
        metavar="BETA",
    )
    min_summary_tokens: int = flag(
        0, "pieces before the end is allowed", metavar="TOKENS"
    )
    max_summary_tokens: int = flag(
        128, "pieces after which a summary is cut", metavar="TOKENS"
    )
    no_repeat_ngram: int = flag(
        3,
        "no sequence of this many pieces occurs twice in a summary; 0 allows all",
        metavar="TOKENS",
    )
    repetition_penalty: float = flag(
        1.0,
        "log-probabilities of pieces that were written are multiplied by this "
        "(Keskar et al. 2019)",
        metavar="FACTOR",
    )
    repetition_penalty_form: str = flag(
        "log_probs",
        "what the repetition penalty multiplies: log_probs, or logits, which it "
        "divides where they are positive",
        choices=REPETITION_PENALTIES,
    )
    early_stopping: str = flag(
        "never",
        "when a document is done: never before no hypothesis can still win; "
        "first_k once beam_width have finished; "
        "bound once the best live one, ended now, would not win",
        choices=EARLY_STOPPING,
    )
    unfinished: str = flag(
        "last",
        "summaries cut at the maximum length: last behind all finished ones, "
        "compete by score alone",
        choices=UNFINISHED,
    )
    supported: str = flag(
        "",
        "facts that are written only as the source has them, with commas between "
        "them: numbers, with dates, and names",
        metavar="FACTS,...",
        takes_list=True,
    )
    common_pieces: int = flag(
        0,
        "pieces that a summary may hold beside single characters and the pieces of "
        "its source: the first of the vocabulary, which are the most common of one "
        "that `precis prepare` has learned; fewer are faster; 0 is all",
        metavar="PIECES",
    )
    beam_groups: int = flag(
        1,
        "groups of the beam that are pushed apart (Vijayakumar et al. 2018); "
        "1 is plain beam search",
        metavar="GROUPS",
    )
    diversity_penalty: float = flag(
        0.0,
        "subtracted from a piece's log-probability for each time an earlier group "
        "wrote it in this step",
        metavar="PENALTY",
    )

    def __post_init__(self) -> None:
        check_choices(self)
        if self.beam_width < 1:
            raise UsageError(f"--beam_width must be at least 1, not {self.beam_width}")
        if not 1 <= self.n_best <= self.beam_width:
            raise UsageError(
                f"--n_best must lie between 1 and --beam_width ({self.beam_width}), "
                f"not be {self.n_best}; widen the beam or ask for fewer"
            )
        if not 0 <= self.min_summary_tokens < self.max_summary_tokens:
            raise UsageError(
                f"--min_summary_tokens ({self.min_summary_tokens}) must be at least 0 "
                f"and below --max_summary_tokens ({self.max_summary_tokens})"
            )
        for name in (
            "no_repeat_ngram",
            "coverage_penalty",
            "diversity_penalty",
            "common_pieces",
        ):
            value = getattr(self, name)
            if value < 0:
                raise UsageError(
                    f"--{name} must not be negative, but is {value}; 0 turns it off"
                )
        if self.repetition_penalty <= 0:
            raise UsageError(
                f"--repetition_penalty must be above 0, not {self.repetition_penalty}; "
                "1 turns it off"
            )
        for name in self.supported_kinds:
            if name not in (NUMBERS, NAMES):
                raise UsageError(
                    f"--supported: there are no facts {name!r}; there are "
                    f"{NUMBERS} and {NAMES}"
                )
        if self.beam_groups < 1 or self.beam_width % self.beam_groups:
            raise UsageError(
                f"--beam_groups ({self.beam_groups}) must divide "
                f"--beam_width ({self.beam_width})"
            )

    @property
    def supported_kinds(self) -> tuple[str, ...]:
        """The names in `supported`, in order."""
        names = (name.strip() for name in self.supported.split(","))
        return tuple(name for name in names if name)

    def limited_to(self, max_target_tokens: int) -> "SearchConfig":
        """The search with lengths that a network can write.

        Args:
          max_target_tokens: of the network.
        """
        limit = min(self.max_summary_tokens, max_target_tokens)
        return dataclasses.replace(
            self,
            max_summary_tokens=limit,
            min_summary_tokens=min(self.min_summary_tokens, limit - 1),
        )


def check_coverage(config: SearchConfig, *, has_pointer: bool) -> None:
    """Refuses a coverage penalty that could not have an effect.

    Raises:
      UsageError: the network has no pointer to count coverage, or the beam has a width
        of 1, so that there are no summaries to weigh against each other.
    """
    if config.coverage_penalty and not has_pointer:
        raise UsageError(
            "--coverage_penalty weighs what the pointer has read of the source, "
            "and this network has no pointer; leave it at 0"
        )
    if config.coverage_penalty and config.beam_width == 1:
        raise UsageError(
            "--coverage_penalty weighs summaries against each other, "
            "so it needs a --beam_width of at least 2"
        )


def check_common_pieces(config: SearchConfig, *, has_one_vocabulary: bool) -> None:
    """Refuses to take pieces of a source into another vocabulary.

    Raises:
      UsageError: source and summary have a vocabulary each.
    """
    if config.common_pieces and not has_one_vocabulary:
        raise UsageError(
            "--common_pieces adds the pieces of the source to those of a summary, and "
            "this network has a vocabulary for each; leave it at 0"
        )


def check_supported(config: SearchConfig, *, has_one_vocabulary: bool) -> None:
    """Refuses to compare pieces of two vocabularies.

    Raises:
      UsageError: facts are to be those of the source, whose pieces are other ones.
    """
    if config.supported_kinds and not has_one_vocabulary:
        raise UsageError(
            "--supported compares the pieces of summary and source, and this network "
            "has a vocabulary for each; leave it empty"
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class SpecialTokens:
    """The token ids that a search needs to know.

    They come from the tokenizer and, for imported networks, from the checkpoint.

    Attributes:
      start_id: stands before the first token; not part of the summary.
      end_id: the last token of a summary.
      pad_id: fills the places after the end token.
      suppressed: tokens that are never written.
      prefix: the first tokens of every summary. They are given, so they cost no
        probability.
      last_id: written at the last place of a summary that reaches the maximum length;
        costs no probability.
    """

    start_id: int
    end_id: int
    pad_id: int
    suppressed: tuple[int, ...] = ()
    prefix: tuple[int, ...] = ()
    last_id: int | None = None
