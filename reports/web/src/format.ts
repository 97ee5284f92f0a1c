// Numbers as people read them. No locale: a report looks the same wherever it is opened.

const kNothing = "–";

type Maybe = number | null | undefined;

/** Three significant digits below a thousand, whole numbers with commas above: "0.0123", "45.6", "1,234". */
export function figure(value: Maybe): string {
  if (value === null || value === undefined || !Number.isFinite(value)) {
    return kNothing;
  }
  const size = Math.abs(value);
  if (size >= 999.5) {
    return count(value);
  }
  if (size !== 0 && size < 1e-4) {
    return value.toExponential(2);
  }
  // toPrecision pads to three digits ("0.500"), which is right for columns of like figures.
  return size === 0 ? "0" : value.toPrecision(3);
}

/** "1,048,576"; fractions are rounded. */
export function count(value: Maybe): string {
  if (value === null || value === undefined || !Number.isFinite(value)) {
    return kNothing;
  }
  return Math.round(value)
    .toFixed(0)
    .replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

function scaled(value: Maybe, units: readonly (readonly [number, string])[]): string {
  if (value === null || value === undefined || !Number.isFinite(value)) {
    return kNothing;
  }
  // A value that rounds up to the next unit is told in it: "1.00 ms", never "1,000 µs".
  const unit = units.find(([size]) => Math.abs(value) >= size * 0.9995) ?? units[units.length - 1];
  return unit === undefined ? figure(value) : `${figure(value / unit[0])} ${unit[1]}`;
}

/** "298 s", "66.0 ms", "12.3 µs". */
export function seconds(value: Maybe): string {
  return value === 0
    ? "0 s"
    : scaled(value, [
        [1, "s"],
        [1e-3, "ms"],
        [1e-6, "µs"],
        [1e-9, "ns"],
      ]);
}

/** Of a figure in GiB: "30.9 GiB", "1.10 TiB", "128 MiB". */
export function gib(value: Maybe): string {
  return value === 0
    ? "0 GiB"
    : scaled(value, [
        [1024, "TiB"],
        [1, "GiB"],
        [1 / 1024, "MiB"],
        [1 / 1024 / 1024, "KiB"],
      ]);
}

/** Decimal, as bandwidths are: "225 GB". */
export function bytes(value: Maybe): string {
  return value === 0
    ? "0 B"
    : scaled(value, [
        [1e15, "PB"],
        [1e12, "TB"],
        [1e9, "GB"],
        [1e6, "MB"],
        [1e3, "kB"],
        [1, "B"],
      ]);
}

/** "38.7%" of 0.387; small shares keep two digits: "0.27%". */
export function percent(value: Maybe): string {
  if (value === null || value === undefined || !Number.isFinite(value)) {
    return kNothing;
  }
  const share = value * 100;
  return `${Math.abs(share) < 1 && share !== 0 ? share.toPrecision(2) : share.toFixed(1)}%`;
}

const kBinary: readonly (readonly [number, string])[] = [
  [2 ** 40, "Ti"],
  [2 ** 30, "Gi"],
  [2 ** 20, "Mi"],
  [2 ** 10, "Ki"],
];

const kDecimal: readonly (readonly [number, string])[] = [
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
];

/** For axes: whole binary multiples as such ("128Ki", "1.5Mi"), else decimal ("3.12M"). */
export function short_count(value: number): string {
  for (const [size, name] of kBinary) {
    if (value >= size && value < size * 1024 && (value / size) % 0.125 === 0) {
      return `${value / size}${name}`;
    }
  }
  for (const [size, name] of kDecimal) {
    if (Math.abs(value) >= size) {
      return `${Number((value / size).toPrecision(3))}${name}`;
    }
  }
  return String(Number(value.toPrecision(3)));
}

/** For axes: "500 GB", "1.5 TB". */
export function short_bytes(value: number): string {
  return bytes(value).replace(/^(\d+(?:\.\d+)?)/, (digits) => String(Number(digits)));
}

/** A value of a scenario's key for an axis: lengths shortened, all else as written. */
export function short_value(text: string): string {
  return /^\d{4,}$/.test(text) ? short_count(Number(text)) : text;
}

/** "exposed communication" of "exposed_communication". */
export function words(name: string): string {
  return name.replaceAll("_", " ");
}

const kMetrics: Record<string, string> = {
  step_time_s: "step time, s",
  tokens_per_s_per_gpu: "tokens/s/GPU",
  tokens_per_s: "tokens/s",
  tflops_per_gpu: "TFLOP/s per GPU",
  mfu: "MFU",
  peak_gpu_memory_gib: "peak GPU memory, GiB",
  peak_gpu_allocated_gib: "peak allocated, GiB",
  peak_gpu_reserved_gib: "peak reserved, GiB",
  max_sequence_length: "longest sequence, tokens",
};

/** A metric of `validate` with its unit. */
export function metric_name(metric: string): string {
  return kMetrics[metric] ?? words(metric);
}

/** A name made short enough for an axis. */
export function shortened(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}
