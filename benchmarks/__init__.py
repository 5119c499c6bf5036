"""Speed and memory against named peers, measured in one run."""
