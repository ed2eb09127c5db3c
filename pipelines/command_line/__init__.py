"""The command line and the functions of `import precis`.

cli              handles signals, then imports the rest
ending           how a command ends at a signal
run_command      runs one command
commands         the commands: flags and help
corpus_commands, bundle_commands, train_commands, result_commands
                 what each command runs and prints
signatures       the functions of `import precis`, from the same dataclasses
"""
