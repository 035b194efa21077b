"""A search for the settings of a model: `relwalk.tune`, and what it is made of."""
