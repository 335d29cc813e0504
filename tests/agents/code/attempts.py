"""Attempts to get out of a sandbox: Python that prints ESCAPED when it could do what it must not.

Each is run outside a sandbox too, where it has to succeed, or it would show nothing. All are small: they stop far below
what would hurt the machine. Names in capitals are set before: see `Scene` in test_code_escapes.py.
"""
# ruff: noqa: E501  # programs, each in as few lines as it has steps

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """kind: one of eight. code: Python."""

    kind: str
    name: str
    code: str


READ = {
    "open": "print('ESCAPED' if 'hidden' in open(SECRET).read() else '')",
    "pathlib": "from pathlib import Path\nprint('ESCAPED' if 'hidden' in Path(SECRET).read_text() else '')",
    "up and out": "print('ESCAPED' if 'hidden' in open('../' * 20 + SECRET[1:]).read() else '')",
    "up out of a directory that is given": (
        "import os\nhome = os.getcwd()\n"
        "print('ESCAPED' if 'hidden' in open(home + '/work' + '/..' * 20 + SECRET).read() else '')"
    ),
    "a symbolic link": (
        "import os\nos.symlink(SECRET, 'work/link')\nprint('ESCAPED' if 'hidden' in open('work/link').read() else '')"
    ),
    "a function of the host": "print('ESCAPED' if 'hidden' in str(read_table(SECRET)) else '')",
    "a list of a directory": (
        "import os\nprint('ESCAPED' if SECRET.split('/')[-1] in os.listdir(SECRET.rpartition('/')[0]) else '')"
    ),
    "the root of a process": "print('ESCAPED' if 'hidden' in open('/proc/self/root' + SECRET).read() else '')",
    "the root of the server's process": "print('ESCAPED' if 'hidden' in open(f'/proc/{SERVER}/root{SECRET}').read() else '')",
}
WRITE = {
    "open": "open(TARGET, 'w').write('x')",
    "pathlib": "from pathlib import Path\nPath(TARGET).write_text('x')",
    "a function of the host": "write_text(TARGET, 'x')",
    "a chart": "chart('bar', [{'a': 'x', 'b': 1}], 'T', TARGET)",
    "a rename": "import os\nopen('work/x', 'w').write('x')\nos.rename('work/x', TARGET)",
    "a link to a directory": (
        "import os\nos.symlink(TARGET.rpartition('/')[0], 'work/d')\nopen('work/d/' + TARGET.split('/')[-1], 'w').write('x')"
    ),
    "up and out": "open('work/' + '../' * 20 + TARGET[1:], 'w').write('x')",
    "removal": "import os\nos.remove(VICTIM)",
    "an overwritten file": "open(VICTIM, 'a').write('spoilt')",
    "an input": "open('work/inputs/given.csv', 'a').write('spoilt')",
}
NETWORK = {
    "tcp": "import socket\nsocket.create_connection(('127.0.0.1', PORT), 2)\nprint('ESCAPED')",
    "tcp over IPv4 in IPv6": (
        "import socket\ns = socket.socket(socket.AF_INET6)\ns.settimeout(2)\ns.connect(('::ffff:127.0.0.1', PORT))\n"
        "print('ESCAPED')"
    ),
    "udp": (
        "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.settimeout(1)\n"
        "s.sendto(b'hello', ('127.0.0.1', UDP))\nprint('ESCAPED' if s.recv(9) == b'hello' else '')"
    ),
    "a socket in the file system": (
        "import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect(UNIX)\nprint('ESCAPED')"
    ),
    "an abstract socket": (
        "import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect('\\0' + ABSTRACT)\nprint('ESCAPED')"
    ),
    "http": "import urllib.request\nurllib.request.urlopen(f'http://127.0.0.1:{PORT}/', timeout=2).read()\nprint('ESCAPED')",
    "asyncio": (
        "import asyncio\nasyncio.run(asyncio.wait_for(asyncio.open_connection('127.0.0.1', PORT), 2))\nprint('ESCAPED')"
    ),
    "another program": (
        "import subprocess, sys\nsubprocess.run([sys.executable, '-c', "
        "f'import socket; socket.create_connection((\"127.0.0.1\", {PORT}), 2)'], check=True)\nprint('ESCAPED')"
    ),
    "the machine's interfaces": "import socket\nprint('ESCAPED' if len(socket.if_nameindex()) >= INTERFACES > 1 else '')",
}
PROCESSES = {
    "killing a process": "import os\nos.kill(OTHER, 9)",
    "killing all": "import os\nos.kill(OTHER, 0)\nprint('ESCAPED')",
    "a shell": "import os\nos.system('touch ' + TARGET)",
    "another program": "import subprocess\nsubprocess.run(['touch', TARGET], check=True)",
    "becoming another program": "import os\nos.execv('/bin/sh', ['sh', '-c', 'echo x > ' + TARGET])",
    "a child that stays": (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        time.sleep(0.4)\n"
        "        open(TARGET, 'w').write('x')\n    os._exit(0)"
    ),
    "seeing a process": "import os\nprint('ESCAPED' if os.path.exists(f'/proc/{OTHER}/stat') else '')",
    "tracing a process": (
        "import ctypes\nlibc = ctypes.CDLL(None)\n"
        "print('ESCAPED' if libc.ptrace(16, OTHER, None, None) == 0 else '')"  # PTRACE_ATTACH
    ),
    "many processes": (
        "import os, time\nchildren = []\ntry:\n    for n in range(100):\n        child = os.fork()\n"
        "        if child == 0:\n            time.sleep(20)\n            os._exit(0)\n        children.append(child)\n"
        "finally:\n    for child in children:\n        os.kill(child, 9)\n        os.waitpid(child, 0)\nprint('ESCAPED')"
    ),
    "limiting who watches": (
        "import os, resource\nprint('ESCAPED' if resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE) else '')"
    ),
    "a namespace of one's own": (
        "import ctypes\nprint('ESCAPED' if ctypes.CDLL(None).unshare(0x10000000) == 0 else '')"  # CLONE_NEWUSER
    ),
}
MEMORY = {
    "one block": "block = bytearray(300_000_000)\nfor n in range(0, len(block), 4096):\n    block[n] = 1\nprint('ESCAPED')",
    "many blocks": "blocks = [b'x' * 1_000_000 + str(n).encode() for n in range(300)]\nprint('ESCAPED', len(blocks))",
    "a text that doubles": "text = 'x' * 1024\nwhile len(text) < 300_000_000:\n    text += text\nprint('ESCAPED')",
    "a list that grows": "grown = []\nfor n in range(7_000_000):\n    grown.append(float(n))\nprint('ESCAPED')",
    "a large number": "number = 1 << 2_400_000_000\nprint('ESCAPED')",
    "shared memory": (
        "import mmap\nshared = mmap.mmap(-1, 300_000_000)\nfor n in range(0, len(shared), 4096):\n    shared[n] = 1\n"
        "print('ESCAPED')"
    ),
    "several processes": (
        "import os, time\nchildren = []\nfor n in range(4):\n    child = os.fork()\n    if child == 0:\n"
        "        block = bytearray(75_000_000)\n        for n in range(0, len(block), 4096):\n            block[n] = 1\n"
        "        time.sleep(0.7)\n        os._exit(0)\n    children.append(child)\n"
        "print('ESCAPED' if all(os.waitpid(child, 0)[1] == 0 for child in children) else '')"
    ),
    **{
        f"shared memory of {name} that is let go but for its end": (
            "import ctypes, os\nsize = 40_960_000\nlibc = ctypes.CDLL(None)\nlibc.mmap.restype = ctypes.c_void_p\n"
            "libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]\n"
            f"for n in range(8):\n    at = libc.mmap(None, size, 3, {source}, 0)\n    if at == 2**64 - 1:\n        raise MemoryError\n"
            "    ctypes.memset(at, 1, size)\n    libc.munmap(ctypes.c_void_p(at), size - 4096)\nprint('ESCAPED')"
        )
        for name, source in (("no file", "0x21, -1"), ("a device", "0x01, os.open('/dev/zero', os.O_RDWR)"))
    },
    "a file in memory": (
        "import os\nheld = os.memfd_create('x')\nfor n in range(300):\n    os.write(held, bytes(1_000_000))\nprint('ESCAPED')"
    ),
}
DISK = {
    "one file": "with open('work/big', 'wb') as file:\n    for n in range(40):\n        file.write(b'x' * 1_000_000)\nprint('ESCAPED')",
    "several files": (
        "for n in range(40):\n    with open(f'work/part{n}', 'wb') as file:\n        file.write(b'x' * 1_000_000)\nprint('ESCAPED')"
    ),
    "a function of the host": "for n in range(40):\n    write_text(f'out/{n}.txt', 'x' * 1_000_000)\nprint('ESCAPED')",
    "many files": "for n in range(800):\n    open(f'work/small{n}', 'w').close()",
    "many directories with files": (
        "import os\nfor n in range(800):\n    os.makedirs(f'out/d{n}')\n    open(f'out/d{n}/f', 'w').close()"
    ),
    "a file with holes": "with open('work/sparse', 'wb') as file:\n    file.truncate(1 << 33)\nprint('ESCAPED')",
    "the directory of temporary files": (
        "import os, tempfile\nwith tempfile.TemporaryFile() as file:\n    for n in range(100):\n"
        "        file.write(bytes(1_000_000))\n    file.flush()\nprint('ESCAPED')"
    ),
    "shared memory": (
        "import os\ntry:\n    with open('/dev/shm/workbench-test', 'wb') as file:\n        for n in range(100):\n"
        "            file.write(bytes(1_000_000))\nfinally:\n    os.remove('/dev/shm/workbench-test')\nprint('ESCAPED')"
    ),
}
TIME = {
    "a loop": "import time\nbegan = time.time()\nwhile time.time() - began < 2:\n    pass\nprint('ESCAPED')",
    "sleep": "import time\nfor n in range(4):\n    time.sleep(0.5)\nprint('ESCAPED')",
    "a loop that swallows errors": (
        "import time\nbegan = time.time()\nwhile time.time() - began < 2:\n    try:\n        while time.time() - began < 2:\n"
        "            pass\n    except BaseException:\n        pass\nprint('ESCAPED')"
    ),
    "signals that are ignored": (
        "import signal, time\nfor number in (1, 2, 15, 24):\n    signal.signal(number, signal.SIG_IGN)\n"
        "began = time.time()\nwhile time.time() - began < 2:\n    pass\nprint('ESCAPED')"
    ),
    "a child that outlives its parent": (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(2)\n    open(TARGET, 'w').write('x')\n"
        "    os._exit(0)\ntime.sleep(2.2)"
    ),
    "one long step": "print('ESCAPED', len(str(sum(n * n % 7 for n in range(25_000_000)))))",
    "a program that waits": "import subprocess\nsubprocess.run(['sleep', '2'], check=True)\nprint('ESCAPED')",
}
ENVIRONMENT = {
    "os.environ": "import os\nprint('ESCAPED' if 'hidden' in str(dict(os.environ)) else '')",
    "os.getenv": "import os\nprint('ESCAPED' if os.getenv('WORKBENCH_TEST_SECRET') else '')",
    "one's own process": "print('ESCAPED' if 'hidden' in open('/proc/self/environ').read() else '')",
    "the parent's process": "import os\nprint('ESCAPED' if open(f'/proc/{os.getppid()}/cmdline').read() == COMMAND else '')",
    "the memory of who watches": (
        "import os\nopen(f'/proc/{os.getppid()}/environ').read()\nprint('ESCAPED', os.listdir(f'/proc/{os.getppid()}/fd'))"
    ),
    "another process": "print('ESCAPED' if 'hidden' in open(f'/proc/{OTHER}/environ').read() else '')",
    "the first process": "import os\nprint('ESCAPED' if open(f'/proc/{SERVER}/cmdline').read() else '')",
    "a shell": (
        "import subprocess\nsaid = subprocess.run(['sh', '-c', 'env'], capture_output=True, text=True).stdout\n"
        "print('ESCAPED' if 'hidden' in said else '')"
    ),
    "the name of the machine": "import platform\nprint('ESCAPED' if platform.node() == NODE else '')",
}

KINDS = {
    "read": READ,
    "write": WRITE,
    "network": NETWORK,
    "processes": PROCESSES,
    "memory": MEMORY,
    "disk": DISK,
    "time": TIME,
    "environment": ENVIRONMENT,
}
ATTEMPTS = [Attempt(kind=kind, name=name, code=code) for kind, named in KINDS.items() for name, code in named.items()]
