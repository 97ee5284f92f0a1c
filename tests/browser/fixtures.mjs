// Results as `ulysim` writes them, small and made up: every view has data, and nothing depends on the simulator.
import { head } from "./fixtures_study.mjs";

export { longest, search, study } from "./fixtures_study.mjs";

/** lengths × gpus × bandwidths points of three plans. */
export function sweep(lengths = 12, gpus = 6, bandwidths = 3) {
  const plans = ["ulysses", "ring", "tensor"];
  const axes = [
    {
      key: "training.sequence_length",
      values: Array.from({ length: lengths }, (_, i) =>
        String(131072 * (i + 1)),
      ),
    },
    {
      key: "cluster.gpus",
      values: Array.from({ length: gpus }, (_, i) => String(8 * (i + 1))),
    },
    {
      key: "cluster.network.bandwidth",
      values: Array.from(
        { length: bandwidths },
        (_, i) => `${100 * (i + 1)}Gb/s`,
      ),
    },
  ];
  const points = [];
  for (let x = 0; x < lengths; ++x) {
    for (let y = 0; y < gpus; ++y) {
      for (let z = 0; z < bandwidths; ++z) {
        // Ulysses likes few GPUs and short sequences, the ring long ones, tensor parallelism neither.
        const speeds = [
          500 - 20 * y - 8 * x + 5 * z,
          400 + 12 * x - 4 * y + 10 * z,
          380 - 30 * y + 2 * x,
        ];
        const fits = speeds.map((_, i) => x < (lengths * (y + 2)) / (gpus + i));
        const able = speeds.map((speed, i) => (fits[i] ? speed : -1));
        const winner = able.indexOf(Math.max(...able));
        points.push({
          at: [x, y, z],
          winner: able[winner] < 0 ? null : winner,
          plans: plans.map((name, i) => ({
            name,
            feasible: true,
            fits: fits[i],
            fit: fits[i] ? "yes" : "no",
            step_time_s: (131072 * (x + 1)) / speeds[i] / (8 * (y + 1)),
            tokens_per_s_per_gpu: speeds[i],
            mfu: speeds[i] / 1100,
            peak_gpu_memory_gib: fits[i] ? 20 + 4 * x : 90,
            peak_host_memory_gib_per_node: 386,
            exposed_communication_s: 0.5 * (i + 1),
            bottleneck: fits[i] ? "attention kernels" : null,
            reason: fits[i] ? null : "does not fit: 90.0 of 79.1 GiB",
          })),
        });
      }
    }
  }
  return { ...head("sweep"), name: "fixture-sweep", axes, plans, points };
}

export function validation() {
  const metrics = [
    "step_time_s",
    "tokens_per_s_per_gpu",
    "peak_gpu_memory_gib",
  ];
  const rows = Array.from({ length: 60 }, (_, i) => {
    const measured = [3 + 11 * (i % 9), 900 + 131 * (i % 11), 20 + (i % 50)][
      i % 3
    ];
    const predicted = measured * (0.8 + ((i * 29) % 45) / 100);
    return {
      source: ["ALST", "torchtitan", "SimuMax"][(i >> 2) % 3],
      id: `ROW-${i}`,
      metric: metrics[i % 3],
      measured,
      predicted,
      low: predicted * 0.9,
      high: predicted * 1.1,
      note: "",
    };
  });
  rows.push({
    source: "ALST",
    id: "OOM-1",
    metric: "fits",
    measured: 1,
    predicted: 1,
    low: null,
    high: null,
    note: "fits as published",
  });
  const summary = [...metrics, "all"].map((metric) => ({
    metric,
    rows: 20,
    skipped: 0,
    outcomes: metric === "all" ? 1 : 0,
    wrong_outcomes: 0,
    median_error: 0.08,
    p90_error: 0.18,
    worst_error: 0.24,
    median_ratio: 1.02,
  }));
  return { ...head("validation"), summary, rows };
}

export function fit() {
  const groups = ["all_to_all", "attention", "gemm"];
  const residuals = Array.from({ length: 90 }, (_, i) => {
    const measured = 2e-6 * 1.17 ** (i % 60);
    return {
      group: groups[i % 3],
      label: `${groups[i % 3]} of size ${i}`,
      measured,
      fitted: measured * (0.9 + ((i * 7) % 21) / 100),
      unit: "s",
    };
  });
  return {
    ...head("fit"),
    parameters: groups.map((name) => ({
      name: `${name}.efficiency`,
      value: 0.734,
      unit: "",
      source: "fitted to 30 samples",
      kind: "measured",
    })),
    groups: groups.map((name) => ({
      name,
      points: 30,
      median_error: 0.04,
      p90_error: 0.09,
      worst_error: 0.11,
      cross_validated_median: 0.05,
    })),
    residuals,
  };
}
