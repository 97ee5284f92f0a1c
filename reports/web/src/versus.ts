// A figure against its measurement, group by group, on logarithmic axes: as such, or as a relative error, which stays
// in sight over many decades.
import type { CustomSeriesRenderItemAPI, CustomSeriesRenderItemReturn } from "echarts";

import { band_series } from "./band";
import { axis, is_narrow, type Option } from "./chart";
import { palette } from "./palette";
import { grouped, scatter_frame, scatter_series } from "./scatter";
import { tooltip } from "./tooltip";

export interface Versus<Point> {
  points: readonly Point[];
  group: (point: Point) => string;
  /** Both above 0. */
  measured: (point: Point) => number;
  other: (point: Point) => number;
  /** "predicted", "fitted". */
  other_name: string;
  /** With a leading comma, or nothing. */
  unit: string;
  text: (value: number) => string;
  relative: boolean;
  tip: (point: Point) => HTMLElement;
  /** Where the other figure may lie, where that is known. */
  range?: (point: Point) => [number, number] | null;
}

/** A vertical line from low to high at each point that has them. */
function range_series<Point>({ points, measured, range, relative }: Versus<Point>): object {
  const colours = palette();
  const at = (point: Point, value: number): number => (relative ? value / measured(point) - 1 : value);
  const known = points.flatMap((point) => {
    const [low, high] = range?.(point) ?? [0, 0];
    return low > 0 && high > 0 ? [[measured(point), at(point, low), at(point, high)]] : [];
  });
  return {
    type: "custom",
    silent: true,
    tooltip: { show: false },
    data: known,
    encode: { x: 0, y: [1, 2] },
    z: 1,
    renderItem: (_: unknown, api: CustomSeriesRenderItemAPI): CustomSeriesRenderItemReturn => {
      const [x1 = 0, y1 = 0] = api.coord([api.value(0), api.value(1)]);
      const [, y2 = 0] = api.coord([api.value(0), api.value(2)]);
      return { type: "line", shape: { x1, y1, x2: x1, y2 }, style: { stroke: colours.muted, lineWidth: 1.5 } };
    },
  };
}

/** Wide enough for the furthest point, with some room. */
function span(values: readonly number[]): [number, number] {
  return [Math.min(...values) / 1.6, Math.max(...values) * 1.6];
}

export function versus_option<Point>(versus: Versus<Point>, width: number): Option {
  const { points, measured, other, relative } = versus;
  const groups = grouped(points, versus.group);
  const [low, high] = span(
    relative ? points.map(measured) : points.flatMap((point) => [measured(point), other(point)]),
  );
  // A logarithmic axis labels its ends with any number; they are left out.
  const log = { min: low, max: high, axisLabel: { formatter: versus.text, showMinLabel: false, showMaxLabel: false } };
  const nameGap = is_narrow(width) ? 42 : 50;
  const y = relative
    ? axis("value", {
        name: `${versus.other_name} above or below measured`,
        nameGap,
        min: band_below,
        max: band_above,
        axisLabel: { formatter: signed_percent },
      })
    : axis("log", { name: `${versus.other_name}${versus.unit}`, nameGap, ...log });
  return {
    ...scatter_frame(groups, width),
    xAxis: axis("log", { name: `measured${versus.unit}`, ...log }),
    yAxis: y,
    tooltip: tooltip("item", ({ data }: { data: { point?: Point } }) =>
      data.point === undefined ? null : versus.tip(data.point),
    ),
    series: [
      band_series(low, high, (x, factor) => (relative ? factor - 1 : x * factor)),
      range_series(versus),
      ...scatter_series(groups, (point) => [
        measured(point),
        relative ? other(point) / measured(point) - 1 : other(point),
      ]),
    ],
  };
}

function signed_percent(share: number): string {
  return `${share > 0 ? "+" : share < 0 ? "−" : ""}${Math.round(Math.abs(share) * 100)}%`;
}

/** The band is seen whole, however good the points are. */
function band_below({ min }: { min: number }): number {
  return Math.min(-0.2, Math.floor(min * 11) / 10);
}

function band_above({ max }: { max: number }): number {
  return Math.max(0.2, Math.ceil(max * 11) / 10);
}

export const kVersusNames = ["against measured", "as relative error"];
