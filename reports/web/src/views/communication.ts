// How much is sent, by which collective or for what, and over which kind of link.
import { bars_height, bars_option, type Bars } from "../bars";
import { choice } from "../dom";
import { bytes, count, percent, seconds, short_bytes, words } from "../format";
import { figure, view, type Figure, type View } from "../figure";
import { series_colour } from "../palette";
import type { Communication, LinkLoad, Plan, StudyResult } from "../result";
import { table } from "../table";

type Uses = (plan: Plan) => Record<string, Communication>;

const kSplits: readonly { name: string; file: string; of: Uses }[] = [
  { name: "collective", file: "communication", of: (plan) => plan.communication ?? {} },
  { name: "purpose", file: "communication_by_purpose", of: (plan) => plan.communication_by_purpose ?? {} },
];

/** Stacked bars of bytes by the keys of `split`. */
function bars_of(plans: readonly Plan[], axis_name: string, split: (plan: Plan) => Map<string, number>): Bars {
  const volumes = plans.map(split);
  const keys = [...new Set(volumes.flatMap((volume) => [...volume.keys()]))];
  const sum = (volume: Map<string, number>): number => [...volume.values()].reduce((so_far, size) => so_far + size, 0);
  return {
    names: plans.map((plan) => plan.name),
    parts: keys.map((key, index) => ({
      name: words(key),
      colour: series_colour(index),
      values: volumes.map((volume) => volume.get(key) ?? 0),
    })),
    totals: volumes.map((volume) => bytes(sum(volume))),
    axis_name,
    text: bytes,
    short: short_bytes,
  };
}

function sent(plans: readonly Plan[]): Figure {
  let split = 0;
  const uses = (): Uses => kSplits[split]?.of ?? (() => ({}));
  const bars = (): Bars =>
    bars_of(plans, "bytes that a GPU sends in a step", (plan) => {
      return new Map(Object.entries(uses()(plan)).map(([name, use]) => [name, use.bytes_per_gpu]));
    });
  const drawn = figure({
    title: "What a GPU sends",
    label: `Stacked bars: bytes that a GPU sends in a step, for ${plans.map((plan) => plan.name).join(", ")}`,
    height: (width) => bars_height(bars(), width),
    option: (width, hidden) => bars_option(bars(), width, hidden),
    controls: [
      choice(
        "By",
        kSplits.map(({ name }) => name),
        0,
        (index) => {
          split = index;
          drawn.chart.redraw();
        },
      ),
    ],
    table: () => ({
      caption: `Communication by ${kSplits[split]?.name ?? ""}`,
      file: kSplits[split]?.file ?? "communication",
      columns: [
        { title: "plan", key: "plan", value: (row) => row.plan },
        {
          title: kSplits[split]?.name ?? "",
          key: kSplits[split]?.name ?? "",
          value: (row) => row.name,
          text: (row) => words(row.name),
        },
        {
          title: "sent by a GPU",
          key: "bytes_per_gpu",
          value: (row) => row.bytes_per_gpu,
          text: (row) => bytes(row.bytes_per_gpu),
        },
        { title: "busy", key: "seconds", value: (row) => row.seconds, text: (row) => seconds(row.seconds) },
        {
          title: "exposed",
          key: "exposed_seconds",
          value: (row) => row.exposed_seconds,
          text: (row) => seconds(row.exposed_seconds),
        },
      ],
      rows: plans.flatMap((plan) =>
        Object.entries(uses()(plan)).map(([name, use]) => ({ plan: plan.name, name, ...use })),
      ),
    }),
  });
  return drawn;
}

/** Bytes over all links of a kind. */
function by_kind(plan: Plan): Map<string, number> {
  const out = new Map<string, number>();
  for (const link of plan.links ?? []) {
    out.set(link.kind, (out.get(link.kind) ?? 0) + link.carried_bytes * link.links);
  }
  return out;
}

interface ClassRow extends LinkLoad {
  plan: string;
}

function carried(plans: readonly Plan[]): Figure {
  const bars = (): Bars => bars_of(plans, "bytes over all links of a kind in a step", by_kind);
  return figure({
    title: "What the links carry",
    label: `Stacked bars: bytes carried by each kind of link in a step, for ${plans.map((plan) => plan.name).join(", ")}`,
    height: (width) => bars_height(bars(), width),
    option: (width, hidden) => bars_option(bars(), width, hidden),
    table: () => ({
      caption: "Load of the classes of links",
      file: "links",
      columns: [
        { title: "plan", key: "plan", value: (row: ClassRow) => row.plan },
        { title: "one of the links", key: "link", value: (row) => row.name },
        { title: "kind", key: "kind", value: (row) => row.kind, text: (row) => words(row.kind) },
        { title: "links", key: "links", value: (row) => row.links, text: (row) => count(row.links) },
        { title: "capacity, GB/s", key: "capacity_gb_s", value: (row) => row.capacity_gb_s },
        {
          title: "each carries",
          key: "carried_bytes",
          value: (row) => row.carried_bytes,
          text: (row) => bytes(row.carried_bytes),
        },
        { title: "busy", key: "utilization", value: (row) => row.utilization, text: (row) => percent(row.utilization) },
      ],
      rows: plans.flatMap((plan) => (plan.links ?? []).map((link) => ({ plan: plan.name, ...link }))),
    }),
  });
}

interface BusiestRow {
  plan: string;
  kind: string;
  link: LinkLoad;
}

/** Of each kind of link the busiest class. */
function busiest(plans: readonly Plan[]): BusiestRow[] {
  return plans.flatMap((plan) => {
    const most = new Map<string, LinkLoad>();
    for (const link of plan.links ?? []) {
      if (link.utilization > (most.get(link.kind)?.utilization ?? 0)) {
        most.set(link.kind, link);
      }
    }
    return [...most].map(([kind, link]) => ({ plan: plan.name, kind, link }));
  });
}

export function communication(study: StudyResult): View | null {
  const sending = study.plans.filter((plan) => Object.keys(plan.communication ?? {}).length > 0);
  const loading = study.plans.filter((plan) => (plan.links?.length ?? 0) > 0);
  if (sending.length === 0 && loading.length === 0) {
    return null;
  }
  return view(
    "communication",
    "Communication",
    "",
    sending.length > 0 && sent(sending).element,
    loading.length > 0 && carried(loading).element,
    loading.length > 0 &&
      table({
        caption: "The busiest link of each kind",
        file: "busiest_links",
        columns: [
          { title: "plan", key: "plan", value: (row) => row.plan },
          { title: "kind", key: "kind", value: (row) => row.kind, text: (row) => words(row.kind) },
          { title: "busiest link", key: "link", value: (row) => row.link.name },
          { title: "capacity, GB/s", key: "capacity_gb_s", value: (row) => row.link.capacity_gb_s },
          {
            title: "busy over the step",
            key: "utilization",
            value: (row) => row.link.utilization,
            text: (row) => percent(row.link.utilization),
          },
        ],
        rows: busiest(loading),
      }),
  );
}
