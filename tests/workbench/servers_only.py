"""A launcher of the two servers alone, for tests that kill it: `python servers_only.py DIR`.

Prints one JSON line {"urls", "pids"} when both are ready, and again after each restart; stops on SIGTERM. Needs the
standard library only, so that any user of the machine can run it.
"""

import json
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from workbench.datadir import lock, open_data
from workbench.parts import server_parts
from workbench.processes import CannotStart
from workbench.supervisor import State, Supervisor
from workbench.up import woken_by_signals

for name in ("DATABASE_URL", "REDIS_URL", "CELERY_BROKER_URL"):
    os.environ.pop(name, None)


def main() -> int:
    data = Path(sys.argv[1]).resolve()
    supervisor = Supervisor(report=lambda part, words: sys.stderr.write(f"{part.name} {words}\n") and None)
    try:
        open_data(data)
        with lock(data), woken_by_signals(supervisor):
            parts, urls = server_parts(data)
            for part in parts:
                supervisor.start(part)
            supervisor.wait(*parts)
            said: dict[str, int] = {}
            while not supervisor.stops:
                pids = {part.name: part.process.pid for part in parts if part.process}
                if pids != said and all(part.state is State.READY for part in parts):
                    said = pids
                    print(json.dumps({"urls": urls, "pids": pids}), flush=True)
                supervisor.tick()
                time.sleep(0.01)
            supervisor.shut_all()
    except CannotStart as e:
        print(json.dumps({"refused": str(e)}), flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
