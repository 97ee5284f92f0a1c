// Stacked bars, one for each plan: parts of a step, of a memory, of a volume; with the total, an error bar and a limit
// where there are such.
import type { CustomSeriesRenderItemAPI, CustomSeriesRenderItemReturn } from "echarts";

import { axis, grid, is_narrow, legend, legend_height, type Option } from "./chart";
import { shortened } from "./format";
import { hatch, palette } from "./palette";
import { tip, tooltip } from "./tooltip";

export interface Part {
  name: string;
  colour: string;
  /** The GPU waits here. */
  hatched?: boolean;
  /** One figure per bar. */
  values: number[];
}

export interface Bars {
  names: string[];
  parts: Part[];
  /** Of each bar, where known: below and above what is drawn. */
  ranges?: ([number, number] | null)[];
  /** Of each bar, where there is one. */
  limits?: (number | null)[];
  limit_name?: string;
  /** The written total of each bar. */
  totals: string[];
  axis_name: string;
  text: (value: number) => string;
  short: (value: number) => string;
}

const kBar = 26;
const kWhisker = 5;

function part_names(bars: Bars): string[] {
  return bars.parts.map((part) => part.name);
}

export function bars_height(bars: Bars, width: number): number {
  return legend_height(part_names(bars), width) + bars.names.length * 48 + 62;
}

/** Where there is little room a plan's degrees stand below each other. */
function axis_text(name: string, narrow: boolean): string {
  return narrow
    ? name
        .split(/(?<=,)/)
        .slice(0, 3)
        .map((degree) => shortened(degree, 14))
        .join("\n")
    : shortened(name, 28);
}

function total(bars: Bars, at: number): number {
  return bars.parts.reduce((sum, part) => sum + (part.values[at] ?? 0), 0);
}

/** Total, error bar and limit of one bar, drawn over it. */
function marks(bars: Bars, at: number, api: CustomSeriesRenderItemAPI): CustomSeriesRenderItemReturn {
  const colours = palette();
  const [x = 0, y = 0] = api.coord([total(bars, at), at]);
  const range = bars.ranges?.[at] ?? null;
  const limit = bars.limits?.[at] ?? null;
  const stroke = (x1: number, y1: number, x2: number, y2: number, colour: string, lineWidth: number) => ({
    type: "line" as const,
    shape: { x1, y1, x2, y2 },
    style: { stroke: colour, lineWidth },
    silent: true,
  });
  const shapes = [];
  let end = x;
  if (range !== null) {
    const [low = 0, high = 0] = range.map((value) => api.coord([value, at])[0] ?? 0);
    shapes.push(stroke(low, y, high, y, colours.text, 1.5));
    shapes.push(stroke(low, y - kWhisker, low, y + kWhisker, colours.text, 1.5));
    shapes.push(stroke(high, y - kWhisker, high, y + kWhisker, colours.text, 1.5));
    end = Math.max(end, high);
  }
  if (limit !== null) {
    const [at_limit = 0] = api.coord([limit, at]);
    shapes.push(stroke(at_limit, y - kBar / 2 - 6, at_limit, y + kBar / 2 + 6, colours.bad, 2.5));
  }
  shapes.push({
    type: "text" as const,
    style: {
      x: end + 8,
      y,
      text: bars.totals[at] ?? "",
      fill: colours.text,
      verticalAlign: "middle" as const,
      fontWeight: 600,
    },
    silent: true,
  });
  return { type: "group", children: shapes };
}

/** What is left when the reader leaves parts out: its sum is the total, and what is said of the whole is gone. */
function without(all: Bars, hidden: ReadonlySet<string>): Bars {
  if (!all.parts.some((part) => hidden.has(part.name))) {
    return all;
  }
  const parts = all.parts.map((part) => (hidden.has(part.name) ? { ...part, values: part.values.map(() => 0) } : part));
  const left = { ...all, parts, ranges: [], limits: [] };
  return { ...left, totals: left.names.map((_, at) => left.text(total(left, at))) };
}

export function bars_option(all: Bars, width: number, hidden: ReadonlySet<string>): Option {
  const bars = without(all, hidden);
  const colours = palette();
  const narrow = is_narrow(width);
  const top = legend_height(part_names(bars), width);
  const series = bars.parts.map((part) => ({
    type: "bar",
    name: part.name,
    stack: "all",
    barWidth: kBar,
    data: part.values,
    itemStyle: {
      color: part.colour,
      borderColor: colours.ground,
      borderWidth: 0.5,
      ...(part.hatched === true && { decal: hatch(colours.ground) }),
    },
    emphasis: { disabled: true },
  }));
  const furthest = bars.names.map((_, at) =>
    Math.max(total(bars, at), bars.ranges?.[at]?.[1] ?? 0, bars.limits?.[at] ?? 0),
  );
  return {
    legend: legend({ data: part_names(bars) }),
    grid: { ...grid(top + 4), right: 18 + 7.5 * Math.max(...bars.totals.map((text) => text.length)) },
    xAxis: axis("value", {
      name: bars.axis_name,
      min: 0,
      max: Math.max(...furthest) || 1,
      axisLabel: { formatter: bars.short, showMaxLabel: false },
      splitNumber: narrow ? 3 : 6,
      splitLine: { show: true, showMaxLine: false, lineStyle: { color: colours.line, opacity: 0.6 } },
    }),
    yAxis: axis("category", {
      data: bars.names.map((name) => axis_text(name, narrow)),
      inverse: true,
      axisLabel: { color: colours.text, hideOverlap: false, lineHeight: 14 },
    }),
    tooltip: tooltip("axis", (params: { dataIndex: number }[]) => {
      const at = params[0]?.dataIndex ?? 0;
      const lines = bars.parts
        .filter((part) => (part.values[at] ?? 0) > 0)
        .map((part) => ({ label: part.name, value: bars.text(part.values[at] ?? 0), colour: part.colour }));
      const limit = bars.limits?.[at] ?? null;
      const range = bars.ranges?.[at] ?? null;
      return tip(bars.names[at] ?? "", [
        ...lines,
        { label: "total", value: bars.totals[at] ?? "" },
        ...(range === null ? [] : [{ label: "between", value: `${bars.text(range[0])} and ${bars.text(range[1])}` }]),
        ...(limit === null ? [] : [{ label: bars.limit_name ?? "limit", value: bars.text(limit) }]),
      ]);
    }),
    series: [
      ...series,
      {
        type: "custom",
        name: "total",
        data: bars.names.map((_, at) => [total(bars, at), at]),
        renderItem: (params: { dataIndex: number }, api: CustomSeriesRenderItemAPI) =>
          marks(bars, params.dataIndex, api),
        tooltip: { show: false },
        z: 5,
      },
    ],
  };
}
