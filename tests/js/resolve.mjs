// Bare names as in the page's import map, for node.
import { register } from "node:module";

const hook = `
export function resolve(name, context, next) {
  if (/^[a-z]+$/.test(name)) {
    const file = new URL("static/js/" + name + ".js", ${JSON.stringify(new URL("../../", import.meta.url).href)});
    if (context.parentURL?.includes("/static/js/") || context.parentURL?.includes("/tests/js/")) {
      return { url: file.href, format: "module", shortCircuit: true };
    }
  }
  return next(name, context);
}
export async function load(url, context, next) {
  return next(url, url.includes("/static/js/") ? { ...context, format: "module" } : context);
}`;
register("data:text/javascript," + encodeURIComponent(hook));
