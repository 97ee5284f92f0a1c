// Published measurements against what is predicted for them.
import { kBand } from "../band";
import { choice, h } from "../dom";
import { count, figure as number, metric_name, percent, short_count } from "../format";
import { figure, view, type View } from "../figure";
import type { ValidationResult, ValidationRow, ValidationSummary } from "../result";
import type { Column } from "../rows";
import { table } from "../table";
import { tip } from "../tooltip";
import { kVersusNames, versus_option, type Versus } from "../versus";

interface Point extends ValidationRow {
  predicted: number;
}

/** Yes-or-no rows have no place on a logarithmic axis. */
const kOutcomes = ["fits", "out_of_memory"];

function points_of(rows: readonly ValidationRow[]): Point[] {
  return rows.flatMap((row) =>
    row.predicted !== null && row.predicted > 0 && row.measured > 0 && !kOutcomes.includes(row.metric)
      ? [{ ...row, predicted: row.predicted }]
      : [],
  );
}

function ratio(row: ValidationRow): number | null {
  return row.predicted === null || row.measured === 0 || kOutcomes.includes(row.metric)
    ? null
    : row.predicted / row.measured;
}

function point_tip(point: Point): HTMLElement {
  const range =
    point.low !== null && point.high !== null
      ? [{ label: "range", value: `${number(point.low)} to ${number(point.high)}` }]
      : [];
  return tip(
    `${point.source} ${point.id}`,
    [
      { label: `measured ${metric_name(point.metric)}`, value: number(point.measured) },
      { label: "predicted", value: number(point.predicted) },
      { label: "predicted / measured", value: number(point.predicted / point.measured) },
      ...range,
    ],
    point.note,
  );
}

function versus_of(points: readonly Point[], relative: boolean): Versus<Point> {
  const one_metric = new Set(points.map((point) => point.metric)).size === 1;
  return {
    points,
    group: (point) => (one_metric ? point.source : metric_name(point.metric)),
    measured: (point) => point.measured,
    other: (point) => point.predicted,
    other_name: "predicted",
    unit: one_metric ? `: ${metric_name(points[0]?.metric ?? "")}` : "",
    text: short_count,
    relative,
    tip: point_tip,
    range: ({ low, high }) => (low === null || high === null ? null : [low, high]),
  };
}

const kColumns: Column<ValidationRow>[] = [
  { title: "source", key: "source", value: (row) => row.source },
  { title: "id", key: "id", value: (row) => row.id, wide: true },
  { title: "metric", key: "metric", value: (row) => row.metric, text: (row) => metric_name(row.metric) },
  { title: "measured", key: "measured", value: (row) => row.measured, text: (row) => number(row.measured) },
  { title: "predicted", key: "predicted", value: (row) => row.predicted, text: (row) => number(row.predicted) },
  { title: "ratio", key: "predicted_over_measured", value: ratio, text: (row) => number(ratio(row)) },
  { title: "low", key: "low", value: (row) => row.low, text: (row) => number(row.low) },
  { title: "high", key: "high", value: (row) => row.high, text: (row) => number(row.high) },
  { title: "note", key: "note", value: (row) => row.note, wide: true },
];

const kSummaryColumns: Column<ValidationSummary>[] = [
  { title: "metric or source", key: "metric", value: (row) => row.metric, text: (row) => metric_name(row.metric) },
  { title: "rows", key: "rows", value: (row) => row.rows },
  { title: "skipped", key: "skipped", value: (row) => row.skipped },
  {
    title: "median error",
    key: "median_error",
    value: errors((row) => row.median_error),
    text: (row) => error_text(row, row.median_error),
  },
  {
    title: "90% are below",
    key: "p90_error",
    value: errors((row) => row.p90_error),
    text: (row) => error_text(row, row.p90_error),
  },
  {
    title: "worst",
    key: "worst_error",
    value: errors((row) => row.worst_error),
    text: (row) => error_text(row, row.worst_error),
  },
  {
    title: "median ratio",
    key: "median_ratio",
    value: errors((row) => row.median_ratio),
    text: (row) => (row.rows === 0 ? "–" : number(row.median_ratio)),
  },
  {
    title: "wrong outcomes",
    key: "wrong_outcomes",
    value: (row) => (row.outcomes === 0 ? null : row.wrong_outcomes),
    text: (row) => (row.outcomes === 0 ? "–" : `${row.wrong_outcomes} of ${row.outcomes}`),
  },
];

/** Errors of no rows are none, not zero. */
function errors(get: (row: ValidationSummary) => number): (row: ValidationSummary) => number | null {
  return (row) => (row.rows === 0 ? null : get(row));
}

function error_text(row: ValidationSummary, error: number): string {
  return row.rows === 0 ? "–" : percent(error);
}

export function scoreboard(result: ValidationResult): View {
  const all = points_of(result.rows);
  const metrics = [...new Set(all.map((point) => point.metric))];
  let shown = all;
  let relative = false;
  const inside = all.filter((point) => Math.abs(point.predicted / point.measured - 1) <= kBand).length;
  const total = result.summary.find((row) => row.metric === "all");
  const drawn = figure({
    label: `Scatter of ${all.length} measurements, predicted against measured, both axes logarithmic; ${inside} lie within 15%`,
    height: (width) => Math.min(620, Math.max(380, width * 0.7)),
    option: (width) => versus_option(versus_of(shown, relative), width),
    controls: [
      choice("Metric", ["all", ...metrics.map(metric_name)], 0, (index) => {
        shown = index === 0 ? all : all.filter((point) => point.metric === metrics[index - 1]);
        drawn.chart.redraw();
      }),
      choice("Predicted", kVersusNames, 0, (index) => {
        relative = index === 1;
        drawn.chart.redraw();
      }),
    ],
    table: () => ({ caption: "What is drawn", file: "scoreboard", columns: kColumns, rows: shown }),
  });
  return view(
    "scoreboard",
    "Predicted against measured",
    "The band is ±15%. Nothing is tuned to a row.",
    h(
      "p",
      { class: "headline" },
      total === undefined
        ? `${count(inside)} of ${count(all.length)} within 15%`
        : `Median error ${percent(total.median_error)} over ${count(total.rows)} measurements`,
    ),
    h(
      "p",
      { class: "why" },
      `${count(inside)} of ${count(all.length)} lie within 15%.${total ? ` ${count(total.wrong_outcomes)} of ${count(total.outcomes)} yes-or-no outcomes are wrong.` : ""}`,
    ),
    drawn.element,
    h("h3", {}, "By metric and source"),
    table({
      caption: "Errors by metric and source",
      file: "validation_summary",
      columns: kSummaryColumns,
      rows: result.summary,
    }),
    h("h3", {}, "Every measurement"),
    table({ caption: "Measurements", file: "validation", columns: kColumns, rows: result.rows }),
  );
}
