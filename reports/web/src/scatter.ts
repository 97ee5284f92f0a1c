// Points on two axes, in groups that differ by colour and by shape.
import { legend } from "./chart";
import { palette, series_colour } from "./palette";

const kSymbols = ["circle", "rect", "triangle", "diamond", "pin", "arrow", "roundRect"];

export interface Group<Point> {
  name: string;
  points: readonly Point[];
}

/** In order of first appearance. */
export function grouped<Point>(points: readonly Point[], name: (point: Point) => string): Group<Point>[] {
  const groups = new Map<string, Point[]>();
  for (const point of points) {
    const own = groups.get(name(point)) ?? [];
    own.push(point);
    groups.set(name(point), own);
  }
  return [...groups].map(([key, own]) => ({ name: key, points: own }));
}

/** One series a group; the points travel along as `point`, for the tooltip. */
export function scatter_series<Point>(groups: readonly Group<Point>[], at: (point: Point) => [number, number]): object[] {
  const colours = palette();
  return groups.map((group, index) => ({
    type: "scatter",
    name: group.name,
    symbol: kSymbols[index % kSymbols.length],
    symbolSize: 10,
    itemStyle: { color: series_colour(index), borderColor: colours.ground, borderWidth: 0.5, opacity: 0.85 },
    data: group.points.map((point) => ({ value: at(point), point })),
  }));
}

export function scatter_legend(groups: readonly { name: string }[]): Record<string, unknown> {
  return legend({ data: groups.map(({ name }) => name) });
}

export function legend_room(entries: number, width: number): number {
  return Math.ceil((entries * 165) / Math.max(width, 1)) * 24 + 14;
}
