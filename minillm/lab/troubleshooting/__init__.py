"""The troubleshooting index behind ``lab.explain``: errors around CUDA graphs, their causes and cures.

Reading order: ``entry`` (what a line of the index holds); the lines, by theme: ``waits``, ``copies``,
``streams``, ``life``, ``random_numbers``, ``memory``, ``libraries``, ``emulator``, ``course``; then ``given``
(the text of what was passed), ``search`` (which lines match), ``places`` (the cell that shows it),
``wording``, ``answer`` and ``table`` (how it is shown).
"""

from . import copies, course, emulator, libraries, life, memory, random_numbers, streams, waits

# theme -> its entries, in the order in which the index lists them
THEMES = {
    "Waiting during a capture": waits.ENTRIES,
    "Host memory": copies.ENTRIES,
    "Streams and events": streams.ENTRIES,
    "The life of a graph": life.ENTRIES,
    "Random numbers": random_numbers.ENTRIES,
    "Memory": memory.ENTRIES,
    "Libraries": libraries.ENTRIES,
    "The emulator": emulator.ENTRIES,
    "This package's guards": course.ENTRIES,
}
INDEX = tuple(entry for entries in THEMES.values() for entry in entries)
