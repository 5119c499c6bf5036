"""The ``kmt`` command: a circuit beside Lloyd's algorithm, on your data, judged step by step.

data         files and built-in data sets
experiment   settings -> circuit, run, judgement
temperature  the inverse temperature that a margin asks for
backends     NumPy, torch or exact rationals
report       what is printed
figure       what is drawn
files        what is written, whole or not at all
demo         what ``kmt demo`` runs
main         the commands
start        the console script
"""
