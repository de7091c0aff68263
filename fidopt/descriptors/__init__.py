"""Strict, frozen models of the JSON files that describe datasets, methods, machines and rows."""
