// ECharts, only what the views use, and the life of a chart: drawn when it is in the page, anew when its width, the
// theme or its data change.
import { BarChart, CustomChart, GraphChart, LineChart, ScatterChart } from "echarts/charts";
import { DataZoomComponent, GridComponent, LegendPlainComponent, TooltipComponent } from "echarts/components";
import { init, use, type EChartsCoreOption, type EChartsType } from "echarts/core";
import { SVGRenderer } from "echarts/renderers";

import { h } from "./dom";
import { palette } from "./palette";
import { on_theme_change } from "./theme";

use([
  BarChart,
  CustomChart,
  GraphChart,
  LineChart,
  ScatterChart,
  DataZoomComponent,
  GridComponent,
  LegendPlainComponent,
  TooltipComponent,
  SVGRenderer,
]);

export type Option = EChartsCoreOption;

export interface ChartSpec {
  /** What the chart shows, in a sentence, for who cannot see it. */
  label: string;
  /** Pixels; of the width that there is. */
  height: (width: number) => number;
  /** `hidden`: names of the legend that the reader leaves out. */
  option: (width: number, hidden: ReadonlySet<string>) => Option;
}

export interface Chart {
  element: HTMLElement;
  /** After a change of what `option` reads. */
  redraw: () => void;
  /** Leaves these names of the legend out, and no others. */
  hide: (names: readonly string[]) => void;
  /** Of a chart with `zoom`: shows `width` times as much as now, moved by `shift` of that. */
  zoom: (width: number, shift: number) => void;
}

const kNarrow = 560;

export function is_narrow(width: number): boolean {
  return width < kNarrow;
}

/** What every chart shares. No animation: nothing on the page moves by itself. */
function common(): Option {
  const colours = palette();
  return {
    animation: false,
    textStyle: {
      fontFamily: "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif",
      color: colours.text,
    },
    backgroundColor: "transparent",
  };
}

function draw(instance: EChartsType, element: HTMLElement, spec: ChartSpec, hidden: ReadonlySet<string>): void {
  const width = element.clientWidth;
  if (width === 0) {
    return;
  }
  const height = spec.height(width);
  element.style.height = `${height}px`;
  instance.resize({ width, height });
  const option = spec.option(width, hidden);
  const selected = Object.fromEntries([...hidden].map((name) => [name, false]));
  instance.setOption(
    { ...common(), ...option, legend: { ...(option.legend as object | undefined), selected } },
    { notMerge: true },
  );
}

export function chart(spec: ChartSpec): Chart {
  const element = h("div", { class: "chart", role: "img", "aria-label": spec.label });
  let instance: EChartsType | null = null;
  let drawn_width = 0;
  let hidden: ReadonlySet<string> = new Set();
  const start = (): EChartsType => {
    const made = init(element, null, { renderer: "svg", width: Math.max(element.clientWidth, 1), height: 1 });
    made.on("legendselectchanged", (event) => {
      const { selected } = event as { selected: Record<string, boolean> };
      hide(Object.keys(selected).filter((name) => selected[name] === false));
    });
    return made;
  };
  const redraw = (): void => {
    instance ??= start();
    drawn_width = element.clientWidth;
    draw(instance, element, spec, hidden);
  };
  const hide = (names: readonly string[]): void => {
    hidden = new Set(names);
    redraw();
  };
  new ResizeObserver(() => {
    if (element.clientWidth !== drawn_width && element.isConnected) {
      redraw();
    }
  }).observe(element);
  on_theme_change(element, redraw);
  const zoom_by = (factor: number, shift: number): void => {
    const now = (instance?.getOption().dataZoom as { start: number; end: number }[] | undefined)?.[0];
    if (now !== undefined) {
      const width = Math.min(100, (now.end - now.start) * factor);
      const middle = (now.start + now.end) / 2 + shift * width;
      const start = Math.max(0, Math.min(100 - width, middle - width / 2));
      // At once: a second press reads what the first has left.
      instance?.dispatchAction({ type: "dataZoom", start, end: start + width }, { flush: true });
    }
  };
  return { element, redraw, hide, zoom: zoom_by };
}

/** Axis lines, labels and names in the page's colours; merge what differs into it. */
export function axis(type: "value" | "category" | "log", more: Record<string, unknown> = {}): Record<string, unknown> {
  const colours = palette();
  const { axisLabel, ...rest } = more;
  return {
    type,
    axisLabel: { color: colours.muted, hideOverlap: true, ...(axisLabel as object | undefined) },
    axisLine: { show: type === "category", lineStyle: { color: colours.line } },
    axisTick: { show: false },
    splitLine: { show: type !== "category", lineStyle: { color: colours.line, opacity: 0.6 } },
    nameTextStyle: { color: colours.muted },
    nameGap: 28,
    nameLocation: "middle",
    ...rest,
  };
}

/** The plot between the legend above and `bottom`, with room for all labels and names of axes. */
export function grid(top: number, bottom = 8): Record<string, unknown> {
  return { left: 4, right: 16, top, bottom, outerBoundsMode: "same", outerBoundsContain: "all" };
}

/** Zoom along x: by its handles, or by the wheel while Ctrl is held (the wheel alone scrolls the page). */
export function zoom(filterMode: "none" | "weakFilter"): object[] {
  const colours = palette();
  return [
    { type: "inside", filterMode, zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false },
    {
      type: "slider",
      filterMode,
      height: 18,
      bottom: 6,
      showDataShadow: false,
      showDetail: false,
      borderColor: colours.line,
      backgroundColor: "transparent",
      fillerColor: colours.empty,
      moveHandleSize: 0,
      handleSize: "120%",
      handleStyle: { color: colours.ground, borderColor: colours.muted },
      brushSelect: false,
    },
  ];
}

const kLegendRow = 28;

/** Room that a legend of these names takes at the top, with the gap below it. ECharts wraps entries but leaves the room
 * for them to the caller; letters count as an average one of its 12px font. */
export function legend_height(names: readonly string[], width: number): number {
  let rows = 1;
  let used = 0;
  for (const name of names) {
    const entry = 34 + 6.9 * name.length;
    if (used > 0 && used + entry > width) {
      ++rows;
      used = 0;
    }
    used += entry;
  }
  return rows * kLegendRow + 4;
}

export function legend(more: Record<string, unknown> = {}): Record<string, unknown> {
  const colours = palette();
  return {
    type: "plain",
    top: 0,
    left: 0,
    itemWidth: 14,
    itemHeight: 14,
    itemGap: 14,
    textStyle: { color: colours.text },
    inactiveColor: colours.muted,
    ...more,
  };
}
