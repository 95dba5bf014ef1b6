"""Run code in a real Jupyter kernel and tell what it showed, as JSON; interrupts it when asked.

`python kernel_session.py FOLDER INTERRUPT < CODE`, where INTERRUPT is a text after whose display the kernel gets the
signal of the interrupt button; empty for none. Cells are separated by lines of `# %%`.
"""

import json
import os
import sys
import time

from jupyter_client.manager import start_new_kernel


def run_cell(manager, client, code, interrupt):
    """All messages that one cell left, until its kernel is idle again."""
    asked, seen, until = client.execute(code), [], time.monotonic() + 240
    while time.monotonic() < until:
        message = client.get_iopub_msg(timeout=240)
        if message["parent_header"].get("msg_id") != asked:
            continue
        kind, content = message["msg_type"], message["content"]
        if kind in ("display_data", "update_display_data", "execute_result"):
            data, where = content["data"], content.get("transient", {}).get("display_id")
            seen.append({"kind": kind, "html": data.get("text/html", ""), "text": data["text/plain"], "id": where})
            if interrupt and interrupt in data.get("text/html", ""):
                manager.interrupt_kernel()
                interrupt = ""
        elif kind in ("stream", "error"):
            seen.append({"kind": kind, "html": "", "text": content.get("text") or content.get("evalue"), "id": None})
        elif kind == "status" and content["execution_state"] == "idle":
            return seen
    raise TimeoutError(code)


def main():
    """Each cell in its turn; the interrupt goes to the first that shows the text."""
    os.chdir(sys.argv[1])
    manager, client = start_new_kernel(kernel_name="python3")
    try:
        cells = sys.stdin.read().split("# %%\n")
        shown = [run_cell(manager, client, code, "" if place else sys.argv[2]) for place, code in enumerate(cells)]
        json.dump(shown, sys.stdout)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


if __name__ == "__main__":
    main()
