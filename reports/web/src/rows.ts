// The rows of a table as data: what a column says of them, which match, in which order.
import type { CsvValue } from "./csv";

export interface Column<Row> {
  title: string;
  /** Name of the CSV column, with its unit: "step_time_s". */
  key: string;
  /** What sorts and goes into the CSV. */
  value: (row: Row) => CsvValue;
  /** What is read; the value itself when not given. */
  text?: (row: Row) => string;
  /** For a cell that is more than text. */
  node?: (row: Row) => Node;
  /** Text that may take several lines (only in short tables). */
  wide?: boolean;
}

export interface TableSpec<Row> {
  caption: string;
  /** Of the download, without its ending. */
  file: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
}

function compare(a: CsvValue, b: CsvValue): number {
  if (typeof a === "number" && typeof b === "number") {
    return a - b;
  }
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

function is_empty(value: CsvValue): boolean {
  return value === null || value === undefined || value === "";
}

/** Without the columns of which no row has anything. */
export function filled<Row>(spec: TableSpec<Row>): TableSpec<Row> {
  const columns = spec.columns.filter(({ value }, at) => at === 0 || spec.rows.some((row) => !is_empty(value(row))));
  return { ...spec, columns };
}

/** What is read in a cell. */
export function text_of<Row>(column: Column<Row>, row: Row): string {
  const value = column.value(row);
  return column.text?.(row) ?? (is_empty(value) ? "–" : String(value));
}

export function is_numeric<Row>(rows: readonly Row[], { value }: Column<Row>): boolean {
  return rows.every((row) => is_empty(value(row)) || typeof value(row) === "number");
}

/** The rows of which a cell has `wanted`, in lower case, in it. */
export function matching<Row>(rows: readonly Row[], columns: readonly Column<Row>[], wanted: string): readonly Row[] {
  return wanted === ""
    ? rows
    : rows.filter((row) => columns.some((column) => text_of(column, row).toLowerCase().includes(wanted)));
}

/** By a column, or as they came; what is missing stays last whichever way. */
export function ordered<Row>(rows: readonly Row[], column: Column<Row> | undefined, descending: boolean): Row[] {
  if (column === undefined) {
    return [...rows];
  }
  const sign = descending ? -1 : 1;
  return [...rows].sort((one, other) => {
    const [a, b] = [column.value(one), column.value(other)];
    return is_empty(a) || is_empty(b) ? Number(is_empty(a)) - Number(is_empty(b)) : sign * compare(a, b);
  });
}
