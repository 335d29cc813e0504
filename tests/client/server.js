// Starts the server under test and stops it again. PYTHON names the interpreter; default: the project's .venv.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

export async function startServer() {
  const python = process.env.PYTHON || `${root}.venv/bin/python`;
  const child = spawn(python, ["-m", "tests.client.server"], { cwd: root, stdio: ["pipe", "pipe", "pipe"] });
  let log = "";
  child.stderr.on("data", (data) => (log += data));
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const line = await Promise.race([
    new Promise((resolve) => createInterface({ input: child.stdout }).once("line", resolve)),
    ended.then((code) => Promise.reject(new Error(`the server ended with ${code}:\n${log}`))),
  ]);
  return {
    ...JSON.parse(line),
    go: () => child.stdin.write("go\n"),
    log: () => log,
    async stop() {
      child.stdin.end();
      return ended;
    },
  };
}
