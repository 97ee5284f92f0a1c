// The longest sequence that each plan trains, what stops it, and what would reach further.
import { bars_height, bars_option, type Bars } from "../bars";
import { count, seconds, short_count, words } from "../format";
import { figure, view, type View } from "../figure";
import { palette } from "../palette";
import type { Lift, Plan, StudyResult } from "../result";
import { table } from "../table";
import { is_longest } from "./verdict";

function longest_of(plan: Plan): number {
  return plan.max_sequence_length ?? 0;
}

function furthest(plan: Plan): Lift | undefined {
  return [...(plan.lifts ?? [])].sort((a, b) => b.max_sequence_length - a.max_sequence_length)[0];
}

function bars_of(plans: readonly Plan[]): Bars {
  const { series } = palette();
  const lifted = plans.map((plan) => Math.max(0, (furthest(plan)?.max_sequence_length ?? 0) - longest_of(plan)));
  const parts = [
    { name: "as the scenario says", colour: series[0] ?? "", values: plans.map(longest_of) },
    { name: "further with the best option below", colour: series[4] ?? "", hatched: true, values: lifted },
  ];
  return {
    names: plans.map((plan) => plan.name),
    parts: parts.filter((part) => part.values.some((value) => value > 0)),
    totals: plans.map((plan) => count(longest_of(plan))),
    axis_name: "tokens of one sequence",
    text: (tokens) => `${count(tokens)} tokens`,
    short: short_count,
  };
}

const kLimits: Record<string, string> = { "gpu-memory": "GPU memory", "host-memory": "host memory", nvme: "NVMe" };

export function longest(study: StudyResult): View | null {
  if (!is_longest(study)) {
    return null;
  }
  const { plans } = study;
  const drawn = figure({
    label: `Bars: longest sequence, ${plans.map((plan) => `${plan.name} ${count(plan.max_sequence_length)} tokens`).join(", ")}`,
    height: (width) => bars_height(bars_of(plans), width),
    option: (width, hidden) => bars_option(bars_of(plans), width, hidden),
    table: () => ({
      caption: "Options that reach further",
      file: "lifts",
      columns: [
        { title: "plan", key: "plan", value: (row) => row.plan },
        { title: "with", key: "option", value: (row) => row.option },
        {
          title: "tokens",
          key: "max_sequence_length",
          value: (row) => row.max_sequence_length,
          text: (row) => count(row.max_sequence_length),
        },
        { title: "step", key: "step_time_s", value: (row) => row.step_time_s, text: (row) => seconds(row.step_time_s) },
      ],
      rows: plans.flatMap((plan) => (plan.lifts ?? []).map((lift) => ({ plan: plan.name, ...lift }))),
    }),
  });
  return view(
    "longest",
    "Longest sequences",
    "",
    drawn.element,
    table({
      caption: "Longest sequences",
      file: "longest_sequences",
      columns: [
        { title: "plan", key: "plan", value: (plan) => plan.name },
        {
          title: "tokens",
          key: "max_sequence_length",
          value: longest_of,
          text: (plan) => count(plan.max_sequence_length),
        },
        {
          title: "stopped by",
          key: "limit",
          value: (plan) => plan.limit,
          text: (plan) => kLimits[plan.limit ?? ""] ?? words(plan.limit ?? ""),
        },
        {
          title: "next length fails",
          key: "next_sequence_length",
          value: (plan) => plan.next_sequence_length,
          text: (plan) => count(plan.next_sequence_length),
        },
        { title: "reaches further with", key: "lift", value: (plan) => furthest(plan)?.option, wide: true },
        {
          title: "up to",
          key: "lifted_sequence_length",
          value: (plan) => furthest(plan)?.max_sequence_length,
          text: (plan) => count(furthest(plan)?.max_sequence_length),
        },
      ],
      rows: plans,
    }),
  );
}
