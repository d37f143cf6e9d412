"""The command `optimus`: a face for people in terminals and for scripts.

Why: the same nouns and verbs as in files and in Python, learnt once.
Owns: commands, their help, exit codes (0 done, 1 refused or failed, 2 wrong usage), and how records look in a terminal.
Must not: know a rule of scheduling. It plays, asks and shows.
"""
