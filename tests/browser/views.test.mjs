// Does every view draw itself from each kind of result, say in words what it shows, and give its figures as a table?
import assert from "node:assert/strict";
import { test } from "node:test";

import { fit, longest, search, study, sweep, validation } from "./fixtures.mjs";
import { assert_quiet, downloaded, open_table, settled, with_browser } from "./support.mjs";

const open = with_browser();

const kStudyViews = ["verdict", "plans", "memory", "timeline", "communication", "topology", "provenance", "scenario"];
const kinds = [
  ["compare", study, kStudyViews],
  ["maxseq", longest, ["verdict", "longest", ...kStudyViews.slice(1)]],
  ["plan", search, ["pareto", "provenance", "scenario"]],
  ["sweep", sweep, ["crossover"]],
  ["validate", validation, ["scoreboard"]],
  ["fit", fit, ["residuals"]],
];

for (const [kind, result, views] of kinds) {
  test(`${kind}: all its views, each chart drawn, named and given as a table`, async () => {
    const opened = await open(result());
    const { page } = opened;
    assert.deepEqual(await page.locator("section").evaluateAll((all) => all.map((one) => one.id)), views);
    const charts = await page.locator(".chart").all();
    assert.ok(charts.length > 0);
    for (const chart of charts) {
      const name = (await chart.getAttribute("aria-label")) ?? "";
      assert.ok(name.length > 20, `a chart is called "${name}"`);
      assert.ok((await chart.locator("svg path, svg polygon, svg polyline").count()) > 5, `${name}: nothing is drawn`);
    }
    for (const details of await page.locator("details.as-table").all()) {
      await open_table(details);
    }
    assert_quiet(opened);
  });
}

test("a result without the younger keys shows the views that it has data for", async () => {
  const old = study();
  delete old.topology;
  delete old.scenario.text;
  for (const plan of old.plans) {
    for (const key of ["layer_timeline", "memory_by_kind", "host_memory", "step_time_s_low", "step_time_s_high"]) {
      delete plan[key];
    }
  }
  const opened = await open(old);
  const shown = await opened.page.locator("section").evaluateAll((all) => all.map((one) => one.id));
  assert.deepEqual(shown, ["verdict", "plans", "memory", "communication", "provenance", "scenario"]);
  assert_quiet(opened);
});

test("the verdict names the winner, how far the others are behind, and the fix of what fails", async () => {
  const { page } = await open(study());
  const text = await page.locator("#verdict").innerText();
  // 78.3 s over 74 s, and 0.8 · 4.3 s of it in attention.
  assert.match(text, /ulysses=8,ring=4 wins\s+1\.06× as fast as ring=32, mostly by 3\.44 s less attention/);
  assert.match(text, /does not fit: 92\.1 of 79\.1 GiB; logits 17\.2 GiB/);
  assert.match(text, /Try: tiled_loss: true/);
  assert.match(text, /32 heads do not spread over Ulysses 64/);
});

test("parts of the step sum to the step", async () => {
  const { page } = await open(study());
  await open_table(page.locator("#plans details"));
  const { name, text } = await downloaded(page, page.locator("#plans details button", { hasText: "CSV" }));
  assert.equal(name, "step_time.csv");
  const rows = text
    .trim()
    .split("\r\n")
    .map((line) => line.match(/("[^"]*"|[^,]*)(?:,|$)/g).map((cell) => cell.replace(/,$/, "")));
  assert.deepEqual(rows[0].slice(0, 4), ["plan", "part", "seconds", "share_of_step"]);
  const sum = rows.filter((row) => row[0] === "ring=32").reduce((so_far, row) => so_far + Number(row[2]), 0);
  assert.ok(Math.abs(sum - 78.3) < 1e-9, String(sum));
});

test("with attention left out, what is left fills the chart and its sum is written", async () => {
  const { page } = await open(study());
  const texts = async () => {
    await settled(page);
    return page.locator("#plans .chart svg text").allTextContents();
  };
  assert.ok((await texts()).includes("78.3 s"));
  await page.locator("#plans").getByLabel("Parts").selectOption({ label: "all but attention" });
  // A fifth of 78.3 s.
  assert.ok((await texts()).includes("15.7 s"), (await texts()).join());
  assert.ok(!(await texts()).includes("78.3 s"));
  // The legend's own way back.
  await page.locator("#plans .chart svg text", { hasText: /^attention$/ }).click();
  assert.ok((await texts()).includes("78.3 s"));
});

test("the timeline shows the plan that is chosen, and where its compute stream waits", async () => {
  const { page } = await open(study());
  const rows = page.locator("#timeline figure").first().locator("tbody tr");
  await open_table(page.locator("#timeline details").first());
  assert.equal(await rows.filter({ hasText: "scatter heads" }).count(), 1);
  // Two all-to-alls around the attention, nothing to compute beside them.
  assert.equal(await rows.filter({ hasText: "nothing to compute" }).count(), 2);
  await page.locator("#timeline select").selectOption({ label: "ring=32" });
  assert.equal(await rows.filter({ hasText: "scatter heads" }).count(), 0);
  assert.equal(await rows.filter({ hasText: /^ring/ }).count(), 7);
  assert.match(await page.locator("#timeline").innerText(), /6 short spans are left out/);
});

test("a tooltip tells what is alive at a time", async () => {
  const { page } = await open(study());
  const chart = page.locator("#memory figure").last().locator(".chart");
  await chart.scrollIntoViewIfNeeded();
  const box = await chart.boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  const tip = page.locator(".tip:visible");
  await tip.waitFor();
  assert.match(await tip.innerText(), /GiB allocated[^]*activations[^]*weights/);
});

test("the map follows its axes and its slider", async () => {
  const { page } = await open(sweep());
  const table = page.locator("#crossover figure").first();
  await open_table(table.locator("details"));
  // 12 lengths × 6 GPU counts × 3 plans at one bandwidth.
  assert.match(await table.locator(".table-status").innerText(), /^216 rows$/);
  await page.getByRole("slider", { name: "bandwidth" }).first().fill("2");
  assert.ok((await table.locator("tbody").innerText()).includes("300Gb/s"));
  await page.getByLabel("Up").selectOption({ label: "bandwidth" });
  // Now 12 lengths × 3 bandwidths × 3 plans at one GPU count.
  assert.match(await table.locator(".table-status").innerText(), /^108 rows$/);
});

test("a cut through the map has one value of the axis that goes up", async () => {
  const { page } = await open(sweep());
  const cut = page.locator("#crossover figure").last();
  await open_table(cut.locator("details"));
  await page.getByRole("slider", { name: "gpus" }).fill("0");
  // 12 lengths of 3 plans on 8 GPUs.
  assert.match(await cut.locator(".table-status").innerText(), /^36 rows$/);
});

test("the zoom's buttons show less of the time, and all of it again", async () => {
  const { page } = await open(study());
  const figure = page.locator("#timeline figure").first();
  const labels = async () => {
    await settled(page);
    return (await figure.locator("svg text").allTextContents()).filter((text) => /^[\d.]+ m?s$/.test(text)).sort();
  };
  const whole = await labels();
  await figure.getByRole("button", { name: "Zoom in" }).click();
  await figure.getByRole("button", { name: "Later" }).click();
  assert.notDeepEqual(await labels(), whole);
  await figure.getByRole("button", { name: "Zoom out" }).click();
  assert.deepEqual(await labels(), whole);
});

test("tables sort by a click, numbers from the largest, and filter", async () => {
  const { page } = await open(validation());
  const table = page.locator("#scoreboard .table").last();
  await table.getByRole("button", { name: "measured" }).click();
  const column = await table.locator("tbody tr td:nth-of-type(3)").allInnerTexts();
  const numbers = column.map((text) => Number(text.replaceAll(",", "")));
  assert.deepEqual(
    numbers,
    [...numbers].sort((a, b) => b - a),
  );
  await table.getByRole("searchbox").fill("oom");
  assert.equal(await table.locator("tbody tr").count(), 1);
});
