"""One module a command: parse, call, print. Their names end in `_` where Python keeps the word for itself."""
