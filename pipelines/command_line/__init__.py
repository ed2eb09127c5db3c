"""The command line and the functions of `import precis`.

cli              handles signals, then imports the rest
run_command      runs one command
commands         the commands: flags, help, what each prints; train_commands,
                 result_commands
signatures       the functions of `import precis`, from the same dataclasses
"""
