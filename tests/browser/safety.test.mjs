// Does every name from a file stay text, and does the page hold its policy?
import assert from "node:assert/strict";
import { test } from "node:test";

import { fit, longest, search, study, sweep, validation } from "./fixtures.mjs";
import {
  assert_quiet,
  downloaded,
  open_table,
  page_of,
  with_browser,
} from "./support.mjs";

const open = with_browser();

const kHostile = `=cmd()</script><script>hit()</script><img src=x onerror="hit()"><b>bold</b>&lt;\u2028"'`;

/** Every text in it made hostile, the same text in the same way. */
function hostile_texts(value) {
  if (typeof value === "string") {
    return `${kHostile} ${value}`;
  }
  if (Array.isArray(value)) {
    return value.map(hostile_texts);
  }
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(
      Object.entries(value).map(([key, one]) => [key, hostile_texts(one)]),
    );
  }
  return value;
}

/** A result that is still one, and hostile in all else. */
function hostile(result) {
  return { ...hostile_texts(result), format: result.format, kind: result.kind };
}

for (const [kind, result] of Object.entries({
  study,
  longest,
  search,
  sweep,
  validation,
  fit,
})) {
  test(`hostile names stay text: ${kind}`, async () => {
    const opened = await open(hostile(result()));
    const { page } = opened;
    for (const details of await page.locator("details.as-table").all()) {
      await open_table(details);
    }
    // Tooltips too: the pointer crosses every chart.
    for (const chart of await page.locator(".chart").all()) {
      await chart.scrollIntoViewIfNeeded();
      const box = await chart.boundingBox();
      for (const share of [0.25, 0.5, 0.75]) {
        await page.mouse.move(
          box.x + box.width * share,
          box.y + box.height * 0.6,
        );
        await page.waitForTimeout(30);
      }
    }
    assert.equal(
      await page
        .locator(
          "#page img, #page script, #page b:text-is('bold'), #page iframe",
        )
        .count(),
      0,
    );
    assert.ok(
      (await page.locator("body").innerText()).includes("<img src=x onerror="),
      "the name is not shown as it is",
    );
    assert.ok(
      kind === "validation" ||
        kind === "fit" ||
        (await page.title()).includes("<b>bold</b>"),
    );
    assert_quiet(opened);
  });
}

test("a hostile name in a CSV cannot become a formula", async () => {
  const { page } = await open(hostile(study()));
  const { text } = await downloaded(
    page,
    page.locator("#plans > .table").getByRole("button", { name: "CSV" }),
  );
  const cell = text.split("\r\n")[1];
  assert.ok(cell.startsWith(`"'=cmd()</script>`), cell);
});

test("a script that got into the page after all is not run, and nothing can be loaded", async () => {
  const page_text = page_of(study()).replace(
    "</body>",
    `<script>document.title = "taken"</script><img src="https://example.invalid/x.png"></body>`,
  );
  const { page, problems, asked } = await open(page_text);
  assert.ok(!(await page.title()).includes("taken"));
  assert.deepEqual(asked, []);
  // Two refusals: the script and the picture.
  assert.equal(
    problems.filter((text) => text.includes("Content Security Policy")).length,
    2,
    problems.join("\n"),
  );
});

test("a result that the page does not know is told, not half shown", async () => {
  const { page } = await open({
    format: "ulysim-result",
    version: 1,
    kind: "model",
  });
  assert.match(
    await page.getByRole("alert").innerText(),
    /cannot be shown: .*"model"/,
  );
});
