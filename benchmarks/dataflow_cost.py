"""What a million documents take on Dataflow: computed from rates that
docs/FIGURES.md has, not measured there.

    python benchmarks/dataflow_cost.py [--documents 1000000] [--vcpu_price 0.056]
                                       [--gb_price 0.003557] [--vcpus 100]

One virtual processor of a worker is taken for one of the two cores that were measured.
The start of the workers, the disk and the shuffle are not in the figures. Prices are
those of an hour, in dollars; they differ between regions and change.
"""

import argparse
from collections.abc import Sequence
from typing import NamedTuple

# Documents/s of one core; the jobs are sections of docs/FIGURES.md.
RATES = {
    "twelve extractive methods": 1 / 0.012,
    "network `tiny` and one extractive method, 32 tokens": 115.9 / 2,
    "network S, beam 4, 100 tokens": 11.83 / 2,
    "network B, beam 4, 100 tokens": 1.31 / 2,
    "network B, the same with mixed_bfloat16": 1.92 / 2,
}
# Memory of a virtual processor of the machine types -standard-4 (e2, n2), in GB.
GB_OF_A_VCPU = 4.0


class Plan(NamedTuple):
    """What a job takes.

    Attributes:
      vcpu_hours: of all workers.
      hours: from the first task to the last.
      dollars: for processors and memory.
      documents_per_dollar: what an accelerator has to beat.
    """

    vcpu_hours: float
    hours: float
    dollars: float
    documents_per_dollar: float


def plan(
    documents: int, rate: float, *, vcpus: int, vcpu_price: float, gb_price: float
) -> Plan:
    """What a job takes on a number of virtual processors.

    Args:
      documents: of the corpus.
      rate: documents/s of one core.
      vcpus: of all workers.
      vcpu_price: of an hour of a virtual processor.
      gb_price: of an hour of a GB of memory.
    """
    vcpu_hours = documents / rate / 3600
    dollars = vcpu_hours * (vcpu_price + GB_OF_A_VCPU * gb_price)
    return Plan(vcpu_hours, vcpu_hours / vcpus, dollars, documents / dollars)


def main(argv: Sequence[str] | None = None) -> None:
    """Prints a line for each job."""
    parser = argparse.ArgumentParser(description="Time and cost on Dataflow.")
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--vcpus", type=int, default=100)
    parser.add_argument("--vcpu_price", type=float, default=0.056)
    parser.add_argument("--gb_price", type=float, default=0.003557)
    flags = vars(parser.parse_args(argv))
    documents = flags.pop("documents")
    for job, rate in RATES.items():
        figures = plan(documents, rate, **flags)
        print(
            f"| {job} | {rate:,.1f} | {figures.vcpu_hours:,.1f} | "
            f"{60 * figures.hours:,.0f} min | ${figures.dollars:,.2f} | "
            f"{figures.documents_per_dollar:,.0f} |"
        )


if __name__ == "__main__":
    main()
