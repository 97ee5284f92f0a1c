// The band of ±15% around "as measured" on two logarithmic axes, and the line in its middle.
import type { CustomSeriesRenderItemAPI, CustomSeriesRenderItemReturn } from "echarts";

import { palette } from "./palette";

export const kBand = 0.15;

/** A series for axes that both span [low, high]; low > 0. */
export function band_series(low: number, high: number): object {
  const colours = palette();
  return {
    type: "custom",
    silent: true,
    data: [[low, low]],
    tooltip: { show: false },
    clip: true,
    z: 0,
    renderItem: (_: unknown, api: CustomSeriesRenderItemAPI): CustomSeriesRenderItemReturn => {
      const point = (x: number, y: number): [number, number] => {
        const [px = 0, py = 0] = api.coord([x, y]);
        return [px, py];
      };
      const [x1, y1] = point(low, low);
      const [x2, y2] = point(high, high);
      return {
        type: "group",
        children: [
          {
            type: "polygon",
            shape: {
              points: [
                point(low, low * (1 - kBand)),
                point(high, high * (1 - kBand)),
                point(high, high * (1 + kBand)),
                point(low, low * (1 + kBand)),
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
