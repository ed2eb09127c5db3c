"""Flags: values by name become frozen dataclasses.

flags           from a field of a dataclass to a flag, and from values to dataclasses
command_parser  the parser of a command, and its help
config_file     the values of --config FILE
strict_yaml     its YAML
command_words   the words behind a command, over the values of --config
"""
