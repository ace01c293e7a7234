"""One supervised MPS control daemon per GPU, and what it needs on the node."""
