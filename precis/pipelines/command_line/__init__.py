"""The command line and the functions of `import precis`.

cli            handles signals, then imports the rest
run_command    runs one command
commands       the commands: their flags, what they call, and their help
parser         the parser of a command, from dataclasses, and --config
results        what each command prints
functions      the functions of `import precis`, with the flags as keywords
"""
