"""The checks, one module (or package of one file an exercise) for each lesson."""
