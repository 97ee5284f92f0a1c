// The band of ±15% around "as measured" on logarithmic axes, and the line in its middle.
import type { CustomSeriesRenderItemAPI, CustomSeriesRenderItemReturn } from "echarts";

import { palette } from "./palette";

export const kBand = 0.15;

/** A series for a logarithmic x axis from `low` to `high`, low > 0; `at(x, factor)` is where factor · x lies on the y
 * axis. */
export function band_series(low: number, high: number, at: (x: number, factor: number) => number): object {
  const colours = palette();
  return {
    type: "custom",
    silent: true,
    data: [[low, at(low, 1)]],
    tooltip: { show: false },
    clip: true,
    z: 0,
    renderItem: (_: unknown, api: CustomSeriesRenderItemAPI): CustomSeriesRenderItemReturn => {
      const point = (x: number, y: number): [number, number] => {
        const [px = 0, py = 0] = api.coord([x, y]);
        return [px, py];
      };
      const [x1, y1] = point(low, at(low, 1));
      const [x2, y2] = point(high, at(high, 1));
      return {
        type: "group",
        children: [
          {
            type: "polygon",
            shape: {
              points: [
                point(low, at(low, 1 - kBand)),
                point(high, at(high, 1 - kBand)),
                point(high, at(high, 1 + kBand)),
                point(low, at(low, 1 + kBand)),
              ],
            },
            style: { fill: colours.good, opacity: 0.16 },
          },
          { type: "line", shape: { x1, y1, x2, y2 }, style: { stroke: colours.good, lineWidth: 1.5 } },
        ],
      };
    },
  };
}
