// The step's time in the parts that are drawn: `breakdown`, with exposed communication split by collective.
import { words } from "../format";
import { palette } from "../palette";
import type { Plan } from "../result";

export interface TimePart {
  key: string;
  name: string;
  /** Of the palette. */
  colour: number;
  waits: boolean;
}

const kCollectives = ["all_to_all", "send_recv", "all_gather", "reduce_scatter", "all_reduce"];

export const kTimeParts: readonly TimePart[] = [
  { key: "attention", name: "attention", colour: 0, waits: false },
  { key: "gemm", name: "matrix products", colour: 4, waits: false },
  { key: "memory_bound", name: "memory-bound kernels", colour: 2, waits: false },
  { key: "host_issue", name: "host issue", colour: 7, waits: false },
  { key: "optimizer", name: "optimizer", colour: 3, waits: false },
  { key: "all_to_all", name: "exposed all-to-all", colour: 5, waits: true },
  { key: "send_recv", name: "exposed ring sends", colour: 1, waits: true },
  { key: "all_gather", name: "exposed all-gather", colour: 6, waits: true },
  { key: "reduce_scatter", name: "exposed reduce-scatter", colour: 2, waits: true },
  { key: "all_reduce", name: "exposed all-reduce", colour: 4, waits: true },
  { key: "exposed_communication", name: "exposed communication", colour: 5, waits: true },
  { key: "exposed_offload", name: "exposed offload", colour: 3, waits: true },
  { key: "bubble", name: "pipeline bubble", colour: 7, waits: true },
  { key: "other", name: "other", colour: 7, waits: false },
];

export function part_colour(part: TimePart): string {
  return palette().series[part.colour] ?? palette().muted;
}

/** Seconds by the keys of `kTimeParts`. The split of exposed communication follows what each collective left exposed
 * and sums to the step's, which counts the rank that finishes last. */
export function time_parts(plan: Plan): Map<string, number> {
  const out = new Map(Object.entries(plan.breakdown ?? {}));
  const exposed = out.get("exposed_communication") ?? 0;
  const collectives = Object.entries(plan.communication ?? {}).filter(([name]) => kCollectives.includes(name));
  const sum = collectives.reduce((so_far, [, use]) => so_far + use.exposed_seconds, 0);
  if (sum > 0) {
    out.delete("exposed_communication");
    for (const [name, use] of collectives) {
      out.set(name, (exposed * use.exposed_seconds) / sum);
    }
  }
  return out;
}

/** "exposed all-to-all" of "all_to_all". */
export function part_name(key: string): string {
  return kTimeParts.find((part) => part.key === key)?.name ?? words(key);
}
