// A fit: how far it is from each sample, group by group, and what it says.
import { choice, h } from "../dom";
import { count, figure as number, percent, seconds, short_count, words } from "../format";
import { figure, view, type View } from "../figure";
import type { FitResult } from "../result";
import { table } from "../table";
import { tip } from "../tooltip";
import { kVersusNames, versus_option, type Versus } from "../versus";

type Residual = FitResult["residuals"][number];

function error_of({ measured, fitted }: Residual): number | null {
  return measured === 0 ? null : fitted / measured - 1;
}

function with_unit(value: number, unit: string): string {
  return unit === "s" ? seconds(value) : `${number(value)} ${unit}`;
}

function point_tip(point: Residual): HTMLElement {
  return tip(point.label, [
    { label: "measured", value: with_unit(point.measured, point.unit) },
    { label: "fitted", value: with_unit(point.fitted, point.unit) },
    { label: "off by", value: percent(error_of(point)) },
    { label: "group", value: point.group },
  ]);
}

function versus_of(residuals: readonly Residual[], relative: boolean): Versus<Residual> {
  const points = residuals.filter((point) => point.measured > 0 && point.fitted > 0);
  const units = [...new Set(points.map((point) => point.unit))];
  const unit = units.length === 1 ? (units[0] ?? "") : "";
  return {
    points,
    group: (point) => words(point.group),
    measured: (point) => point.measured,
    other: (point) => point.fitted,
    other_name: "fitted",
    // Times bring their own unit on the axis.
    unit: unit === "s" || unit === "" ? "" : `, ${unit}`,
    text: unit === "s" ? seconds : short_count,
    relative,
    tip: point_tip,
  };
}

export function residuals(result: FitResult): View {
  const names = result.groups.map((group) => group.name);
  let shown = result.residuals;
  let relative = true;
  const drawn = figure({
    label: `Scatter of ${result.residuals.length} samples, fitted against measured, on logarithmic axes`,
    height: (width) => Math.min(560, Math.max(360, width * 0.6)),
    option: (width) => versus_option(versus_of(shown, relative), width),
    controls: [
      choice("Group", ["all", ...names.map(words)], 0, (index) => {
        shown = index === 0 ? result.residuals : result.residuals.filter((point) => point.group === names[index - 1]);
        drawn.chart.redraw();
      }),
      choice("Fitted", kVersusNames, 1, (index) => {
        relative = index === 1;
        drawn.chart.redraw();
      }),
    ],
    table: () => ({
      caption: "Residuals",
      file: "residuals",
      columns: [
        { title: "group", key: "group", value: (row: Residual) => row.group },
        { title: "sample", key: "label", value: (row) => row.label },
        {
          title: "measured",
          key: "measured",
          value: (row) => row.measured,
          text: (row) => with_unit(row.measured, row.unit),
        },
        { title: "fitted", key: "fitted", value: (row) => row.fitted, text: (row) => with_unit(row.fitted, row.unit) },
        { title: "off by", key: "relative_error", value: error_of, text: (row) => percent(error_of(row)) },
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
        {
          title: "median error",
          key: "median_error",
          value: (row) => row.median_error,
          text: (row) => percent(row.median_error),
        },
        {
          title: "90% are below",
          key: "p90_error",
          value: (row) => row.p90_error,
          text: (row) => percent(row.p90_error),
        },
        {
          title: "worst",
          key: "worst_error",
          value: (row) => row.worst_error,
          text: (row) => percent(row.worst_error),
        },
        {
          title: "median on unseen samples",
          key: "cross_validated_median",
          value: (row) => row.cross_validated_median,
          text: (row) => percent(row.cross_validated_median),
        },
      ],
      rows: result.groups,
    }),
    h("h3", {}, "Parameters"),
    table({
      caption: "Fitted parameters",
      file: "fit_parameters",
      columns: [
        { title: "parameter", key: "parameter", value: (row) => row.name },
        {
          title: "value",
          key: "value",
          value: (row) => row.value,
          text: (row) => (typeof row.value === "number" ? number(row.value) : row.value),
        },
        { title: "unit", key: "unit", value: (row) => row.unit },
        { title: "kind", key: "kind", value: (row) => row.kind },
        { title: "source", key: "source", value: (row) => row.source, wide: true },
      ],
      rows: result.parameters,
    }),
  );
}
