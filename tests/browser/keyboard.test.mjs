// Can everything be reached and done without a mouse?
import assert from "node:assert/strict";
import { test } from "node:test";

import { study, sweep } from "./fixtures.mjs";
import { assert_quiet, with_browser } from "./support.mjs";

const open = with_browser();

const focused = (page, get) => page.evaluate(get);

test("the first stop skips the heading; then the theme and the views follow in order", async () => {
  const opened = await open(study());
  const { page } = opened;
  await page.keyboard.press("Tab");
  assert.equal(
    await focused(page, () => document.activeElement.textContent),
    "Skip to the answer",
  );
  await page.keyboard.press("Tab");
  assert.equal(
    await focused(page, () =>
      document.activeElement.getAttribute("aria-label"),
    ),
    "Switch between light and dark",
  );
  const before = await page.locator("html").getAttribute("data-theme");
  await page.keyboard.press("Enter");
  assert.notEqual(
    await page.locator("html").getAttribute("data-theme"),
    before,
  );
  await page.keyboard.press("Tab");
  assert.equal(
    await focused(page, () => document.activeElement.getAttribute("href")),
    "#verdict",
  );
  await page.locator(".skip").focus();
  await page.keyboard.press("Enter");
  assert.equal(await focused(page, () => document.activeElement.id), "verdict");
  assert_quiet(opened);
});

test("Tab walks through the whole page: every stop is seen, none holds the focus, all kinds of control come", async () => {
  const { page } = await open(study());
  const kinds = new Set();
  let last = "";
  for (let step = 0; step < 200; ++step) {
    await page.keyboard.press("Tab");
    const stop = await focused(page, () => {
      const element = document.activeElement;
      const { width, height } = element.getBoundingClientRect();
      const all = [...document.querySelectorAll("*")];
      return element === document.body
        ? null
        : { tag: element.tagName, at: all.indexOf(element), width, height };
    });
    if (stop === null) {
      break;
    }
    const key = `${stop.at}`;
    assert.notEqual(key, last, `the focus does not leave a ${stop.tag}`);
    assert.ok(
      stop.width > 0 && stop.height > 0,
      `a ${stop.tag} without size has the focus`,
    );
    last = key;
    kinds.add(stop.tag);
  }
  for (const tag of ["A", "BUTTON", "SELECT", "SUMMARY", "PRE"]) {
    assert.ok(kinds.has(tag), `no ${tag} is reached`);
  }
});

test("a table is one stop; arrows move in it, Enter on a heading sorts", async () => {
  const { page } = await open(study());
  const table = page.locator("#plans > .table table");
  assert.equal(await table.locator('[tabindex="0"]').count(), 1);
  await table.locator('[tabindex="0"]').focus();
  const place = () =>
    focused(page, () =>
      [
        document.activeElement.dataset.row,
        document.activeElement.dataset.column,
      ].join(),
    );
  assert.equal(await place(), "0,0");
  for (const [key, at] of [
    ["ArrowDown", "1,0"],
    ["ArrowRight", "1,1"],
    ["End", "1,9"],
    ["ArrowDown", "2,9"],
    ["Control+Home", "0,0"],
    ["ArrowUp", "0,0"],
    ["ArrowRight", "0,1"],
    ["ArrowRight", "0,2"],
  ]) {
    await page.keyboard.press(key);
    assert.equal(await place(), at, `after ${key}`);
  }
  await page.keyboard.press("Enter");
  assert.equal(
    await table.locator("th").nth(2).getAttribute("aria-sort"),
    "descending",
  );
  assert.equal(await place(), "0,2", "sorting keeps the focus");
});

test("in a long table the keys reach rows that are not in the page yet", async () => {
  const { page } = await open(sweep());
  const table = page.locator("#crossover > .table table");
  await table.locator('[tabindex="0"]').focus();
  await page.keyboard.press("Control+End");
  const last = () =>
    focused(page, () =>
      document.activeElement.closest("tr").getAttribute("aria-rowindex"),
    );
  // 12 · 6 · 3 points of 3 plans, and the heading.
  assert.equal(await last(), "649");
  await page.keyboard.press("PageUp");
  assert.equal(await last(), "639");
  assert.ok(
    await focused(page, () => {
      const cell = document.activeElement.getBoundingClientRect();
      const window_of = document.activeElement
        .closest(".table-scroll")
        .getBoundingClientRect();
      return cell.top >= window_of.top && cell.bottom <= window_of.bottom;
    }),
    "the row with the focus is out of sight",
  );
});

test("choices and sliders change by the arrow keys", async () => {
  const { page } = await open(sweep());
  const slider = page.getByRole("slider", { name: "bandwidth" });
  await slider.focus();
  await page.keyboard.press("ArrowRight");
  assert.equal(await slider.getAttribute("aria-valuetext"), "200Gb/s");
});
