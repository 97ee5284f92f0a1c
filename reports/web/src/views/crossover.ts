// Who wins where: two of the sweep's axes span a map, the others are held at one value each.
import type { CustomSeriesRenderItemAPI, CustomSeriesRenderItemReturn } from "echarts";

import { axis, is_narrow, legend, type Option } from "../chart";
import { choice, h } from "../dom";
import { figure as number, gib, percent, seconds, short_value, words } from "../format";
import { figure, view, type View } from "../figure";
import { hatch, palette, series_colour, text_on } from "../palette";
import type { SweepPlan, SweepPoint, SweepResult } from "../result";
import { tip, tooltip } from "../tooltip";

const kNone = "no plan fits";

/** "A", "B", … beside the colours. */
function letter(plan: number): string {
  return String.fromCharCode(65 + (plan % 26));
}

class Slice {
  x: number;
  y: number;
  readonly held: number[];

  constructor(readonly sweep: SweepResult) {
    // The two longest axes tell most.
    const by_length = sweep.axes.map((_, at) => at).sort((a, b) => this.length(b) - this.length(a));
    this.x = by_length[0] ?? 0;
    this.y = by_length[1] ?? -1;
    this.held = sweep.axes.map(() => 0);
  }

  length(axis: number): number {
    return this.sweep.axes[axis]?.values.length ?? 1;
  }

  labels(axis: number): string[] {
    return this.sweep.axes[axis]?.values.map(short_value) ?? [""];
  }

  key(axis: number): string {
    return axis_name(this.sweep.axes[axis]?.key ?? "");
  }

  points(): SweepPoint[] {
    return this.sweep.points.filter((point) => point.at.every((value, axis) => axis === this.x || axis === this.y || value === this.held[axis]));
  }
}

/** "sequence length" of "training.sequence_length". */
export function axis_name(key: string): string {
  return words(key.slice(key.lastIndexOf(".") + 1));
}

function cell(colour: string, text: string, size: [number, number], api: CustomSeriesRenderItemAPI, at: [number, number]): CustomSeriesRenderItemReturn {
  const [x = 0, y = 0] = api.coord(at);
  const [width, height] = size;
  const colours = palette();
  const none = text === "";
  return {
    type: "rect",
    shape: { x: x - width / 2, y: y - height / 2, width, height },
    style: { fill: colour, stroke: colours.ground, lineWidth: width > 8 ? 1 : 0, ...(none && { decal: hatch(colours.ground) }) },
    textContent: width > 13 && height > 13 && !none ? { type: "text", style: { text, fill: text_on(colour), fontSize: 11, fontWeight: 600 } } : undefined,
    textConfig: { position: "inside" },
  } as CustomSeriesRenderItemReturn;
}

function point_tip(sweep: SweepResult, point: SweepPoint): HTMLElement {
  const where = sweep.axes.map(({ key, values }, axis) => `${axis_name(key)} ${short_value(values[point.at[axis] ?? 0] ?? "")}`);
  const lines = sweep.plans.map((name, plan) => {
    const own = point.plans[plan];
    const value = own?.fits === true ? `${number(own.tokens_per_s_per_gpu)} tokens/s/GPU` : own?.feasible === true ? `does not fit (${gib(own.peak_gpu_memory_gib)})` : "cannot run";
    return { label: `${letter(plan)} ${name}${plan === point.winner ? " ★" : ""}`, value, colour: series_colour(plan) };
  });
  const best = point.winner === null ? undefined : point.plans[point.winner];
  const note = best === undefined ? (point.plans[0]?.reason ?? "") : `${seconds(best.step_time_s)} a step, ${gib(best.peak_gpu_memory_gib)}; ${best.bottleneck ?? ""}`;
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
    grid: { left: 28, right: 12, top: map_top(sweep, width), bottom: 44, containLabel: true },
    xAxis: axis("category", { data: slice.labels(slice.x), name: slice.key(slice.x), axisLine: { show: false }, axisLabel: { rotate: is_narrow(width) ? 60 : 0 } }),
    yAxis: axis("category", { data: slice.labels(slice.y), name: slice.key(slice.y), nameGap: 46, axisLine: { show: false } }),
    tooltip: tooltip("item", ({ data }: { data: { point: SweepPoint } }) => point_tip(sweep, data.point)),
    series: shown.map((one) => ({
      type: "custom",
      name: one.name,
      itemStyle: { color: one.colour },
      data: one.points.map((point) => ({ value: [point.at[slice.x] ?? 0, point.at[slice.y] ?? 0], point })),
      renderItem: (params: { dataIndex: number; coordSys: { width: number; height: number } }, api: CustomSeriesRenderItemAPI) => {
        const point = one.points[params.dataIndex];
        const size: [number, number] = [params.coordSys.width / columns, params.coordSys.height / rows];
        return point === undefined
          ? null
          : cell(one.colour, one.plan === null ? "" : letter(one.plan), size, api, [point.at[slice.x] ?? 0, point.at[slice.y] ?? 0]);
      },
    })),
  };
}

function map_top(sweep: SweepResult, width: number): number {
  return Math.ceil(((sweep.plans.length + 1) * 160) / Math.max(width, 1)) * 24 + 12;
}

interface PointRow {
  at: number[];
  plan: SweepPlan;
  wins: boolean;
}

/** Every plan of every point. */
export function sweep_rows(sweep: SweepResult): PointRow[] {
  return sweep.points.flatMap((point) => point.plans.map((plan, index) => ({ at: point.at, plan, wins: index === point.winner })));
}

/** Selects for the two axes of the map, sliders for the others. */
function controls(slice: Slice, changed: () => void): HTMLElement {
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
    const held = slice.sweep.axes.flatMap((_, axis) => (axis === slice.x || axis === slice.y ? [] : [held_control(slice, axis, changed)]));
    holder.replaceChildren(...(keys.length < 2 ? [] : [pick("Across", "x", "y"), pick("Up", "y", "x")]), ...held);
  };
  fill();
  return holder;
}

function held_control(slice: Slice, axis: number, changed: () => void): HTMLElement {
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

export function crossover(sweep: SweepResult): View {
  const slice = new Slice(sweep);
  const wins = sweep.plans.map((name, plan) => `${name} wins ${sweep.points.filter((point) => point.winner === plan).length}`);
  const drawn = figure({
    label: `Map of ${sweep.points.length} points coloured by the winning plan: ${wins.join(", ")}`,
    height: (width) => map_top(sweep, width) + Math.min(520, Math.max(140, slice.length(slice.y) * 34)) + 60,
    option: (width) => option_of(slice, width),
    controls: [
      controls(slice, () => {
        drawn.chart.redraw();
      }),
    ],
    table: () => ({
      caption: "Points of the sweep",
      file: sweep.name,
      columns: [
        ...sweep.axes.map(({ key, values }, axis) => ({
          title: axis_name(key),
          key,
          value: (row: PointRow) => number_or_text(values[row.at[axis] ?? 0] ?? ""),
          text: (row: PointRow) => short_value(values[row.at[axis] ?? 0] ?? ""),
        })),
        { title: "plan", key: "plan", value: (row: PointRow) => row.plan.name },
        { title: "wins", key: "wins", value: (row: PointRow) => (row.wins ? "wins" : ""), text: (row: PointRow) => (row.wins ? "★" : "") },
        { title: "fits", key: "fit", value: (row: PointRow) => row.plan.fit ?? "cannot run" },
        { title: "step", key: "step_time_s", value: (row: PointRow) => row.plan.step_time_s, text: (row: PointRow) => seconds(row.plan.step_time_s) },
        { title: "tokens/s/GPU", key: "tokens_per_s_per_gpu", value: (row: PointRow) => row.plan.tokens_per_s_per_gpu, text: (row: PointRow) => number(row.plan.tokens_per_s_per_gpu) },
        { title: "MFU", key: "mfu", value: (row: PointRow) => row.plan.mfu, text: (row: PointRow) => percent(row.plan.mfu) },
        { title: "GPU memory", key: "peak_gpu_memory_gib", value: (row: PointRow) => row.plan.peak_gpu_memory_gib, text: (row: PointRow) => gib(row.plan.peak_gpu_memory_gib) },
        { title: "host/node", key: "peak_host_memory_gib_per_node", value: (row: PointRow) => row.plan.peak_host_memory_gib_per_node, text: (row: PointRow) => gib(row.plan.peak_host_memory_gib_per_node) },
        { title: "exposed comm.", key: "exposed_communication_s", value: (row: PointRow) => row.plan.exposed_communication_s, text: (row: PointRow) => seconds(row.plan.exposed_communication_s) },
        { title: "bound by, or why not", key: "bottleneck_or_reason", value: (row: PointRow) => row.plan.bottleneck ?? row.plan.reason },
      ],
      rows: sweep_rows(sweep),
    }),
  });
  return view("crossover", "Who wins where", "Each cell is one scenario, coloured and lettered by its fastest plan that fits.", drawn.element);
}

function number_or_text(text: string): string | number {
  return text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
}
