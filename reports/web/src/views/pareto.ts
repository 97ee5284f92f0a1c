// What a search found: speed against memory, and the front on which one is only had for the other.
import { axis, is_narrow, type Option } from "../chart";
import { h } from "../dom";
import { count, figure as number, gib, percent, seconds } from "../format";
import { figure, view, type View } from "../figure";
import { palette } from "../palette";
import type { Plan, PlanResult } from "../result";
import { grouped, scatter_frame, scatter_series } from "../scatter";
import { table } from "../table";
import { tip, tooltip } from "../tooltip";
import { figure_columns } from "./plan_columns";
import { cards } from "./verdict";

interface Point {
  plan: Plan;
  memory: number;
  speed: number;
}

function points_of(result: PlanResult): Point[] {
  return result.best.flatMap((plan) =>
    plan.peak_gpu_memory_gib === null || plan.tokens_per_s_per_gpu === null
      ? []
      : [{ plan, memory: plan.peak_gpu_memory_gib, speed: plan.tokens_per_s_per_gpu }],
  );
}

/** From the smallest memory up: each is faster than all that need no more. */
export function pareto_front(points: readonly Point[]): Point[] {
  const front: Point[] = [];
  for (const point of [...points].sort((a, b) => a.memory - b.memory || b.speed - a.speed)) {
    if (point.speed > (front.at(-1)?.speed ?? -Infinity)) {
      front.push(point);
    }
  }
  return front;
}

/** Room around the outermost points. */
const kAir = ["4%", "6%"];

function option_of(points: readonly Point[], width: number): Option {
  const colours = palette();
  const front = new Set(pareto_front(points));
  const most = Math.max(...points.map((point) => point.memory));
  const groups = grouped(points, (point) => (front.has(point) ? "on the front" : "behind it")).sort((a, b) =>
    b.name.localeCompare(a.name),
  );
  return {
    ...scatter_frame(groups, width),
    xAxis: axis("value", {
      name: "peak GPU memory, GiB",
      scale: true,
      boundaryGap: kAir,
      splitNumber: is_narrow(width) ? 3 : 6,
    }),
    yAxis: axis("value", { name: "tokens/s/GPU", scale: true, boundaryGap: kAir, nameGap: 48 }),
    tooltip: tooltip("item", ({ data }: { data: { point?: Point } }) =>
      data.point === undefined
        ? null
        : tip(data.point.plan.name, [
            { label: "tokens/s/GPU", value: number(data.point.speed) },
            { label: "GPU memory", value: gib(data.point.memory) },
            { label: "step", value: seconds(data.point.plan.step_time_s) },
            { label: "MFU", value: percent(data.point.plan.mfu) },
          ]),
    ),
    series: [
      {
        type: "line",
        step: "end",
        symbol: "none",
        silent: true,
        lineStyle: { color: colours.muted, type: "dashed", width: 1.5 },
        data: [
          ...[...front].map((point) => [point.memory, point.speed]),
          [most, Math.max(...points.map((point) => point.speed))],
        ],
        z: 1,
      },
      ...scatter_series(groups, (point) => [point.memory, point.speed]),
    ],
  };
}

export function pareto(result: PlanResult): View {
  const points = points_of(result);
  const best = result.best[0];
  const drawn = figure({
    label: `Scatter of ${points.length} plans, speed against GPU memory; the table below has the figures`,
    height: () => 420,
    option: (width) => option_of(points, width),
    table: () => ({
      caption: "The front: faster only with more memory",
      file: "pareto_front",
      columns: [{ title: "plan", key: "plan", value: (plan) => plan.name }, ...figure_columns()],
      rows: pareto_front(points).map((point) => point.plan),
    }),
  });
  return view(
    "pareto",
    "Best plans",
    `${count(result.evaluated)} of ${count(result.candidates)} legal candidates were simulated. The dashed line is the front: nothing is faster in less memory.`,
    h(
      "p",
      { class: `headline ${best === undefined ? "bad" : "good"}` },
      best === undefined ? "No plan fits" : `${best.name} is best`,
    ),
    best !== undefined && cards(best),
    drawn.element,
    table({
      caption: "The best plans, best first",
      file: "best_plans",
      columns: [
        { title: "rank", key: "rank", value: (plan) => result.best.indexOf(plan) + 1 },
        { title: "plan", key: "plan", value: (plan) => plan.name },
        ...figure_columns(),
        { title: "bound by", key: "bottleneck", value: (plan) => plan.bottleneck, wide: true },
      ],
      rows: result.best,
    }),
  );
}
