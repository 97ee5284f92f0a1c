// Is the page's source type-correct and clean, does its lock name no host, and is the page one file without references?
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { require_there, template, web } from "./support.mjs";

function run(tool, ...options) {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [require_there.resolve(tool), ...options],
    { cwd: web, encoding: "utf8" },
  );
  assert.equal(status, 0, stdout + stderr);
}

test("types are right", () => {
  run("typescript/bin/tsc", "--noEmit");
});

test("the linter finds nothing", () => {
  run(join(web, "node_modules/eslint/bin/eslint.js"), ".");
});

test("the source is formatted", () => {
  run(
    join(web, "node_modules/prettier/bin/prettier.cjs"),
    "--check",
    "src",
    "*.mjs",
    "*.js",
  );
});

test("the lock file names no host to download from, and has a checksum of every package", () => {
  const { packages } = JSON.parse(
    readFileSync(join(web, "package-lock.json"), "utf8"),
  );
  const names = Object.keys(packages).filter((name) => name !== "");
  assert.ok(names.length > 50);
  for (const name of names) {
    assert.equal(packages[name].resolved, undefined, name);
    assert.match(packages[name].integrity, /^sha512-/, name);
  }
});

test("the policy allows the page's own script and style by their hashes, and nothing else", () => {
  const page = template();
  const policy = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(
    page,
  )[1];
  const hash = (text) =>
    `'sha256-${createHash("sha256").update(text, "utf8").digest("base64")}'`;
  const script = /<script>([^]*?)<\/script>/.exec(page)[1];
  const style = /<style>([^]*?)<\/style>/.exec(page)[1];
  assert.equal(
    policy,
    `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; img-src data: blob:; base-uri 'none'; form-action 'none'`,
  );
});

test("the page has one place for the result", () => {
  assert.equal(template().split("@ULYSIM_RESULT@").length, 2);
});
