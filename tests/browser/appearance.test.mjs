// Light, dark, on paper, on a phone.
import assert from "node:assert/strict";
import { test } from "node:test";

import { fit, longest, search, study, sweep, validation } from "./fixtures.mjs";
import { assert_quiet, open_table, with_browser } from "./support.mjs";

const open = with_browser();

const ground = (page) =>
  page.evaluate(() => getComputedStyle(document.body).backgroundColor);
/** Colours of the text in the first chart. */
const ink = (page) =>
  page
    .locator(".chart svg text")
    .first()
    .evaluate((text) => getComputedStyle(text).fill);

/** The system's wish reaches the page with the next frame. */
async function prefer(page, scheme) {
  await page.emulateMedia({ colorScheme: scheme });
  await page.locator(`html[data-theme="${scheme}"]`).waitFor();
}

/** The contrast of two colours as WCAG 2 counts it. */
function contrast(one, other) {
  const luminance = (colour) => {
    const [r, g, b] = colour.match(/[\d.]+/g).map((part) => {
      const share = Number(part) / 255;
      return share <= 0.04045
        ? share / 12.92
        : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const [light, dark] = [luminance(one), luminance(other)].sort(
    (a, b) => b - a,
  );
  return (light + 0.05) / (dark + 0.05);
}

test("dark follows the system; charts are drawn anew, and all text stays readable", async () => {
  const opened = await open(study(), { colorScheme: "dark" });
  const { page } = opened;
  const [dark_ground, dark_ink] = [await ground(page), await ink(page)];
  assert.ok(contrast(dark_ground, "rgb(255, 255, 255)") > 12, dark_ground);
  await prefer(page, "light");
  assert.notEqual(await ground(page), dark_ground);
  assert.notEqual(await ink(page), dark_ink);
  for (const scheme of ["dark", "light"]) {
    await prefer(page, scheme);
    const colours = await page
      .locator("p, h2, td, th, a, button, summary, .state, .chart text")
      .evaluateAll((all) =>
        all.map((one) => ({
          text: one.textContent.slice(0, 40),
          colour:
            getComputedStyle(one)[
              one.namespaceURI.endsWith("svg") ? "fill" : "color"
            ],
        })),
      );
    const below = await ground(page);
    // Letters inside coloured bars stand on the bar and not on the page.
    const poor = colours.filter(
      ({ colour, text }) =>
        text !== "" &&
        contrast(colour, below) < 4.5 &&
        !["rgb(255, 255, 255)", "rgb(20, 24, 29)"].includes(colour),
    );
    assert.deepEqual(poor, [], scheme);
  }
  assert_quiet(opened);
});

test("the reader's choice of theme wins over the system's", async () => {
  const { page } = await open(study(), { colorScheme: "light" });
  await page
    .getByRole("button", { name: "Switch between light and dark" })
    .click();
  assert.equal(await page.locator("html").getAttribute("data-theme"), "dark");
});

test("on paper: light, without what one cannot press, long tables cut with a word on the rest", async () => {
  const opened = await open(sweep(), { colorScheme: "dark" });
  const { page } = opened;
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  await page.locator('html[data-theme="light"]').waitFor();
  assert.equal(await ground(page), "rgb(255, 255, 255)");
  assert.ok(await page.locator(".table-tools").first().isHidden());
  const table = page.locator("#crossover > .table");
  // 648 rows, of which paper gets 500.
  assert.equal(await table.locator("tbody tr[aria-rowindex]").count(), 500);
  assert.match(await table.innerText(), /148 more rows are in the CSV/);
  assert.equal(
    await table
      .locator(".table-scroll")
      .evaluate(
        (scroller) => scroller.scrollHeight > scroller.clientHeight + 1,
      ),
    false,
  );
  const pdf = await page.pdf({ format: "A4" });
  assert.equal(pdf.subarray(0, 5).toString(), "%PDF-");
  assert_quiet(opened);
});

for (const [kind, result] of Object.entries({
  study,
  longest,
  search,
  sweep,
  validation,
  fit,
})) {
  test(`on a phone nothing is wider than the screen: ${kind}`, async () => {
    const opened = await open(result(), {
      viewport: { width: 360, height: 740 },
      hasTouch: true,
    });
    const { page } = opened;
    for (const details of await page.locator("details.as-table").all()) {
      await open_table(details);
    }
    assert.equal(
      await page.evaluate(() => document.documentElement.scrollWidth),
      360,
    );
    const cut = await page.locator(".chart svg text").evaluateAll((all) =>
      all
        .map((text) => ({
          text: text.textContent,
          box: text.getBoundingClientRect(),
        }))
        .filter(
          ({ box }) => box.width > 0 && (box.left < -1 || box.right > 361),
        )
        .map(({ text }) => text),
    );
    assert.deepEqual(cut, [], "labels leave the screen");
    assert_quiet(opened);
  });
}

test("charts follow the window", async () => {
  const { page } = await open(study());
  const width = () =>
    page
      .locator("#plans .chart svg")
      .evaluate((svg) => svg.getBoundingClientRect().width);
  const wide = await width();
  await page.setViewportSize({ width: 600, height: 900 });
  await page.waitForFunction(
    (before) =>
      document.querySelector("#plans .chart svg").getBoundingClientRect()
        .width <
      before - 300,
    wide,
  );
});
