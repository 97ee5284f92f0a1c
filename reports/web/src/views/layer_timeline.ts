// One layer, forward and backward, stream by stream: the all-to-alls, the ring's steps, and what hides behind what.
import type { CustomSeriesRenderItemAPI, CustomSeriesRenderItemReturn } from "echarts";
import { graphic } from "echarts/core";

import { axis, is_narrow, legend, legend_height, zoom, type Option } from "../chart";
import { h } from "../dom";
import { seconds, words } from "../format";
import { figure, view, type Figure, type View } from "../figure";
import { hatch, palette, series_colour, text_on } from "../palette";
import type { Plan, StudyResult, TimelinePhase } from "../result";
import { tip, tooltip } from "../tooltip";
import { PlanChoice } from "./plan_choice";
import { bars_of, kWaits, type Bar } from "./timeline_bars";

const kRow = 34;

/** Places in the palette; what is not listed is grey. */
const kColours: Record<string, number> = {
  attention: 0,
  gemm: 4,
  memory_bound: 2,
  optimizer: 3,
  ulysses: 5,
  ring: 1,
  tensor_parallel: 5,
  expert: 1,
  pipeline: 6,
  parameters: 6,
  gradients: 3,
};

function purpose_colour(purpose: string): string {
  return series_colour(kColours[purpose] ?? 7);
}

interface Area {
  x: number;
  y: number;
  width: number;
  height: number;
}

function draw(bar: Bar, colour: string, area: Area, api: CustomSeriesRenderItemAPI): CustomSeriesRenderItemReturn {
  const [x1 = 0, y = 0] = api.coord([bar.begin, bar.row]);
  const [x2 = 0] = api.coord([bar.end, bar.row]);
  const height = kRow - 10;
  // Spans too short for a pixel still show.
  const whole = { x: x1, y: y - height / 2, width: Math.max(x2 - x1, 1), height };
  const shape = graphic.clipRectByRect(whole, area);
  if (shape === undefined) {
    return null;
  }
  const waits = bar.purpose === kWaits;
  const letters = Math.floor((shape.width - 8) / 6.4);
  const colours = palette();
  return {
    type: "rect",
    shape,
    style: {
      fill: colour,
      stroke: colours.ground,
      lineWidth: shape.width > 4 ? 1 : 0,
      ...(waits && { decal: hatch(colours.ground) }),
    },
    textContent:
      letters >= 4 && !waits
        ? {
            type: "text",
            style: {
              text: bar.name.length <= letters ? bar.name : `${bar.name.slice(0, letters - 1)}…`,
              fill: text_on(colour),
              fontSize: 11,
            },
          }
        : undefined,
    textConfig: { position: "inside" },
  };
}

function option_of(phase: TimelinePhase, width: number): Option {
  const colours = palette();
  const { rows, bars } = bars_of(phase);
  const purposes = [...new Set(bars.map((bar) => bar.purpose))];
  const length = phase.end_s - phase.begin_s;
  const narrow = is_narrow(width);
  const colour_of = (purpose: string): string => (purpose === kWaits ? colours.text : purpose_colour(purpose));
  return {
    legend: legend({ data: purposes.map(words) }),
    grid: { left: narrow ? 84 : 132, right: 16, top: legend_height(purposes, width) + 4, bottom: 78 },
    xAxis: axis("value", {
      name: "time since the phase began",
      min: 0,
      max: length,
      axisLabel: { formatter: (value: number) => (value > length * 0.9999 ? "" : seconds(value)) },
      splitNumber: narrow ? 3 : 6,
    }),
    yAxis: axis("category", {
      data: rows,
      inverse: true,
      axisLabel: { color: colours.text, width: narrow ? 76 : 124, overflow: "truncate", hideOverlap: false },
      splitLine: { show: true, lineStyle: { color: colours.line, opacity: 0.4 } },
    }),
    dataZoom: zoom("weakFilter"),
    tooltip: tooltip("item", ({ data }: { data: { bar: Bar } }) =>
      tip(data.bar.name, [
        {
          label: words(data.bar.purpose),
          value: seconds(data.bar.end - data.bar.begin),
          colour: colour_of(data.bar.purpose),
        },
        { label: "from", value: seconds(data.bar.begin) },
        { label: "to", value: seconds(data.bar.end) },
        { label: "stream", value: data.bar.stream },
      ]),
    ),
    series: purposes.map((purpose) => {
      const own = bars.filter((bar) => bar.purpose === purpose);
      const colour = colour_of(purpose);
      return {
        type: "custom",
        name: words(purpose),
        itemStyle: { color: colour, ...(purpose === kWaits && { decal: hatch(colours.ground) }) },
        encode: { x: [0, 1], y: 2 },
        data: own.map((bar) => ({ value: [bar.begin, bar.end, bar.row], bar })),
        renderItem: (params: { dataIndex: number; coordSys: Area }, api: CustomSeriesRenderItemAPI) => {
          const bar = own[params.dataIndex];
          return bar === undefined ? null : draw(bar, colour, params.coordSys, api);
        },
      };
    }),
  };
}

function phase_height(phase: TimelinePhase, width: number): number {
  const { rows, bars } = bars_of(phase);
  return legend_height([...new Set(bars.map((bar) => bar.purpose))], width) + rows.length * kRow + 82;
}

type PhaseName = "forward" | "backward";

function drawn_phase(name: PhaseName, chosen: PlanChoice): Figure {
  const empty: TimelinePhase = { begin_s: 0, end_s: 1, streams: [] };
  const phase = (): TimelinePhase => chosen.plan.layer_timeline?.[name] ?? empty;
  return figure({
    title: name === "forward" ? "Forward" : "Backward (with what is recomputed)",
    label: `Timeline of one layer's ${name} pass, one row a stream; the same spans are in the table below`,
    height: (width) => phase_height(phase(), width),
    option: (width) => option_of(phase(), width),
    zooms: true,
    table: () => ({
      caption: `Spans of the ${name} pass of ${chosen.plan.name}`,
      file: `layer_${name}`,
      columns: [
        { title: "stream", key: "stream", value: (bar: Bar) => bar.stream },
        { title: "name", key: "name", value: (bar) => bar.name },
        { title: "purpose", key: "purpose", value: (bar) => bar.purpose, text: (bar) => words(bar.purpose) },
        { title: "begin", key: "begin_s", value: (bar) => bar.begin, text: (bar) => seconds(bar.begin) },
        { title: "end", key: "end_s", value: (bar) => bar.end, text: (bar) => seconds(bar.end) },
        {
          title: "time",
          key: "seconds",
          value: (bar) => bar.end - bar.begin,
          text: (bar) => seconds(bar.end - bar.begin),
        },
      ],
      rows: bars_of(phase()).bars,
    }),
  });
}

function omitted(plan: Plan): string {
  const spans =
    (plan.layer_timeline?.forward?.omitted_spans ?? 0) + (plan.layer_timeline?.backward?.omitted_spans ?? 0);
  return spans === 0 ? "" : `${spans} short spans are left out.`;
}

export function layer_timeline(study: StudyResult): View | null {
  const plans = study.plans.filter((plan) => plan.layer_timeline);
  if (plans.length === 0) {
    return null;
  }
  const chosen = new PlanChoice(study, plans);
  const phases = (["forward", "backward"] as const).filter((name) => plans.some((plan) => plan.layer_timeline?.[name]));
  const drawn = phases.map((name) => drawn_phase(name, chosen));
  const about = h("span", { class: "note" });
  const tell = (): void => {
    about.textContent = `Layer ${chosen.plan.layer_timeline?.layer ?? ""}. ${omitted(chosen.plan)}`;
  };
  tell();
  const control = chosen.control(() => {
    tell();
    for (const { chart } of drawn) {
      chart.redraw();
    }
  });
  return view(
    "timeline",
    "One layer's timeline",
    "What stands below a compute span hides behind it; where compute waits, it is exposed. Zoom by the buttons, by dragging the handles, or by the wheel with Ctrl held.",
    h("div", { class: "controls" }, control, about),
    ...drawn.map(({ element }) => element),
  );
}
