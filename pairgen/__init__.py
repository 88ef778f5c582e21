"""pairgen turns a language model's own play into preference pairs. Importing this loads nothing heavy."""

__version__ = "0.1.0"
