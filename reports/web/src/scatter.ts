// Points on two axes, in groups that differ by colour and by shape.
import { grid, legend, legend_height } from "./chart";
import { palette, series_colour } from "./palette";

const kSymbols = [
  "circle",
  "rect",
  "triangle",
  "diamond",
  "path://M0,0L10,0L5,9Z", // a triangle on its tip
  "path://M4,0H6V4H10V6H6V10H4V6H0V4H4Z", // a plus
  "path://M0,1L1,0L5,4L9,0L10,1L6,5L10,9L9,10L5,6L1,10L0,9L4,5Z", // a cross
];

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
export function scatter_series<Point>(
  groups: readonly Group<Point>[],
  at: (point: Point) => [number, number],
): object[] {
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

/** The legend of the groups, and the plot below it. */
export function scatter_frame(groups: readonly { name: string }[], width: number): Record<string, unknown> {
  const names = groups.map(({ name }) => name);
  return { legend: legend({ data: names }), grid: grid(legend_height(names, width) + 6) };
}
