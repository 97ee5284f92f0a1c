// Which axes a map of a sweep shows, and where the others are held.
import { choice, h } from "../dom";
import type { Slice } from "./slice";
import { axis_name } from "./sweep_table";

/** Selects for the two axes of the map, sliders for the others. */
export function axis_controls(slice: Slice, changed: () => void): HTMLElement {
  const holder = h("div", { class: "controls" });
  const keys = slice.sweep.axes.map(({ key }) => axis_name(key));
  const fill = (): void => {
    const pick = (label: string, own: "x" | "y", other: "x" | "y"): HTMLElement =>
      choice(label, keys, slice[own], (axis) => {
        if (axis === slice[other]) {
          slice[other] = slice[own];
        }
        slice[own] = axis;
        fill();
        changed();
      });
    const held = slice.sweep.axes.flatMap((_, axis) =>
      axis === slice.x || axis === slice.y ? [] : [held_control(slice, axis, changed)],
    );
    holder.replaceChildren(...(keys.length < 2 ? [] : [pick("Across", "x", "y"), pick("Up", "y", "x")]), ...held);
  };
  fill();
  return holder;
}

/** A slider over the values of an axis. */
export function held_control(slice: Slice, axis: number, changed: () => void): HTMLElement {
  const labels = slice.labels(axis);
  const value = h("output", {}, labels[slice.held[axis] ?? 0] ?? "");
  const slider = h("input", {
    type: "range",
    min: 0,
    max: labels.length - 1,
    value: slice.held[axis],
    "aria-label": slice.key(axis),
    "aria-valuetext": labels[slice.held[axis] ?? 0],
    on: {
      input: () => {
        slice.held[axis] = Number(slider.value);
        const label = labels[Number(slider.value)] ?? "";
        value.textContent = label;
        slider.setAttribute("aria-valuetext", label);
        changed();
      },
    },
  });
  return h("label", { class: "choice" }, h("span", {}, slice.key(axis)), slider, value);
}
