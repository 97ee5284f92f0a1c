// The page: a heading, a list of its views, the views that the result has data for.
import { h } from "./dom";
import type { View } from "./figure";
import { count } from "./format";
import { read_result, type Result } from "./result";
import { start_theme, toggle_theme } from "./theme";
import { communication } from "./views/communication";
import { crossover } from "./views/crossover";
import { layer_timeline } from "./views/layer_timeline";
import { longest } from "./views/longest";
import { memory } from "./views/memory";
import { pareto } from "./views/pareto";
import { provenance } from "./views/provenance";
import { residuals } from "./views/residuals";
import { scenario_view } from "./views/scenario";
import { scoreboard } from "./views/scoreboard";
import { step_time } from "./views/step_time";
import { topology } from "./views/topology";
import { verdict } from "./views/verdict";

/** In reading order; null: the result has nothing for it. */
function views_of(result: Result): (View | null)[] {
  switch (result.kind) {
    case "study":
      return [
        verdict(result),
        longest(result),
        step_time(result),
        memory(result),
        layer_timeline(result),
        communication(result),
        topology(result),
        provenance(result.parameters),
        scenario_view(result.scenario, result.plans),
      ];
    case "plan":
      return [pareto(result), provenance(result.parameters ?? []), scenario_view(result.scenario, [])];
    case "sweep":
      return [crossover(result)];
    case "validation":
      return [scoreboard(result)];
    case "fit":
      return [residuals(result)];
  }
}

function title_of(result: Result): string {
  switch (result.kind) {
    case "study":
    case "plan":
      return result.scenario.name;
    case "sweep":
      return `${result.name}: ${count(result.points.length)} points`;
    case "validation":
      return "Validation";
    case "fit":
      return result.name === undefined ? "Calibration fit" : `${result.name}: fit`;
  }
}

function capitalized(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

function heading(title: string, views: readonly View[]): HTMLElement {
  const toggle = h(
    "button",
    {
      type: "button",
      class: "quiet theme",
      "aria-label": "Switch between light and dark",
      on: { click: toggle_theme },
    },
    "◐ Theme",
  );
  return h(
    "header",
    {},
    h("div", { class: "bar" }, h("h1", {}, h("span", { class: "brand" }, "ulysim"), " ", title), toggle),
    views.length > 1 &&
      h(
        "nav",
        { "aria-label": "Views" },
        h("ul", {}, ...views.map((view) => h("li", {}, h("a", { href: `#${view.id}` }, capitalized(view.id))))),
      ),
  );
}

/** A chart needs its width, so it is drawn when all views are in the page. */
function start(page: HTMLElement): void {
  const result = read_result();
  const title = title_of(result);
  document.title = `${title} – ulysim`;
  const views = views_of(result).filter((view) => view !== null);
  page.append(
    h("a", { class: "skip", href: `#${views[0]?.id ?? "page"}` }, "Skip to the answer"),
    heading(title, views),
    h("main", {}, ...views.map((view) => view.element)),
    h("footer", {}, "Predicted by ulysim. This file is complete in itself: it loads nothing and sends nothing."),
  );
}

start_theme();
const page = document.getElementById("page");
if (page !== null) {
  try {
    start(page);
  } catch (error) {
    page.replaceChildren(
      h(
        "p",
        { role: "alert", class: "failure" },
        `This report cannot be shown: ${error instanceof Error ? error.message : String(error)}`,
      ),
    );
    throw error;
  }
}
