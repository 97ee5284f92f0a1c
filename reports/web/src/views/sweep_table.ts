// The columns of a sweep: where a point lies, and one of its plans.
import { figure as number, gib, percent, seconds, short_value, words } from "../format";
import type { SweepPlan, SweepPoint, SweepResult } from "../result";
import type { Column } from "../rows";

export interface SweepRow {
  at: number[];
  plan: SweepPlan;
  wins: boolean;
}

/** "sequence length" of "training.sequence_length". */
export function axis_name(key: string): string {
  return words(key.slice(key.lastIndexOf(".") + 1));
}

/** Every plan of every point. */
export function sweep_rows(points: readonly SweepPoint[]): SweepRow[] {
  return points.flatMap((point) =>
    point.plans.map((plan, index) => ({ at: point.at, plan, wins: index === point.winner })),
  );
}

function number_or_text(text: string): string | number {
  return text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
}

export function sweep_columns({ axes }: SweepResult): Column<SweepRow>[] {
  return [
    ...axes.map(({ key, values }, axis): Column<SweepRow> => ({
      title: axis_name(key),
      key,
      value: (row) => number_or_text(values[row.at[axis] ?? 0] ?? ""),
      text: (row) => short_value(values[row.at[axis] ?? 0] ?? ""),
    })),
    { title: "plan", key: "plan", value: ({ plan }) => plan.name },
    { title: "wins", key: "wins", value: ({ wins }) => (wins ? "wins" : ""), text: ({ wins }) => (wins ? "★" : "") },
    { title: "fits", key: "fit", value: ({ plan }) => plan.fit ?? "cannot run" },
    {
      title: "step",
      key: "step_time_s",
      value: ({ plan }) => plan.step_time_s,
      text: ({ plan }) => seconds(plan.step_time_s),
    },
    {
      title: "tokens/s/GPU",
      key: "tokens_per_s_per_gpu",
      value: ({ plan }) => plan.tokens_per_s_per_gpu,
      text: ({ plan }) => number(plan.tokens_per_s_per_gpu),
    },
    { title: "MFU", key: "mfu", value: ({ plan }) => plan.mfu, text: ({ plan }) => percent(plan.mfu) },
    {
      title: "GPU memory",
      key: "peak_gpu_memory_gib",
      value: ({ plan }) => plan.peak_gpu_memory_gib,
      text: ({ plan }) => gib(plan.peak_gpu_memory_gib),
    },
    {
      title: "host/node",
      key: "peak_host_memory_gib_per_node",
      value: ({ plan }) => plan.peak_host_memory_gib_per_node,
      text: ({ plan }) => gib(plan.peak_host_memory_gib_per_node),
    },
    {
      title: "exposed comm.",
      key: "exposed_communication_s",
      value: ({ plan }) => plan.exposed_communication_s,
      text: ({ plan }) => seconds(plan.exposed_communication_s),
    },
    {
      title: "bound by, or why not",
      key: "bottleneck_or_reason",
      value: ({ plan }) => (plan.fits === true ? plan.bottleneck : plan.reason),
    },
  ];
}
