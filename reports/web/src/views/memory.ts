// Memory at its peak, against what there is: GPU and host.
import { bars_height, bars_option, type Bars } from "../bars";
import { gib, short_count, words } from "../format";
import { figure, view, type Figure, type View } from "../figure";
import { series_colour } from "../palette";
import type { Plan, StudyResult } from "../result";
import { memory_curve } from "./memory_curve";

interface Where {
  name: string;
  file: string;
  /** GiB by kind; what is above the sum of the parts is "unnamed". */
  parts: (plan: Plan) => Record<string, number>;
  capacity: (plan: Plan) => number | null;
  peak: (plan: Plan) => number | null;
  range: (plan: Plan) => [number, number] | null;
}

const kGpu: Where = {
  name: "GPU memory",
  file: "gpu_memory",
  parts: (plan) => plan.memory ?? {},
  capacity: (plan) => plan.gpu_memory_capacity_gib ?? null,
  peak: (plan) => plan.peak_gpu_memory_gib,
  range: ({ peak_gpu_memory_gib_low: low, peak_gpu_memory_gib_high: high }) =>
    typeof low === "number" && typeof high === "number" ? [low, high] : null,
};

const kHost: Where = {
  name: "Host memory of a node",
  file: "host_memory",
  parts: (plan) => plan.host_memory?.parts ?? { "in use": plan.peak_host_memory_gib_per_node ?? 0 },
  capacity: (plan) => plan.host_memory_capacity_gib_per_node ?? null,
  peak: (plan) => plan.peak_host_memory_gib_per_node ?? null,
  range: () => null,
};

/** The order of kinds is that of their first appearance, so a kind has one colour in all charts of a plan list. */
export function kinds_of(plans: readonly Plan[]): string[] {
  const kinds = new Set<string>();
  for (const plan of plans) {
    for (const kind of plan.memory_by_kind?.kinds ?? []) {
      kinds.add(kind);
    }
    for (const [kind, size] of Object.entries(plan.memory ?? {})) {
      if (size > 0) {
        kinds.add(kind);
      }
    }
  }
  return [...kinds];
}

/** Colours are few: from the ninth kind on they are hatched as well. */
export function kind_look(index: number): { colour: string; hatched: boolean } {
  return { colour: series_colour(index), hatched: index >= 8 };
}

function bars_of(plans: readonly Plan[], where: Where): Bars {
  const known = where === kGpu ? kinds_of(plans) : [];
  const kinds = [...new Set([...known, ...plans.flatMap((plan) => Object.keys(where.parts(plan)))])];
  const parts = kinds.map((kind, index) => ({
    name: words(kind),
    ...kind_look(index),
    values: plans.map((plan) => where.parts(plan)[kind] ?? 0),
  }));
  return {
    names: plans.map((plan) => plan.name),
    parts: parts.filter((part) => part.values.some((value) => value > 0)),
    ranges: plans.map(where.range),
    limits: plans.map(where.capacity),
    limit_name: "capacity",
    totals: plans.map((plan) => gib(where.peak(plan))),
    axis_name: "GiB",
    text: gib,
    short: short_count,
  };
}

function peak(plans: readonly Plan[], where: Where): Figure {
  return figure({
    title: `${where.name} at the peak`,
    label: `Stacked bars: ${where.name}: ${plans
      .map((plan) => `${plan.name} ${gib(where.peak(plan))} of ${gib(where.capacity(plan))}`)
      .join(", ")}`,
    height: (width) => bars_height(bars_of(plans, where), width),
    option: (width, hidden) => bars_option(bars_of(plans, where), width, hidden),
    table: () => ({
      caption: where.name,
      file: where.file,
      columns: [
        { title: "plan", key: "plan", value: (row) => row.plan },
        { title: "kind", key: "kind", value: (row) => row.kind, text: (row) => words(row.kind) },
        { title: "size", key: "gib", value: (row) => row.size, text: (row) => gib(row.size) },
      ],
      rows: plans.flatMap((plan) =>
        Object.entries(where.parts(plan)).map(([kind, size]) => ({ plan: plan.name, kind, size })),
      ),
    }),
  });
}

export function memory(study: StudyResult): View | null {
  const plans = study.plans.filter((plan) => plan.memory);
  if (plans.length === 0) {
    return null;
  }
  const on_host = plans.filter((plan) => (plan.peak_host_memory_gib_per_node ?? 0) > 0);
  return view(
    "memory",
    "Memory",
    "The red mark is the capacity.",
    peak(plans, kGpu).element,
    on_host.length > 0 && peak(on_host, kHost).element,
    memory_curve(study, plans),
  );
}
