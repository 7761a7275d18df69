"""A course on CUDA Graphs for LLM decode. Importing this imports nothing else: take what you need by name."""

__version__ = "0.1.0"
