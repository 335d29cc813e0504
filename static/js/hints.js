// What the server says about conversations beside their runs: look again. A hint may get lost; nothing depends on it.
import { cites } from "cite";
import { refreshSidebar } from "sidebar";

// Returns what hears the control frame `thread`. idle(): whether no run goes on here.
export function hints({ id, queue, transcript, gone, upkeep, idle }) {
  return ({ threadId, changed }) => {
    refreshSidebar();
    if (threadId !== id) {
      if (/^(deleted|restored)$/.test(changed) && cites(threadId) && idle()) transcript.fetchAll(); // chips lead there
      return;
    }
    if (/^(inbox|run_)/.test(changed)) queue.refresh();
    else if (changed === "line" && idle()) transcript.fetchAll();
    else if (/^(summary|memory|skill)$/.test(changed)) transcript.marks();
    else if (/^(un)?archived$/.test(changed)) upkeep.archived(changed === "archived");
    else if (changed === "deleted") gone.show();
    else if (changed === "restored") gone.hide();
  };
}
