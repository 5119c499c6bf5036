"""One module per claim; each defines ``DERIVATION``. ``proofs.registry`` lists the claims."""
