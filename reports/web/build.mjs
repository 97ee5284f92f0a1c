// Bundles src/ into one HTML file without a single outside reference, for a strict content security policy:
//   node build.mjs OUT/report.html
// The page keeps one placeholder, @ULYSIM_RESULT@, where the writer puts the result's JSON.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

/** The minified text of one entry point. */
async function bundled(entry) {
  const { outputFiles } = await build({
    entryPoints: [here(entry)],
    bundle: true,
    minify: true,
    write: false,
    charset: "ascii",
    format: "iife",
    target: ["es2022"],
    legalComments: "none",
    define: { "process.env.NODE_ENV": '"production"' },
  });
  return outputFiles[0].text.trim();
}

/** A source expression of the policy: these very bytes between the tags and no others. */
const hash = (text) => `'sha256-${createHash("sha256").update(text, "utf8").digest("base64")}'`;

const out = process.argv[2];
if (!out) {
  console.error("usage: node build.mjs OUT.html");
  process.exit(2);
}
// Inside <script> only "</script" ends the text, and only "<!--" changes how it is read; both can stand in strings alone.
const script = (await bundled("src/main.ts")).replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
const style = await bundled("src/style/page.css");
const policy = [
  "default-src 'none'",
  `script-src ${hash(script)}`,
  `style-src ${hash(style)}`,
  "img-src data: blob:",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

const parts = { POLICY: policy, STYLE: style, SCRIPT: script };
const template = await readFile(here("src/page.html"), "utf8");
const page = template.replace(/@(POLICY|STYLE|SCRIPT)@/g, (_, name) => parts[name]);
const placeholders = page.split("@ULYSIM_RESULT@").length - 1;
if (placeholders !== 1) {
  throw new Error(`the page has ${placeholders} placeholders for the result instead of one`);
}
await mkdir(dirname(out), { recursive: true });
await writeFile(out, page);
