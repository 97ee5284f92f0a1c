// Arrow keys in a table (WAI-ARIA "grid" pattern): one tab stop, then arrows, Home, End and the page keys. Row 0 is
// the header, whose buttons sort. Cells carry data-row and data-column.

const kPage = 10;

export class GridKeys {
  private row = 0;
  private column = 0;

  constructor(
    private readonly table: HTMLTableElement,
    private readonly columns: number,
    private readonly rows: () => number,
    /** Makes the row exist and be seen. */
    private readonly bring_into_view: (row: number) => void,
  ) {
    table.addEventListener("keydown", (event) => {
      this.key(event);
    });
    table.addEventListener("focusin", (event) => {
      const cell = event.target instanceof HTMLElement ? event.target.closest<HTMLElement>("[data-row]") : null;
      if (cell !== null) {
        this.row = Number(cell.dataset.row);
        this.column = Number(cell.dataset.column);
        this.mark();
      }
    });
  }

  /** After the rows were made anew; puts the focus back where it was. */
  restore(had_focus: boolean): void {
    this.row = Math.min(this.row, this.rows());
    this.mark();
    if (had_focus) {
      this.cell()?.focus({ preventScroll: true });
    }
  }

  private cell(): HTMLElement | null {
    return this.table.querySelector<HTMLElement>(`[data-row="${this.row}"][data-column="${this.column}"]`);
  }

  /** The one cell that Tab reaches: the current one, or the first header while that is scrolled away. */
  private mark(): void {
    for (const old of this.table.querySelectorAll('[data-row][tabindex="0"]')) {
      old.setAttribute("tabindex", "-1");
    }
    const cell = this.cell() ?? this.table.querySelector<HTMLElement>('[data-row="0"]');
    cell?.setAttribute("tabindex", "0");
  }

  private key(event: KeyboardEvent): void {
    const target = this.target(event);
    if (target === null) {
      return;
    }
    event.preventDefault();
    this.row = Math.max(0, Math.min(this.rows(), target[0]));
    this.column = Math.max(0, Math.min(this.columns - 1, target[1]));
    this.bring_into_view(this.row);
    this.mark();
    this.cell()?.focus();
  }

  private target(event: KeyboardEvent): [number, number] | null {
    const { row, column } = this;
    switch (event.key) {
      case "ArrowDown":
        return [row + 1, column];
      case "ArrowUp":
        return [row - 1, column];
      case "ArrowRight":
        return [row, column + 1];
      case "ArrowLeft":
        return [row, column - 1];
      case "PageDown":
        return [row + kPage, column];
      case "PageUp":
        return [row - kPage, column];
      case "Home":
        return [event.ctrlKey ? 0 : row, 0];
      case "End":
        return [event.ctrlKey ? this.rows() : row, this.columns - 1];
      default:
        return null;
    }
  }
}
