// Plans side by side: where the time of a step goes.
import { bars_height, bars_option, type Bars } from "../bars";
import { choice } from "../dom";
import { percent, seconds, short_count } from "../format";
import { figure, view, type View } from "../figure";
import type { Plan, StudyResult } from "../result";
import { table } from "../table";
import { kTimeParts, part_colour, time_parts, type TimePart } from "./breakdown";
import { plan_columns } from "./plan_columns";

/** Plans of different batches compare by the time for equally many tokens. */
const kTokens = 1e6;

/** At long lengths attention is nearly all of a step, and plans differ in the rest. */
const kSelections: readonly { name: string; hides: (part: TimePart) => boolean }[] = [
  { name: "all", hides: () => false },
  { name: "all but attention", hides: (part) => part.key === "attention" },
  { name: "where the GPU waits", hides: (part) => !part.waits },
];

function differ_in_batch(plans: readonly Plan[]): boolean {
  return new Set(plans.map((plan) => plan.tokens_per_step)).size > 1;
}

function bars_of(plans: readonly Plan[], per_tokens: boolean): Bars {
  const scale = plans.map((plan) => (per_tokens ? kTokens / (plan.tokens_per_step ?? kTokens) : 1));
  const times = plans.map(time_parts);
  const parts = kTimeParts.map((part) => ({
    name: part.name,
    colour: part_colour(part),
    hatched: part.waits,
    values: times.map((of_plan, at) => (of_plan.get(part.key) ?? 0) * (scale[at] ?? 1)),
  }));
  return {
    names: plans.map((plan) => plan.name),
    parts: parts.filter((part) => part.values.some((value) => value > 0)),
    ranges: plans.map(({ step_time_s_low: low, step_time_s_high: high }, at) =>
      typeof low === "number" && typeof high === "number" ? [low * (scale[at] ?? 1), high * (scale[at] ?? 1)] : null,
    ),
    totals: plans.map((plan, at) => seconds((plan.step_time_s ?? 0) * (scale[at] ?? 1))),
    axis_name: per_tokens ? "seconds for a million tokens" : "seconds a step",
    text: seconds,
    short: short_count,
  };
}

export function step_time(study: StudyResult): View | null {
  const plans = study.plans.filter((plan) => plan.breakdown);
  if (plans.length === 0) {
    return null;
  }
  let per_tokens = differ_in_batch(plans);
  const choices = ["one step", "a million tokens"];
  const drawn = figure({
    label: `Stacked bars: where the time goes, for ${plans.map((plan) => `${plan.name} ${seconds(plan.step_time_s)} a step`).join(", ")}`,
    height: (width) => bars_height(bars_of(plans, per_tokens), width),
    option: (width, hidden) => bars_option(bars_of(plans, per_tokens), width, hidden),
    controls: [
      choice(
        "Parts",
        kSelections.map(({ name }) => name),
        0,
        (index) => {
          drawn.chart.hide(
            kTimeParts.filter((part) => kSelections[index]?.hides(part) === true).map((part) => part.name),
          );
        },
      ),
      differ_in_batch(plans) &&
        choice("Time of", choices, per_tokens ? 1 : 0, (index) => {
          per_tokens = index === 1;
          drawn.chart.redraw();
        }),
    ],
    table: () => ({
      caption: "Parts of the step's time",
      file: "step_time",
      columns: [
        { title: "plan", key: "plan", value: (row) => row.plan },
        { title: "part", key: "part", value: (row) => row.part },
        { title: "time", key: "seconds", value: (row) => row.time, text: (row) => seconds(row.time) },
        { title: "share", key: "share_of_step", value: (row) => row.share, text: (row) => percent(row.share) },
      ],
      rows: plans.flatMap((plan) => {
        const times = time_parts(plan);
        return kTimeParts
          .map((part) => ({ plan: plan.name, part: part.name, time: times.get(part.key) ?? 0 }))
          .filter((row) => row.time > 0)
          .map((row) => ({ ...row, share: row.time / (plan.step_time_s ?? 1) }));
      }),
    }),
  });
  return view(
    "plans",
    study.plans.length === 1 ? "Step time" : "Plans side by side",
    "Solid: the GPU works. Hatched: it waits. Click a name to leave a part out.",
    drawn.element,
    table({ caption: "Plans", file: "plans", columns: plan_columns(study), rows: study.plans }),
  );
}
