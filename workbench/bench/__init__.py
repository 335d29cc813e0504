"""`manage.py bench context`: what a long conversation costs, measured on public data sets and on made-up ones.

The data is read from a folder named on the command line and never copied. Start at context.py.
"""
