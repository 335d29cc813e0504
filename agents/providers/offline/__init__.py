"""A model that needs no key and no network: rules in place of a language model, and it says so.

It sees the ModelRequest and nothing else, as any model, and reaches documents and files only by calling tools. It
answers with quotations and their sources. The rules look at the question's words, its language, and what the tools
said; there is no knowledge of any subject in them. Start reading at deciding.py.
"""
