"""The event loop and the reactor of the web server. Import this before anything imports daphne (Django's apps do).

daphne.server makes its loop by the policy it finds and installs its reactor on first import, for the whole process.
"""

import asyncio

try:
    import uvloop
except ImportError:  # a platform without it: a fifth slower, otherwise the same
    pass
else:
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())

import daphne.server  # only now: it makes its loop at import

loop: asyncio.AbstractEventLoop = daphne.server.twisted_loop
