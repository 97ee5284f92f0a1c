// GPU memory over the step, and what is alive at each time.
import { axis, grid, legend, legend_height, zoom, type Option } from "../chart";
import { gib, seconds, short_count, words } from "../format";
import { figure } from "../figure";
import type { MemoryByKind, Plan, StudyResult } from "../result";
import { tip, tooltip } from "../tooltip";
import { kind_look, kinds_of } from "./memory";
import { PlanChoice } from "./plan_choice";

interface Curve extends MemoryByKind {
  /** Places of the kinds among those of all plans: their colours. */
  looks: number[];
}

function total(row: readonly number[]): number {
  return row.reduce((sum, size) => sum + size, 0);
}

/** By kind where that is known, else as a whole. */
function curve_of(plan: Plan, all_kinds: readonly string[]): Curve {
  const known = plan.memory_by_kind;
  if (known) {
    return { ...known, looks: known.kinds.map((kind) => all_kinds.indexOf(kind)) };
  }
  const samples = plan.memory_curve ?? [];
  return {
    kinds: ["allocated"],
    times_s: samples.map((sample) => sample.time_s),
    gib: samples.map((sample) => [sample.allocated_gib]),
    looks: [0],
  };
}

function option_of(plan: Plan, curve: Curve, width: number): Option {
  const used = curve.kinds.map((_, at) => at).filter((at) => curve.gib.some((row) => (row[at] ?? 0) > 0));
  const names = used.map((at) => words(curve.kinds[at] ?? ""));
  const end = plan.step_time_s ?? curve.times_s.at(-1) ?? 1;
  return {
    legend: legend({ show: used.length > 1, icon: "roundRect", data: names }),
    grid: grid((used.length > 1 ? legend_height(names, width) : 0) + 20, 36),
    xAxis: axis("value", { name: "seconds into the step", min: 0, max: end, axisLabel: { formatter: short_count } }),
    yAxis: axis("value", { name: "GiB", nameLocation: "end", nameGap: 8, min: 0 }),
    dataZoom: zoom("none"),
    tooltip: tooltip("axis", (params: { dataIndex: number }[]) => {
      const at = Math.min(params[0]?.dataIndex ?? 0, curve.gib.length - 1);
      const row = curve.gib[at] ?? [];
      const alive = used
        .map((kind) => ({ kind, size: row[kind] ?? 0 }))
        .filter(({ size }) => size > 0)
        .sort((a, b) => b.size - a.size);
      return tip(`${seconds(curve.times_s[at])}: ${gib(total(row))} allocated`, [
        ...alive.map(({ kind, size }) => ({
          label: words(curve.kinds[kind] ?? ""),
          value: gib(size),
          colour: kind_look(curve.looks[kind] ?? 0).colour,
        })),
      ]);
    }),
    series: used.map((at) => {
      const { colour } = kind_look(curve.looks[at] ?? 0);
      return {
        type: "line",
        name: words(curve.kinds[at] ?? ""),
        stack: "all",
        step: "end",
        symbol: "none",
        lineStyle: { width: 0 },
        areaStyle: { color: colour, opacity: 0.9 },
        itemStyle: { color: colour },
        emphasis: { disabled: true },
        // What is alive at the last sample stays so to the end of the step.
        data: [
          ...curve.times_s.map((time, index) => [time, curve.gib[index]?.[at] ?? 0]),
          [end, curve.gib.at(-1)?.[at] ?? 0],
        ],
      };
    }),
  };
}

export function memory_curve(study: StudyResult, plans: readonly Plan[]): HTMLElement | null {
  const shown = plans.filter((plan) => (plan.memory_curve?.length ?? 0) > 0);
  if (shown.length === 0) {
    return null;
  }
  const kinds = kinds_of(plans);
  const chosen = new PlanChoice(study, shown);
  const drawn = figure({
    title: "GPU memory over the step",
    label: "Area chart: allocated GPU memory over the step, by what is alive; the figures are in the table below",
    height: () => 400,
    zooms: true,
    option: (width) => option_of(chosen.plan, curve_of(chosen.plan, kinds), width),
    controls: [
      chosen.control(() => {
        drawn.chart.redraw();
      }),
    ],
    table: () => {
      const curve = curve_of(chosen.plan, kinds);
      return {
        caption: `GPU memory over the step of ${chosen.plan.name}`,
        file: "memory_over_step",
        columns: [
          {
            title: "time",
            key: "time_s",
            value: (at: number) => curve.times_s[at],
            text: (at: number) => seconds(curve.times_s[at]),
          },
          {
            title: "allocated",
            key: "allocated_gib",
            value: (at: number) => total(curve.gib[at] ?? []),
            text: (at: number) => gib(total(curve.gib[at] ?? [])),
          },
          ...curve.kinds.map((kind, index) => ({
            title: words(kind),
            key: `${kind}_gib`,
            value: (at: number) => curve.gib[at]?.[index],
            text: (at: number) => gib(curve.gib[at]?.[index]),
          })),
        ],
        rows: curve.times_s.map((_, at) => at),
      };
    },
  });
  return drawn.element;
}
