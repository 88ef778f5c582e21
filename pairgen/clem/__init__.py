"""The clemcore adapter: games run in worker processes forked from one server that has clemcore imported.

`server` and what it forks (`catalog`, `worker`, `table`) import clemcore; `client` and `wire` do not.
"""
