"""YAML in which each value stands once: no aliases, and no name twice in a mapping."""

from typing import Any

import yaml

# PyYAML raises all of these of a text that it cannot read, as of `!!int x` or of
# lists within lists.
YAML_ERRORS = (
    *(ValueError, LookupError, AttributeError, RecursionError),
    yaml.YAMLError,
)


class StrictLoader(yaml.SafeLoader):
    """Reads YAML without aliases, by which a few lines could fill the memory."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """The next node.

        Raises:
          MarkedYAMLError: it is an alias.
        """
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()
            raise yaml.MarkedYAMLError(
                problem=f"*{event.anchor} is an alias; write the value in its place",
                problem_mark=event.start_mark,
            )
        node: yaml.Node | None = super().compose_node(parent, index)
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> Any:
        """A mapping.

        Raises:
          MarkedYAMLError: it has a name twice.
        """
        names = set()
        for key, _ in node.value:
            name = str(key.value)  # A list, which is refused below, has no hash.
            if name in names:
                raise yaml.MarkedYAMLError(
                    problem=f"{name} is there twice; take one out",
                    problem_mark=key.start_mark,
                )
            names.add(name)
        return super().construct_mapping(node, deep)
