// Who wins where: two of the sweep's axes span a map, the others are held at one value each.
import type { CustomSeriesRenderItemAPI, CustomSeriesRenderItemReturn } from "echarts";

import { axis, grid, is_narrow, legend, legend_height, type Option } from "../chart";
import { h } from "../dom";
import { count, figure as number, gib, seconds, short_value } from "../format";
import { figure, view, type View } from "../figure";
import { hatch, palette, series_colour, text_on } from "../palette";
import type { SweepPoint, SweepResult } from "../result";
import { table } from "../table";
import { tip, tooltip } from "../tooltip";
import { crossover_lines } from "./crossover_lines";
import { letter, Slice } from "./slice";
import { axis_controls } from "./slice_controls";
import { axis_name, sweep_columns, sweep_rows } from "./sweep_table";

const kNone = "no plan fits";

function cell(
  colour: string,
  text: string,
  size: [number, number],
  api: CustomSeriesRenderItemAPI,
  at: [number, number],
): CustomSeriesRenderItemReturn {
  const [x = 0, y = 0] = api.coord(at);
  const [width, height] = size;
  const colours = palette();
  const none = text === "";
  return {
    type: "rect",
    shape: { x: x - width / 2, y: y - height / 2, width, height },
    style: {
      fill: colour,
      stroke: colours.ground,
      lineWidth: width > 8 ? 1 : 0,
      ...(none && { decal: hatch(colours.ground) }),
    },
    textContent:
      width > 13 && height > 13 && !none
        ? { type: "text", style: { text, fill: text_on(colour), fontSize: 11, fontWeight: 600 } }
        : undefined,
    textConfig: { position: "inside" },
  };
}

function point_tip(sweep: SweepResult, point: SweepPoint): HTMLElement {
  const where = sweep.axes.map(
    ({ key, values }, axis) => `${axis_name(key)} ${short_value(values[point.at[axis] ?? 0] ?? "")}`,
  );
  const lines = sweep.plans.map((name, plan) => {
    const own = point.plans[plan];
    const value =
      own?.fits === true
        ? `${number(own.tokens_per_s_per_gpu)} tokens/s/GPU`
        : own?.feasible === true
          ? `does not fit (${gib(own.peak_gpu_memory_gib)})`
          : "cannot run";
    return { label: `${letter(plan)} ${name}${plan === point.winner ? " ★" : ""}`, value, colour: series_colour(plan) };
  });
  const best = point.winner === null ? undefined : point.plans[point.winner];
  const note =
    best === undefined
      ? (point.plans[0]?.reason ?? "")
      : `${seconds(best.step_time_s)} a step, ${gib(best.peak_gpu_memory_gib)}; ${best.bottleneck ?? ""}`;
  return tip(where.join(", "), lines, note);
}

function option_of(slice: Slice, width: number): Option {
  const colours = palette();
  const { sweep } = slice;
  const points = slice.points();
  const series = [...sweep.plans.keys(), null].map((plan) => ({
    plan,
    name: plan === null ? kNone : `${letter(plan)}  ${sweep.plans[plan] ?? ""}`,
    colour: plan === null ? colours.empty : series_colour(plan),
    points: points.filter((point) => point.winner === plan),
  }));
  const shown = series.filter((one) => one.points.length > 0 || one.plan !== null);
  const columns = slice.length(slice.x);
  const rows = slice.length(slice.y);
  return {
    legend: legend({ data: shown.map(({ name }) => name) }),
    grid: grid(map_top(sweep, width)),
    xAxis: axis("category", {
      data: slice.labels(slice.x),
      name: slice.key(slice.x),
      axisLine: { show: false },
      axisLabel: { rotate: is_narrow(width) ? 60 : 0 },
    }),
    yAxis: axis("category", {
      data: slice.labels(slice.y),
      name: slice.key(slice.y),
      nameGap: 46,
      axisLine: { show: false },
    }),
    tooltip: tooltip("item", ({ data }: { data: { point: SweepPoint } }) => point_tip(sweep, data.point)),
    series: shown.map((one) => ({
      type: "custom",
      name: one.name,
      itemStyle: { color: one.colour },
      data: one.points.map((point) => ({ value: [point.at[slice.x] ?? 0, point.at[slice.y] ?? 0], point })),
      renderItem: (
        params: { dataIndex: number; coordSys: { width: number; height: number } },
        api: CustomSeriesRenderItemAPI,
      ) => {
        const point = one.points[params.dataIndex];
        const size: [number, number] = [params.coordSys.width / columns, params.coordSys.height / rows];
        return point === undefined
          ? null
          : cell(one.colour, one.plan === null ? "" : letter(one.plan), size, api, [
              point.at[slice.x] ?? 0,
              point.at[slice.y] ?? 0,
            ]);
      },
    })),
  };
}

function map_top(sweep: SweepResult, width: number): number {
  return legend_height([...sweep.plans.map((name) => `A  ${name}`), kNone], width) + 6;
}

export function crossover(sweep: SweepResult): View {
  const slice = new Slice(sweep);
  const cut = crossover_lines(slice);
  const drawn = figure({
    label: `Map of ${sweep.points.length} points coloured by the winning plan: ${wins_of(sweep)
      .map(({ name, wins }) => `${name} wins ${wins}`)
      .join(", ")}`,
    height: (width) => map_top(sweep, width) + Math.min(520, Math.max(140, slice.length(slice.y) * 34)) + 60,
    option: (width) => option_of(slice, width),
    controls: [
      axis_controls(slice, () => {
        drawn.chart.redraw();
        cut.redraw();
      }),
    ],
    table: () => ({
      caption: "The points of this map",
      file: `${sweep.name}-map`,
      columns: sweep_columns(sweep),
      rows: sweep_rows(slice.points()),
    }),
  });
  return view(
    "crossover",
    "Who wins where",
    "Each cell is one scenario, coloured and lettered by its fastest plan that fits.",
    h("p", { class: "headline" }, headline(sweep)),
    drawn.element,
    cut.element,
    h("h3", {}, "Every point"),
    table({
      caption: "Points of the sweep",
      file: sweep.name,
      columns: sweep_columns(sweep),
      rows: sweep_rows(sweep.points),
    }),
  );
}

/** How often each plan wins. */
function wins_of(sweep: SweepResult): { name: string; wins: number }[] {
  return sweep.plans
    .map((name, plan) => ({ name, wins: sweep.points.filter((point) => point.winner === plan).length }))
    .sort((a, b) => b.wins - a.wins);
}

function headline(sweep: SweepResult): string {
  const best = wins_of(sweep)[0];
  const all = sweep.points.length;
  return best === undefined || best.wins === 0
    ? `No plan fits at any of ${count(all)} points`
    : `${best.name} wins at ${count(best.wins)} of ${count(all)} points`;
}
