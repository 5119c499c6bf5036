"""Proofs: every claim of the project derived step by step, each step checked by a program.

``proofs.derivations`` holds one module per claim. A derivation is a list of parts, a part a chain
of expressions, and each link of the chain carries the reason in words and the check that SymPy
runs. The site prints these very objects. ``proofs.registry`` knows all claims, planned ones
included, and ``proofs.evidence`` what has been checked, and whether the sources have changed since.
"""
