"""The explorer: a trained run over HTTP, and a page to look at it and to judge what it predicts."""
