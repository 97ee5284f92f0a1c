// A table that sorts, filters when it is long, downloads as CSV and moves by arrow keys. Of a long one only the rows in
// sight are in the page, so that ten thousand scroll as ten do.
import { csv } from "./csv";
import { download, h } from "./dom";
import { count } from "./format";
import { GridKeys } from "./grid_keys";
import { filled, is_numeric, matching, ordered, text_of, type TableSpec } from "./rows";
import { is_on_paper, on_theme_change } from "./theme";

const kFilterFrom = 12;
/** More rows than this scroll in a window of their own. */
const kTallFrom = 20;
const kVirtualFrom = 300;
/** Height of a row of a long table, as the style sheet fixes it. */
const kRowHeight = 30;
const kOverscan = 12;
const kMostOnPaper = 500;

class DataTable<Row> {
  private readonly body = h("tbody", {});
  private readonly head: HTMLTableRowElement;
  private readonly scroller = h("div", { class: "table-scroll" });
  private readonly status = h("span", { class: "table-status", role: "status" });
  private readonly element: HTMLElement;
  private readonly is_long: boolean;
  private readonly keys: GridKeys;
  private readonly numeric: boolean[];
  private shown: Row[];
  private sorted_by = -1;
  private descending = false;
  private wanted = "";
  private first = 0;
  private painted = false;

  constructor(private readonly spec: TableSpec<Row>) {
    this.shown = [...spec.rows];
    this.is_long = spec.rows.length >= kVirtualFrom;
    this.numeric = spec.columns.map((column) => is_numeric(spec.rows, column));
    this.head = h("tr", { "aria-rowindex": "1" }, ...spec.columns.map((_, index) => this.header(index)));
    const table = h(
      "table",
      {
        role: "grid",
        "aria-rowcount": spec.rows.length + 1,
        "aria-colcount": spec.columns.length,
        "aria-label": spec.caption,
      },
      h("thead", {}, this.head),
      this.body,
    );
    this.scroller.append(table);
    this.keys = new GridKeys(
      table,
      spec.columns.length,
      () => this.shown.length,
      (row) => {
        this.bring_into_view(row);
      },
    );
    this.scroller.classList.toggle("tall", spec.rows.length > kTallFrom);
    if (this.is_long) {
      this.scroller.classList.add("long");
      this.scroller.addEventListener("scroll", () => {
        this.paint();
      });
      on_theme_change(this.scroller, () => {
        this.paint();
      });
    }
    this.element = h("div", { class: "table" }, this.tools(), this.scroller);
    this.refresh();
  }

  get root(): HTMLElement {
    return this.element;
  }

  private tools(): HTMLElement {
    const { spec } = this;
    const filter = h("input", {
      type: "search",
      placeholder: "Filter rows",
      "aria-label": `Filter rows of ${spec.caption}`,
      on: {
        input: () => {
          this.wanted = filter.value.trim().toLowerCase();
          this.refresh();
        },
      },
    });
    const save = h(
      "button",
      {
        type: "button",
        class: "quiet",
        "aria-label": `Download CSV of ${spec.caption}`,
        on: {
          click: () => {
            this.save();
          },
        },
      },
      "Download CSV",
    );
    return h("div", { class: "table-tools" }, spec.rows.length >= kFilterFrom && filter, this.status, save);
  }

  private header(index: number): HTMLTableCellElement {
    const column = this.spec.columns[index];
    const button = h(
      "button",
      {
        type: "button",
        tabindex: "-1",
        "data-row": 0,
        "data-column": index,
        on: {
          click: () => {
            this.sort(index);
          },
        },
      },
      column?.title ?? "",
    );
    return h("th", { scope: "col", "aria-sort": "none", class: this.numeric[index] === true && "number" }, button);
  }

  private sort(index: number): void {
    // Numbers are looked at from the largest, text from A.
    this.descending = this.sorted_by === index ? !this.descending : this.numeric[index] === true;
    this.sorted_by = index;
    [...this.head.cells].forEach((cell, at) => {
      cell.setAttribute("aria-sort", at !== index ? "none" : this.descending ? "descending" : "ascending");
    });
    this.refresh();
  }

  private save(): void {
    const { columns, file } = this.spec;
    const rows = this.shown.map((row) => columns.map((column) => column.value(row)));
    download(
      `${file}.csv`,
      "text/csv;charset=utf-8",
      csv(
        columns.map((column) => column.key),
        rows,
      ),
    );
  }

  /** After a change of order or filter. */
  private refresh(): void {
    const { columns, rows } = this.spec;
    this.shown = ordered(matching(rows, columns, this.wanted), columns[this.sorted_by], this.descending);
    const all = `${count(rows.length)} rows`;
    this.status.textContent =
      this.wanted !== "" ? `${count(this.shown.length)} of ${all}` : rows.length >= kFilterFrom ? all : "";
    this.painted = false;
    this.scroller.scrollTop = 0;
    this.paint();
  }

  private range(): [number, number] {
    const count = this.shown.length;
    if (!this.is_long) {
      return [0, count];
    }
    if (is_on_paper()) {
      return [0, Math.min(count, kMostOnPaper)];
    }
    const height = this.scroller.clientHeight || 480;
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / kRowHeight) - kOverscan);
    // Whole steps, so that most scroll events change nothing.
    const start = first - (first % kOverscan);
    return [start, Math.min(count, start + Math.ceil(height / kRowHeight) + 3 * kOverscan)];
  }

  private paint(): void {
    const [start, end] = this.range();
    const same =
      this.painted && start === this.first && end - start === this.body.querySelectorAll("tr[aria-rowindex]").length;
    if (same) {
      return;
    }
    const had_focus = this.body.contains(document.activeElement);
    this.painted = true;
    this.first = start;
    const rows: HTMLElement[] = [];
    for (let at = start; at < end; ++at) {
      const row = this.shown[at];
      if (row !== undefined) {
        rows.push(this.row(row, at));
      }
    }
    this.body.replaceChildren(...this.gap(start), ...rows, ...this.gap(is_on_paper() ? 0 : this.shown.length - end));
    if (this.is_long && is_on_paper() && this.shown.length > end) {
      const cell = h(
        "td",
        { colspan: this.spec.columns.length },
        `${count(this.shown.length - end)} more rows are in the CSV`,
      );
      this.body.append(h("tr", {}, cell));
    }
    this.keys.restore(had_focus);
  }

  private gap(rows: number): HTMLElement[] {
    if (rows <= 0) {
      return [];
    }
    const cell = h("td", { colspan: this.spec.columns.length });
    cell.style.height = `${rows * kRowHeight}px`;
    return [h("tr", { class: "gap", "aria-hidden": "true" }, cell)];
  }

  private row(row: Row, at: number): HTMLElement {
    const cells = this.spec.columns.map((column, index) => {
      const text = text_of(column, row);
      const look = [this.numeric[index] === true ? "number" : "", column.wide === true ? "wide" : ""].join(" ").trim();
      const attributes = { tabindex: "-1", "data-row": at + 1, "data-column": index, class: look !== "" && look };
      const content = column.node?.(row) ?? text;
      return index === 0
        ? h("th", { scope: "row", ...attributes, title: this.is_long && text }, content)
        : h("td", { ...attributes, title: this.is_long && text }, content);
    });
    return h("tr", { "aria-rowindex": at + 2 }, ...cells);
  }

  private bring_into_view(row: number): void {
    if (!this.is_long || row === 0) {
      return;
    }
    const head = this.head.offsetHeight;
    const top = (row - 1) * kRowHeight;
    const room = this.scroller.clientHeight - head - kRowHeight;
    if (top < this.scroller.scrollTop) {
      this.scroller.scrollTop = top;
    } else if (top > this.scroller.scrollTop + room) {
      this.scroller.scrollTop = top - room;
    }
    this.paint();
  }
}

export function table<Row>(spec: TableSpec<Row>): HTMLElement {
  return new DataTable(filled(spec)).root;
}
