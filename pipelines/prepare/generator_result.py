"""A generator that is read by other code, and what it returns at its end."""

from collections.abc import Generator, Iterator
from typing import Generic, TypeVar

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


class GeneratorResult(Generic[ItemT, ResultT]):
    """Yields the items of a generator and keeps the value that it returns.

        tables = GeneratorResult(make_tables(documents))
        write_parquet(path, tables, schema)     # reads the generator to its end
        totals = tables.result

    Attributes:
      result: what the generator returned; there only when it was read to its end.
    """

    result: ResultT

    def __init__(self, generator: Generator[ItemT, None, ResultT]) -> None:
        self._generator = generator

    def __iter__(self) -> Iterator[ItemT]:
        """The items of the generator, once."""
        self.result = yield from self._generator
