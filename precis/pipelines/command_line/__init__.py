"""The command line and the functions of `import precis`.

cli            handles signals, then imports the other modules
run_command    runs one command
commands       the flags, functions and help of each command
parser         the parser of a command, made from dataclasses, and --config
results        prints the result of each command
functions      the functions of `import precis`, with flags as keywords
"""
