// A page with a result in it, in a headless Chromium, and all that went wrong while it was open.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import { pathToFileURL } from "node:url";

/** The build's folder with report.html and npm's packages. */
export const web = process.env.ULYSIM_WEB ?? "";
/** `require` as if from there. */
export const require_there = createRequire(join(web, "package.json"));

export const template = () => readFileSync(join(web, "report.html"), "utf8");

/** What the program's writer does: the result as JSON in which nothing ends the script element. */
export function page_of(result) {
  const json = JSON.stringify(result)
    .replaceAll("<", "\\u003c")
    .replaceAll("\u2028", "\\u2028")
    .replaceAll("\u2029", "\\u2029");
  return template().replace("@ULYSIM_RESULT@", () => json);
}

/** One browser for the tests of a file; call at its top. `open` makes a page of its own. */
export function with_browser() {
  const folder = mkdtempSync(join(tmpdir(), "ulysim-browser-"));
  let browser;
  let pages = 0;

  before(async () => {
    const { chromium } = require_there("playwright-core");
    const as_root = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
    browser = await chromium.launch({
      executablePath: process.env.ULYSIM_CHROMIUM,
      args: ["--disable-dev-shm-usage", ...as_root],
    });
  });
  after(async () => {
    await browser?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** {page, problems, asked}: console errors, uncaught errors and dialogs; addresses asked for besides the file itself. */
  return async function open(result, options = {}) {
    const file = join(folder, `page-${++pages}.html`);
    writeFileSync(file, typeof result === "string" ? result : page_of(result));
    const context = await browser.newContext({
      viewport: { width: 1180, height: 900 },
      acceptDownloads: true,
      ...options,
    });
    const page = await context.newPage();
    const problems = [];
    const asked = [];
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") {
        problems.push(message.text());
      }
    });
    page.on("pageerror", (error) => problems.push(String(error)));
    page.on("dialog", async (dialog) => {
      problems.push(`dialog: ${dialog.message()}`);
      await dialog.dismiss();
    });
    const own = pathToFileURL(file).href;
    await context.route("**/*", (route) => {
      const url = route.request().url();
      if (url.split("#")[0] === own) {
        return route.continue();
      }
      asked.push(url);
      return route.abort();
    });
    await page.goto(own);
    await settled(page);
    return { page, problems, asked };
  };
}

/** Waits until what was asked for is on the screen: charts are drawn with a frame, at the latest with the next one. */
export function settled(page) {
  return page.evaluate(
    () =>
      new Promise((done) => {
        requestAnimationFrame(() => requestAnimationFrame(done));
      }),
  );
}

/** Nothing was logged as an error, and nothing was asked for from outside. */
export function assert_quiet({ problems, asked }) {
  assert.deepEqual(problems, []);
  assert.deepEqual(
    asked.filter((url) => !url.startsWith("data:") && !url.startsWith("blob:")),
    [],
  );
}

/** Opens the table of a chart (`details`), which is filled by the event that follows. */
export async function open_table(details) {
  await details.locator("summary").click();
  await details.locator("tbody tr").first().waitFor();
}

/** The text of the file that a click downloads. */
export async function downloaded(page, button) {
  const [download] = await Promise.all([page.waitForEvent("download"), button.click()]);
  return {
    name: download.suggestedFilename(),
    text: readFileSync(await download.path(), "utf8"),
  };
}
