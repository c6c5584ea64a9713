"""Sellerwatch watches the shops of marketplace sellers and delivers every change of every product.

domain      what is true        values in, values out
ports       what we need        every promise asked of the outside
steps       what flows share    asking, settling, closing, working together
flows       what we do          one story per file
adapters    how                 one technology per file or folder
sandbox     a fake marketplace and product server
settings    what may differ     the only reader of the environment
wiring      who uses what       the only room that knows every tool
simulation  a whole town of houses on virtual time, and its bad luck
entry       doors               command line, API, ticker, worker
"""

__version__ = "0.1.0"
