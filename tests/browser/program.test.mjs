// The real thing: the page as `ulysim --html` writes it, of results as the simulator makes them today.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { assert_quiet, with_browser } from "./support.mjs";

const open = with_browser();
const folder = mkdtempSync(join(tmpdir(), "ulysim-program-"));
after(() => {
  rmSync(folder, { recursive: true, force: true });
});

const kScenario = join(
  process.env.ULYSIM_SCENARIOS ?? "",
  "runs/llama3-8b-1m-8xh100.yaml",
);

function page_from(...options) {
  const file = join(folder, `${options[0]}.html`);
  execFileSync(process.env.ULYSIM_PROGRAM ?? "", [
    ...options,
    "--html",
    file,
    "--quiet",
  ]);
  return readFileSync(file, "utf8");
}

const kAll = [
  "plans",
  "memory",
  "timeline",
  "communication",
  "topology",
  "provenance",
  "scenario",
];
for (const [command, options, views] of [
  ["compare", [kScenario], ["verdict", ...kAll]],
  ["run", [kScenario], ["verdict", ...kAll]],
  ["maxseq", [kScenario], ["verdict", "longest", ...kAll]],
  [
    "validate",
    [join(process.env.ULYSIM_SCENARIOS ?? "", "published/xtuner.yaml")],
    ["scoreboard"],
  ],
]) {
  test(`${command}: every view is there and nothing is wrong`, async () => {
    const text = page_from(command, ...options);
    assert.ok(
      Buffer.byteLength(text) < 1.5e6,
      `${Buffer.byteLength(text)} bytes`,
    );
    const opened = await open(text);
    assert.deepEqual(
      await opened.page
        .locator("section")
        .evaluateAll((all) => all.map((one) => one.id)),
      views,
    );
    assert.ok((await opened.page.locator(".chart svg").count()) > 0);
    // A figure that could not be read would be a dash, NaN or undefined.
    assert.ok(
      !/\b(NaN|undefined|null|Infinity)\b/.test(
        await opened.page.locator("body").innerText(),
      ),
    );
    assert_quiet(opened);
  });
}

test("the page's scenario, written to a file, gives the same answer again", async () => {
  const { page } = await open(page_from("compare", kScenario));
  const file = join(folder, "copied.yaml");
  writeFileSync(file, await page.locator("pre.scenario").textContent());
  const again = await open(page_from("compare", file));
  assert.equal(
    await again.page.locator("#verdict .cards").innerText(),
    await page.locator("#verdict .cards").innerText(),
  );
});

test("a hostile name in a scenario's file stays text", async () => {
  const name = `</script><img src=x onerror="document.title='taken'">`;
  const file = join(folder, "hostile.yaml");
  writeFileSync(
    file,
    readFileSync(kScenario, "utf8").replace(
      /^scenario:.*$/m,
      `scenario: '${name.replaceAll("'", "''")}'`,
    ),
  );
  const opened = await open(page_from("run", file));
  assert.ok((await opened.page.locator("h1").innerText()).includes(name));
  assert.ok((await opened.page.title()).includes("<img"));
  assert_quiet(opened);
});
