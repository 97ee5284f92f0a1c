// The machine as a picture: who is joined to whom, and how busy each link is.
import { is_narrow, legend, legend_height, type Option } from "../chart";
import { figure as number, percent, words } from "../format";
import { figure, view, type View } from "../figure";
import { palette, series_colour } from "../palette";
import type { LinkLoad, Plan, StudyResult, Topology, TopologyLink, Vertex } from "../result";
import { tip, tooltip } from "../tooltip";
import { PlanChoice } from "./plan_choice";

/** Rows from the top: what joins the GPUs of a node, the GPUs, their way out, the host, what joins nodes. */
const kRows: readonly (readonly string[])[] = [
  ["nvlink_switch"],
  ["gpu"],
  ["pcie_switch", "nic"],
  ["host", "memory", "drives"],
  ["network_switch"],
];
const kSymbols: Record<string, string> = {
  gpu: "roundRect",
  pcie_switch: "diamond",
  nic: "diamond",
  host: "rect",
  memory: "rect",
  drives: "rect",
  network_switch: "triangle",
};

/** Switches that only join switches stand below those that nodes hang on. */
function row_of(vertex: Vertex, joins_nodes: boolean): number {
  const row = kRows.findIndex((kinds) => kinds.includes(vertex.kind));
  return row < 0 || (vertex.kind === "network_switch" && !joins_nodes) ? kRows.length : row;
}

/** Both directions between two vertices: one line. */
interface Pair {
  a: number;
  b: number;
  /** Places among the topology's links. */
  links: number[];
}

function pairs_of(topology: Topology): Pair[] {
  const pairs = new Map<string, Pair>();
  topology.links.forEach((link, index) => {
    const [a, b] = link.from < link.to ? [link.from, link.to] : [link.to, link.from];
    const key = `${a} ${b}`;
    const pair = pairs.get(key) ?? { a, b, links: [] };
    pair.links.push(index);
    pairs.set(key, pair);
  });
  return [...pairs.values()];
}

interface Placed {
  vertex: Vertex;
  /** Between 0 and 1. */
  x: number;
  row: number;
}

/** Nodes stand side by side; what belongs to none spreads over all. Rows without a vertex are left out. */
function placed({ vertices, links }: Topology): { rows: number; vertices: Placed[] } {
  const in_node = new Set(vertices.filter((vertex) => typeof vertex.node === "number").map((vertex) => vertex.id));
  const joins_nodes = new Set(
    links.flatMap((link) => (in_node.has(link.from) ? [link.to] : in_node.has(link.to) ? [link.from] : [])),
  );
  const nodes = [...new Set(vertices.map((vertex) => vertex.node).filter((node) => typeof node === "number"))];
  const row = new Map(vertices.map((vertex) => [vertex, row_of(vertex, joins_nodes.has(vertex.id))]));
  const used = [...new Set(row.values())].sort((a, b) => a - b);
  const all = vertices.map((vertex) => {
    const beside = vertices.filter((other) => other.node === vertex.node && row.get(other) === row.get(vertex));
    const place = (beside.indexOf(vertex) + 0.5) / beside.length;
    const node = nodes.indexOf(vertex.node ?? -1);
    // A little air between the nodes.
    const x = node < 0 ? place : (node + 0.04 + 0.92 * place) / nodes.length;
    return { vertex, x, row: used.indexOf(row.get(vertex) ?? 0) };
  });
  return { rows: used.length, vertices: all };
}

/** The load of the topology's `index`-th link under a plan. */
function load_of(plan: Plan, topology: Topology, index: number): LinkLoad | undefined {
  const own = plan.topology_links;
  return own ? plan.links?.[own[index] ?? -1] : plan.links?.find((load) => load.name === topology.links[index]?.class);
}

const kRow = 84;

/** A line between two vertices, wide and red as its busier direction is busy against `most`. */
function line_of(pair: Pair, busy: (link: number) => number, most: number): object {
  const colours = palette();
  const share = Math.max(...pair.links.map(busy)) / most;
  return {
    source: String(pair.a),
    target: String(pair.b),
    pair,
    lineStyle: {
      width: 1 + 5 * share,
      color: share > 0.66 ? colours.bad : share > 0.33 ? colours.warning : colours.muted,
      opacity: 0.35 + 0.6 * share,
    },
  };
}

function pair_tip(topology: Topology, plan: Plan, pair: Pair): HTMLElement {
  const names = names_of(topology);
  const lines = pair.links.flatMap((index) => {
    const link = topology.links[index];
    const load = load_of(plan, topology, index);
    return link === undefined
      ? []
      : [
          {
            label: `${names.get(link.from) ?? ""} → ${names.get(link.to) ?? ""}, ${number(link.capacity_gb_s)} GB/s`,
            value: `${percent(load?.utilization ?? 0)} busy`,
          },
        ];
  });
  const alike = load_of(plan, topology, pair.links[0] ?? 0);
  return tip(
    words(topology.links[pair.links[0] ?? 0]?.kind ?? ""),
    lines,
    alike === undefined ? "not used" : `like ${alike.name}`,
  );
}

function names_of(topology: Topology): Map<number, string> {
  return new Map(
    topology.vertices.map(({ id, name, node }) => [id, typeof node === "number" ? `node ${node} ${name}` : name]),
  );
}

function option_of(topology: Topology, plan: Plan, width: number): Option {
  const colours = palette();
  const { vertices } = placed(topology);
  const kinds = [...new Set(vertices.map(({ vertex }) => vertex.kind))];
  const busy = (index: number): number => load_of(plan, topology, index)?.utilization ?? 0;
  const most = Math.max(...topology.links.map((_, index) => busy(index)), 1e-12);
  const widest = Math.max(...vertices.map((one) => vertices.filter((other) => other.row === one.row).length));
  const size = Math.max(7, Math.min(26, (width / widest) * 0.5));
  const labels = !is_narrow(width) && width / widest > 44;
  return {
    legend: legend({ data: kinds.map(words) }),
    tooltip: tooltip("item", ({ data: { pair, vertex } }: { data: { pair?: Pair; vertex?: Vertex } }) =>
      vertex !== undefined
        ? tip(names_of(topology).get(vertex.id) ?? "", [{ label: "kind", value: words(vertex.kind) }])
        : pair !== undefined
          ? pair_tip(topology, plan, pair)
          : null,
    ),
    series: [
      {
        type: "graph",
        layout: "none",
        left: 24,
        right: 24,
        top: legend_height(kinds, width) + 16,
        bottom: 28,
        categories: kinds.map((kind, index) => ({
          name: words(kind),
          symbol: kSymbols[kind] ?? "circle",
          itemStyle: { color: series_colour(index) },
        })),
        data: vertices.map(({ vertex, x, row }) => ({
          id: String(vertex.id),
          name: vertex.name,
          vertex,
          category: kinds.indexOf(vertex.kind),
          x: x * (width - 48),
          y: row * kRow,
          symbol: kSymbols[vertex.kind] ?? "circle",
          symbolSize: size,
          label: {
            show: labels,
            position: "bottom",
            distance: 3,
            fontSize: 10,
            color: colours.muted,
            backgroundColor: colours.ground,
            padding: [1, 2],
            formatter: vertex.name,
          },
        })),
        links: pairs_of(topology).map((pair) => line_of(pair, busy, most)),
        emphasis: { disabled: true },
        roam: false,
      },
    ],
  };
}

interface LinkRow {
  link: TopologyLink;
  busy: number;
}

export function topology(study: StudyResult): View | null {
  const machine = study.topology;
  const plans = study.plans.filter((plan) => plan.links);
  if (machine === undefined || machine.vertices.length === 0 || plans.length === 0) {
    return null;
  }
  const chosen = new PlanChoice(study, plans);
  const { rows } = placed(machine);
  const names = names_of(machine);
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
        { title: "from", key: "from", value: ({ link }: LinkRow) => names.get(link.from) },
        { title: "to", key: "to", value: ({ link }) => names.get(link.to) },
        { title: "kind", key: "kind", value: ({ link }) => link.kind, text: ({ link }) => words(link.kind) },
        { title: "capacity, GB/s", key: "capacity_gb_s", value: ({ link }) => link.capacity_gb_s },
        { title: "busy", key: "utilization", value: ({ busy }) => busy, text: ({ busy }) => percent(busy) },
      ],
      rows: machine.links.map((link, index) => ({
        link,
        busy: load_of(chosen.plan, machine, index)?.utilization ?? 0,
      })),
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
