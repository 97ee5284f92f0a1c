// Where every number comes from, and how sure it is.
import { percent } from "../format";
import { view, type View } from "../figure";
import type { Parameter } from "../result";
import { table } from "../table";

export function provenance(parameters: readonly Parameter[]): View | null {
  if (parameters.length === 0) {
    return null;
  }
  const kinds = new Map<string, number>();
  for (const { kind } of parameters) {
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  }
  return view(
    "provenance",
    "Where the numbers come from",
    [...kinds].map(([kind, times]) => `${times} ${kind}`).join(", "),
    table({
      caption: "Parameters",
      file: "parameters",
      columns: [
        { title: "parameter", key: "parameter", value: (row: Parameter) => row.name, wide: true },
        { title: "value", key: "value", value: (row) => row.value },
        { title: "kind", key: "kind", value: (row) => row.kind },
        {
          title: "spread",
          key: "relative_spread",
          value: (row) => row.spread,
          text: (row) => (row.spread === null ? "–" : `±${percent(row.spread)}`),
        },
        { title: "source", key: "source", value: (row) => row.source, wide: true },
      ],
      rows: parameters,
    }),
  );
}
