"""The built-in games: small, in clemcore's form, playable by a model of 135 million parameters."""
