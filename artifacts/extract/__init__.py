"""Text with anchors out of a file's bytes, in a process of its own: `python -m artifacts.extract`.

stdin: the file, seekable. stdout: an extracted text (textfile.py). Arguments: MIME type, seconds, bytes of memory,
descriptor to tell progress on (-1 = none), a line "DONE TOTAL" now and then. The process limits itself before it looks
at the file: time, memory, no writing elsewhere, no network, no other program (confine.py). Exit status 0: the text is
there. Status 3: there is none, and stderr holds one word of `Trouble`, then the error that no reader had foreseen, if
there was one. Anything else, or a signal: the process died.

One module per family of formats; readers.py picks. Nothing of Django or of the application is imported here, so
that it starts in a tenth of a second and holds nothing worth stealing.
"""
