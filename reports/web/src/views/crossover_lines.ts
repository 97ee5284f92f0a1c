// A cut through the map: how fast each plan is along one axis. Where lines cross, the winner changes.
import { axis, grid, is_narrow, legend, legend_height, type Option } from "../chart";
import { figure as number, shortened } from "../format";
import { h } from "../dom";
import { figure } from "../figure";
import { palette, series_colour } from "../palette";
import type { SweepPoint } from "../result";
import { tip, tooltip } from "../tooltip";
import { letter, type Slice } from "./slice";
import { held_control } from "./slice_controls";
import { sweep_columns, sweep_rows } from "./sweep_table";

/** The points of the map's row at which the other axis is held. */
function points_of(slice: Slice): SweepPoint[] {
  return slice.points().filter((point) => slice.y < 0 || point.at[slice.y] === slice.held[slice.y]);
}

/** Of each plan its speed at each value across, null where it does not fit. */
function speeds_of(slice: Slice): (number | null)[][] {
  const by_value = new Map(points_of(slice).map((point) => [point.at[slice.x], point]));
  return slice.sweep.plans.map((_, plan) =>
    slice.labels(slice.x).map((_label, at) => {
      const own = by_value.get(at)?.plans[plan];
      return own?.fits === true ? own.tokens_per_s_per_gpu : null;
    }),
  );
}

function option_of(slice: Slice, width: number): Option {
  const colours = palette();
  const speeds = speeds_of(slice);
  const names = slice.sweep.plans.map((name, plan) => `${letter(plan)}  ${name}`);
  const labels = slice.labels(slice.x);
  return {
    legend: legend({ data: names }),
    grid: grid(legend_height(names, width) + 6),
    xAxis: axis("category", {
      data: labels.map((label) => shortened(label, 12)),
      name: slice.key(slice.x),
      axisLabel: { rotate: is_narrow(width) ? 60 : 0 },
    }),
    yAxis: axis("value", { name: "tokens/s/GPU", nameGap: 46, scale: true }),
    tooltip: tooltip("axis", (params: { dataIndex: number }[]) => {
      const at = params[0]?.dataIndex ?? 0;
      return tip(
        `${slice.key(slice.x)} ${labels[at] ?? ""}`,
        names.map((name, plan) => {
          const speed = speeds[plan]?.[at] ?? null;
          return {
            label: name,
            value: speed === null ? "does not fit" : `${number(speed)} tokens/s/GPU`,
            colour: series_colour(plan),
          };
        }),
      );
    }),
    series: names.map((name, plan) => ({
      type: "line",
      name,
      symbolSize: 6,
      connectNulls: false,
      lineStyle: { color: series_colour(plan), width: 2, type: (["solid", "dashed", "dotted"] as const)[plan % 3] },
      itemStyle: { color: series_colour(plan), borderColor: colours.ground },
      endLabel: { show: true, formatter: letter(plan), color: colours.text },
      emphasis: { disabled: true },
      data: speeds[plan],
    })),
  };
}

/** The figure, and its redrawing after a change of the slice. */
export function crossover_lines(slice: Slice): { element: HTMLElement; redraw: () => void } {
  const held = h("span", {});
  const fill = (): void => {
    held.replaceChildren(...(slice.y < 0 ? [] : [held_control(slice, slice.y, redraw_chart)]));
  };
  const drawn = figure({
    title: "A cut through the map",
    label: "Lines: how fast each plan is along the axis across; where they cross, the winner changes",
    height: () => 340,
    option: (width) => option_of(slice, width),
    controls: [held],
    table: () => ({
      caption: "The points of this cut",
      file: `${slice.sweep.name}-cut`,
      columns: sweep_columns(slice.sweep),
      rows: sweep_rows(points_of(slice)),
    }),
  });
  function redraw_chart(): void {
    drawn.chart.redraw();
  }
  fill();
  return {
    element: drawn.element,
    redraw: () => {
      fill();
      drawn.chart.redraw();
    },
  };
}
