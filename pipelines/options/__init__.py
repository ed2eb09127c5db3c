"""The options of each job as frozen dataclasses; a field is a flag and a keyword.

The options of a corpus are defined with its readers, those of networks, searches and
trainings in `precis.model`. `PREPARE`, `TRAIN` and the like list the dataclasses that a
job takes, in the order of its --help.

table_address  what --table means
targets        the texts that a network can learn to write
extras         the packages that a command needs
recipes        the settings that --recipe of `precis train` names; summarizer_recipes
               those of `precis train-summarizer`
"""
