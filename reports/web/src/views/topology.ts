// The machine as a picture: who is joined to whom, and how busy each link is.
import { is_narrow, legend, legend_height, type Option } from "../chart";
import { figure as number, percent, words } from "../format";
import { figure, view, type View } from "../figure";
import { palette, series_colour } from "../palette";
import type { LinkLoad, Plan, StudyResult, Topology, TopologyLink, Vertex } from "../result";
import { tip, tooltip } from "../tooltip";
import { PlanChoice } from "./plan_choice";

/** From the fabric down to the host; a kind that is not listed stands below. */
const kTiers = ["spine", "fabric", "nic", "pcie", "gpu", "nvswitch", "host", "nvme"];
const kSymbols: Record<string, string> = { gpu: "roundRect", nic: "diamond", host: "rect", nvme: "pin", pcie: "triangle" };

/** The kind for the eye: switches inside a node join its GPUs, those outside join nodes. */
function tier_name({ kind, name, node }: Vertex): string {
  if (kind !== "switch") {
    return kind;
  }
  return typeof node === "number" ? (name.includes("pcie") ? "pcie" : "nvswitch") : name.includes("spine") ? "spine" : "fabric";
}

function tier(name: string): number {
  const at = kTiers.indexOf(name);
  return at < 0 ? kTiers.length : at;
}

/** Both directions between two vertices: one line. */
interface Pair {
  a: number;
  b: number;
  links: TopologyLink[];
}

function pairs_of(topology: Topology): Pair[] {
  const pairs = new Map<string, Pair>();
  for (const link of topology.links) {
    const [a, b] = link.from < link.to ? [link.from, link.to] : [link.to, link.from];
    const key = `${a} ${b}`;
    const pair = pairs.get(key) ?? { a, b, links: [] };
    pair.links.push(link);
    pairs.set(key, pair);
  }
  return [...pairs.values()];
}

interface Placed {
  vertex: Vertex;
  tier: string;
  /** Between 0 and 1. */
  x: number;
  row: number;
}

/** Rows are kinds; nodes stand side by side, what belongs to none spreads over all. */
function placed(topology: Topology): { rows: string[]; vertices: Placed[] } {
  const rows = [...new Set(topology.vertices.map(tier_name))].sort((a, b) => tier(a) - tier(b));
  const nodes = [...new Set(topology.vertices.map((vertex) => vertex.node).filter((node) => typeof node === "number"))];
  const vertices = rows.flatMap((name, row) => {
    const all = topology.vertices.filter((vertex) => tier_name(vertex) === name);
    return all.map((vertex) => {
      const within = all.filter((other) => other.node === vertex.node);
      const place = (within.indexOf(vertex) + 0.5) / within.length;
      const node = nodes.indexOf(vertex.node ?? -1);
      // A little air between the nodes.
      const x = node < 0 ? place : (node + 0.04 + 0.92 * place) / nodes.length;
      return { vertex, tier: name, x, row };
    });
  });
  return { rows, vertices };
}

function load_of(plan: Plan, link: TopologyLink): LinkLoad | undefined {
  return plan.links?.find((load) => load.name === link.class);
}

function busiest(plan: Plan, links: readonly TopologyLink[]): number {
  return Math.max(0, ...links.map((link) => load_of(plan, link)?.utilization ?? 0));
}

const kRow = 84;

function option_of(topology: Topology, plan: Plan, width: number): Option {
  const colours = palette();
  const narrow = is_narrow(width);
  const { rows, vertices } = placed(topology);
  const by_id = new Map(topology.vertices.map((vertex) => [vertex.id, vertex]));
  const most = Math.max(busiest(plan, topology.links), 1e-12);
  const widest = Math.max(...rows.map((_, row) => vertices.filter((vertex) => vertex.row === row).length));
  const size = Math.max(7, Math.min(30, (width / widest) * 0.55));
  return {
    legend: legend({ data: rows.map(words) }),
    tooltip: tooltip("item", (params: { dataType: string; data: { pair?: Pair; vertex?: Vertex } }) => {
      const { pair, vertex } = params.data;
      if (vertex !== undefined) {
        return tip(vertex.name, [{ label: "kind", value: words(vertex.kind) }]);
      }
      return pair === undefined
        ? null
        : tip(
            `${by_id.get(pair.a)?.name ?? ""} – ${by_id.get(pair.b)?.name ?? ""}`,
            pair.links.map((link) => ({
              label: `${by_id.get(link.from)?.name ?? ""} → ${by_id.get(link.to)?.name ?? ""}, ${number(link.capacity_gb_s)} GB/s`,
              value: `${percent(load_of(plan, link)?.utilization ?? 0)} busy`,
            })),
            `${words(pair.links[0]?.kind ?? "")}: like ${pair.links[0]?.class ?? ""}`,
          );
    }),
    series: [
      {
        type: "graph",
        layout: "none",
        left: 24,
        right: 24,
        top: legend_height(rows, width) + 24,
        bottom: 28,
        categories: rows.map((name, row) => ({ name: words(name), symbol: kSymbols[name] ?? "circle", itemStyle: { color: series_colour(row) } })),
        data: vertices.map(({ vertex, tier: name, x, row }) => ({
          id: String(vertex.id),
          name: vertex.name,
          vertex,
          category: row,
          x: x * (width - 48),
          y: row * kRow,
          symbol: kSymbols[name] ?? "circle",
          symbolSize: size,
          label: {
            show: !narrow && size > 16,
            position: "bottom",
            distance: 3,
            fontSize: 10,
            color: colours.muted,
            backgroundColor: colours.ground,
            padding: [1, 2],
            formatter: vertex.name.replace(/^node\d+\./, ""),
          },
        })),
        links: pairs_of(topology).map((pair) => {
          const share = busiest(plan, pair.links) / most;
          return {
            source: String(pair.a),
            target: String(pair.b),
            pair,
            lineStyle: { width: 1 + 5 * share, color: share > 0.66 ? colours.bad : share > 0.33 ? colours.warning : colours.muted, opacity: 0.35 + 0.6 * share },
          };
        }),
        emphasis: { disabled: true },
        roam: false,
      },
    ],
  };
}

export function topology(study: StudyResult): View | null {
  const machine = study.topology;
  const plans = study.plans.filter((plan) => plan.links);
  if (machine === undefined || machine.vertices.length === 0 || plans.length === 0) {
    return null;
  }
  const chosen = new PlanChoice(study, plans);
  const rows = placed(machine).rows.length;
  const names = new Map(machine.vertices.map((vertex) => [vertex.id, vertex.name]));
  const drawn = figure({
    label: `Picture of the machine: ${machine.vertices.length} parts and their links; the load of each link is in the table below`,
    height: () => rows * kRow + 70,
    option: (width) => option_of(machine, chosen.plan, width),
    controls: [
      chosen.control(() => {
        drawn.chart.redraw();
      }),
    ],
    table: () => ({
      caption: `Links and their load by ${chosen.plan.name}`,
      file: "topology",
      columns: [
        { title: "from", key: "from", value: (link: TopologyLink) => names.get(link.from) },
        { title: "to", key: "to", value: (link) => names.get(link.to) },
        { title: "kind", key: "kind", value: (link) => link.kind, text: (link) => words(link.kind) },
        { title: "capacity, GB/s", key: "capacity_gb_s", value: (link) => link.capacity_gb_s },
        {
          title: "busy",
          key: "utilization",
          value: (link) => load_of(chosen.plan, link)?.utilization ?? 0,
          text: (link) => percent(load_of(chosen.plan, link)?.utilization ?? 0),
        },
      ],
      rows: machine.links,
    }),
  });
  const left_out = machine.omitted_nodes ? ` ${machine.omitted_nodes} more nodes are like these.` : "";
  return view(
    "topology",
    "The machine and its load",
    `The thicker and redder a line, the busier: the thickest is the busiest link of this plan.${left_out}`,
    drawn.element,
  );
}
