// A fit: how far it is from each sample, group by group, and what it says.
import { band_series } from "../band";
import { axis, is_narrow, type Option } from "../chart";
import { choice, h } from "../dom";
import { count, figure as number, percent, seconds, short_count } from "../format";
import { figure, view, type View } from "../figure";
import type { FitResult } from "../result";
import { grouped, legend_room, scatter_legend, scatter_series } from "../scatter";
import { table } from "../table";
import { tip, tooltip } from "../tooltip";

type Residual = FitResult["residuals"][number];

function relative({ measured, fitted }: Residual): number | null {
  return measured === 0 ? null : fitted / measured - 1;
}

function with_unit(value: number, unit: string): string {
  return unit === "s" ? seconds(value) : `${number(value)} ${unit}`;
}

function option_of(points: readonly Residual[], width: number): Option {
  const positive = points.filter((point) => point.measured > 0 && point.fitted > 0);
  const values = positive.flatMap((point) => [point.measured, point.fitted]);
  const low = Math.min(...values) / 1.6;
  const high = Math.max(...values) * 1.6;
  const groups = grouped(positive, (point) => point.group);
  const units = [...new Set(positive.map((point) => point.unit))];
  const unit = units.length === 1 ? `, ${units[0] ?? ""}` : "";
  const formatter = units[0] === "s" && units.length === 1 ? seconds : short_count;
  const log = (name: string, gap: number): Record<string, unknown> =>
    axis("log", { name, min: low, max: high, nameGap: gap, axisLabel: { formatter, showMinLabel: false, showMaxLabel: false } });
  return {
    legend: scatter_legend(groups),
    grid: { left: 40, right: 16, top: legend_room(groups.length, width), bottom: 46, containLabel: true },
    xAxis: log(`measured${unit}`, 28),
    yAxis: log(`fitted${unit}`, is_narrow(width) ? 44 : 56),
    tooltip: tooltip("item", ({ data }: { data: { point?: Residual } }) =>
      data.point === undefined
        ? null
        : tip(data.point.label, [
            { label: "measured", value: with_unit(data.point.measured, data.point.unit) },
            { label: "fitted", value: with_unit(data.point.fitted, data.point.unit) },
            { label: "off by", value: percent(relative(data.point)) },
            { label: "group", value: data.point.group },
          ]),
    ),
    series: [band_series(low, high), ...scatter_series(groups, (point) => [point.measured, point.fitted])],
  };
}

export function residuals(result: FitResult): View {
  const names = result.groups.map((group) => group.name);
  let shown = result.residuals;
  const drawn = figure({
    label: `Scatter of ${result.residuals.length} samples, fitted against measured, both axes logarithmic`,
    height: (width) => Math.min(560, Math.max(360, width * 0.6)),
    option: (width) => option_of(shown, width),
    controls: [
      choice("Group", ["all", ...names], 0, (index) => {
        shown = index === 0 ? result.residuals : result.residuals.filter((point) => point.group === names[index - 1]);
        drawn.chart.redraw();
      }),
    ],
    table: () => ({
      caption: "Residuals",
      file: "residuals",
      columns: [
        { title: "group", key: "group", value: (row: Residual) => row.group },
        { title: "sample", key: "label", value: (row) => row.label },
        { title: "measured", key: "measured", value: (row) => row.measured, text: (row) => with_unit(row.measured, row.unit) },
        { title: "fitted", key: "fitted", value: (row) => row.fitted, text: (row) => with_unit(row.fitted, row.unit) },
        { title: "off by", key: "relative_error", value: relative, text: (row) => percent(relative(row)) },
        { title: "unit", key: "unit", value: (row) => row.unit },
      ],
      rows: shown,
    }),
  });
  const points = result.groups.reduce((sum, group) => sum + group.points, 0);
  return view(
    "residuals",
    "Fitted against measured",
    `${count(result.parameters.length)} parameters from ${count(points)} samples. The band is ±15%.`,
    drawn.element,
    h("h3", {}, "Errors by group"),
    table({
      caption: "Errors by group",
      file: "fit_groups",
      columns: [
        { title: "group", key: "group", value: (row) => row.name },
        { title: "samples", key: "points", value: (row) => row.points },
        { title: "median error", key: "median_error", value: (row) => row.median_error, text: (row) => percent(row.median_error) },
        { title: "90% are below", key: "p90_error", value: (row) => row.p90_error, text: (row) => percent(row.p90_error) },
        { title: "worst", key: "worst_error", value: (row) => row.worst_error, text: (row) => percent(row.worst_error) },
        { title: "median on unseen samples", key: "cross_validated_median", value: (row) => row.cross_validated_median, text: (row) => percent(row.cross_validated_median) },
      ],
      rows: result.groups,
    }),
    h("h3", {}, "Parameters"),
    table({
      caption: "Fitted parameters",
      file: "fit_parameters",
      columns: [
        { title: "parameter", key: "parameter", value: (row) => row.name },
        { title: "value", key: "value", value: (row) => row.value, text: (row) => (typeof row.value === "number" ? number(row.value) : row.value) },
        { title: "unit", key: "unit", value: (row) => row.unit },
        { title: "kind", key: "kind", value: (row) => row.kind },
        { title: "source", key: "source", value: (row) => row.source, wide: true },
      ],
      rows: result.parameters,
    }),
  );
}
