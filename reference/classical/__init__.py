"""The classical algorithms, written from their definitions; no attention vocabulary in here."""
