"""The conformance oracle: what counts as equal, hard inputs, and strategies that draw inputs."""

from oracle.acceptance import (
    Promise,
    RunReport,
    StepReport,
    Verdict,
    judge_run,
    judge_step,
    promise_of,
)

__all__ = [
    "Promise",
    "RunReport",
    "StepReport",
    "Verdict",
    "judge_run",
    "judge_step",
    "promise_of",
]
