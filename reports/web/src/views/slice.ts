// What a map of a sweep shows: two axes, and one value of each other.
import { short_value } from "../format";
import type { SweepPoint, SweepResult } from "../result";
import { axis_name } from "./sweep_table";

/** "A", "B", …: a plan's letter stands beside its colour. */
export function letter(plan: number): string {
  return String.fromCharCode(65 + (plan % 26));
}

export class Slice {
  x: number;
  /** -1: the sweep has one axis only. */
  y: number;
  readonly held: number[];

  constructor(readonly sweep: SweepResult) {
    // The two longest axes tell most.
    const by_length = sweep.axes.map((_, at) => at).sort((a, b) => this.length(b) - this.length(a));
    this.x = by_length[0] ?? 0;
    this.y = by_length[1] ?? -1;
    // The first cut through the map lies in its middle.
    this.held = sweep.axes.map((_, at) => (at === this.y ? Math.floor(this.length(at) / 2) : 0));
  }

  length(axis: number): number {
    return this.sweep.axes[axis]?.values.length ?? 1;
  }

  labels(axis: number): string[] {
    return this.sweep.axes[axis]?.values.map(short_value) ?? [""];
  }

  key(axis: number): string {
    return axis_name(this.sweep.axes[axis]?.key ?? "");
  }

  points(): SweepPoint[] {
    return this.sweep.points.filter((point) =>
      point.at.every((value, axis) => axis === this.x || axis === this.y || value === this.held[axis]),
    );
  }
}
