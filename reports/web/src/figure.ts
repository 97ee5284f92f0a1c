// How every view stands in the page: a section with a heading, a sentence of what is seen, and for each chart a table
// of the same figures.
import { chart, type Chart, type ChartSpec } from "./chart";
import { h, type Child } from "./dom";
import type { TableSpec } from "./rows";
import { table } from "./table";

export interface View {
  /** One word: the section's address, and its name in the list of views. */
  id: string;
  element: HTMLElement;
}

export function view(id: string, title: string, note: string, ...content: Child[]): View {
  const heading = `${id}-title`;
  const element = h(
    "section",
    { id, "aria-labelledby": heading, tabindex: "-1" },
    h("h2", { id: heading }, title),
    note !== "" && h("p", { class: "note" }, note),
    ...content,
  );
  return { id, element };
}

export interface Figure {
  element: HTMLElement;
  chart: Chart;
}

/** A chart, and the same figures as a table that is folded away. */
export function figure<Row>(
  spec: ChartSpec & { title?: string; controls?: Child[]; zooms?: boolean; table: () => TableSpec<Row> },
): Figure {
  const drawn = chart(spec);
  const holder = h("div", {});
  const details = h("details", { class: "as-table" }, h("summary", {}, "Show as table"), holder);
  const fill = (): void => {
    if (details.open) {
      holder.replaceChildren(table(spec.table()));
    }
  };
  details.addEventListener("toggle", fill);
  const step = (name: string, sign: string, width: number, shift: number): HTMLElement =>
    h(
      "button",
      {
        type: "button",
        class: "quiet",
        "aria-label": name,
        on: {
          click: () => {
            drawn.zoom(width, shift);
          },
        },
      },
      sign,
    );
  const zooms = spec.zooms === true && [
    step("Zoom in", "+", 0.5, 0),
    step("Zoom out", "−", 2, 0),
    step("Earlier", "◀", 1, -0.5),
    step("Later", "▶", 1, 0.5),
  ];
  const element = h(
    "figure",
    {},
    spec.title !== undefined &&
      h("figcaption", {}, spec.title, zooms !== false && h("span", { class: "zooms" }, ...zooms)),
    spec.controls !== undefined && h("div", { class: "controls" }, ...spec.controls),
    drawn.element,
    details,
  );
  return {
    element,
    chart: {
      element: drawn.element,
      redraw: () => {
        drawn.redraw();
        fill();
      },
      hide: drawn.hide,
      zoom: drawn.zoom,
    },
  };
}
