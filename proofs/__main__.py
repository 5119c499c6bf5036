"""``python -m proofs [SLUG...]``: run the derivations of a checkout and record the evidence."""

import argparse
import sys
import time

from proofs.registry import CLAIMS, UnknownClaim, find, problems
from proofs.verify import verify_derivation


def main(arguments: list[str] | None = None) -> int:
    """Verify, print a line for each claim, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m proofs", description=__doc__)
    parser.add_argument("slugs", nargs="*", metavar="SLUG", help="claims; default: all")
    parser.add_argument("--gate", action="store_true", help="check that claims and files agree")
    options = parser.parse_args(arguments)
    found = problems()
    for problem in found:
        print(f"gate: {problem}", file=sys.stderr)
    if found or options.gate:
        print(f"gate: {len(found)} problem(s), {len(CLAIMS)} claims")
        return int(bool(found))
    try:
        claims = [find(slug) for slug in options.slugs] or [c for c in CLAIMS if not c.planned]
    except UnknownClaim as error:
        print(error, file=sys.stderr)
        return 2
    failed = 0
    for claim in claims:
        start = time.perf_counter()
        result = verify_derivation(claim)
        failed += result.failed > 0
        print(f"{claim.slug:32} {result.summary}  {time.perf_counter() - start:5.1f} s", flush=True)
        if result.message:
            print(result.message, file=sys.stderr)
    planned = sum(1 for claim in CLAIMS if claim.planned)
    print(f"{len(claims) - failed} of {len(claims)} derivations hold; {planned} claims are planned")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
