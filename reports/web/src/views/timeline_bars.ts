// The bars of a layer's timeline: the spans of its streams, and when its compute stream waits.
import { words } from "../format";
import type { TimelinePhase } from "../result";

export interface Bar {
  stream: string;
  row: number;
  name: string;
  purpose: string;
  begin: number;
  end: number;
}

const kCompute = "compute";
/** A row of our own: when nothing runs on the compute stream. */
export const kWaits = "compute waits";
/** The times of [begin, end] that no span covers; spans may overlap and come in any order. */
function gaps(spans: readonly Bar[], begin: number, end: number): [number, number][] {
  const out: [number, number][] = [];
  let covered = begin;
  for (const span of [...spans].sort((a, b) => a.begin - b.begin)) {
    if (span.begin > covered) {
      out.push([covered, span.begin]);
    }
    covered = Math.max(covered, span.end);
  }
  if (covered < end) {
    out.push([covered, end]);
  }
  return out;
}

/** Times count from the phase's begin. */
export function bars_of(phase: TimelinePhase): { rows: string[]; bars: Bar[] } {
  const streams = phase.streams.filter((stream) => stream.spans.length > 0);
  const rows = streams.map((stream) => words(stream.name));
  const bars = streams.flatMap((stream, row) =>
    stream.spans.map((span) => ({
      stream: words(stream.name),
      row,
      name: span.name,
      purpose: span.purpose,
      begin: span.begin_s - phase.begin_s,
      end: span.end_s - phase.begin_s,
    })),
  );
  const compute = bars.filter((bar) => bar.stream === kCompute);
  if (compute.length > 0) {
    const row = rows.indexOf(kCompute) + 1;
    rows.splice(row, 0, kWaits);
    for (const bar of bars) {
      bar.row += bar.row >= row ? 1 : 0;
    }
    for (const [begin, end] of gaps(compute, 0, phase.end_s - phase.begin_s)) {
      bars.push({ stream: kWaits, row, name: "nothing to compute", purpose: kWaits, begin, end });
    }
  }
  return { rows, bars };
}
