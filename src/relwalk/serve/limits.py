"""What a request may ask for at most. Beyond it, it is refused with the limit in words."""

from __future__ import annotations

ANSWERS = 1000  # answers to a question, links of a list
QUESTIONS = 1000  # in one request
CELLS = 100_000  # answers to all questions of a request together
NAME = 1000  # characters of a name
BODY = 1 << 20  # bytes
SECONDS = 60.0  # for an answer
WAITING = 2048  # questions that may wait; beyond, a request is told to come again
EDGES = 200  # of a neighbourhood
STEPS, PATHS = 50, 100  # of a walk
NAMES = 500  # labels asked for at once
