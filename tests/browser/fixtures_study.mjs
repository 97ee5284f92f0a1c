// Studies and a search as `ulysim` writes them, small and made up: every view has data, and nothing depends on the
// simulator.

/** How every result begins. */
export const head = (kind) => ({ format: "ulysim-result", version: 1, kind });

const scenario = (name) => ({
  name,
  model: "llama-3.1-8b",
  node: "dgx-h100",
  gpu: "h100-sxm",
  nodes: 4,
  gpus: 32,
  topology: "rail-optimized",
  sequence_length: 1048576,
  total_tokens: null,
  price_per_gpu_hour: null,
  text: `scenario: ${name}\nmodel: llama-3.1-8b\ncluster:\n  node: dgx-h100\n  nodes: 4\n`,
});

const use = (gigabytes, seconds, exposed) => ({
  bytes_per_gpu: gigabytes * 1e9,
  seconds,
  exposed_seconds: exposed,
});

/** Spans that follow each other on one stream: [name, purpose, seconds]. */
function chain(begin, spans) {
  let at = begin;
  return spans.map(([name, purpose, seconds]) => {
    const span = { name, purpose, begin_s: at, end_s: at + seconds };
    at = span.end_s;
    return span;
  });
}

function ulysses_phase(begin, work) {
  const projections = chain(begin, [
    ["norm1", "memory_bound", 0.02],
    ["qkv", "gemm", 0.06 * work],
  ]);
  const sent = chain(projections[1].end_s, [
    ["scatter heads", "ulysses", 0.03],
  ]);
  const attention = chain(sent[0].end_s, [
    ["attention", "attention", 1.1 * work],
  ]);
  const back = chain(attention[0].end_s, [["gather heads", "ulysses", 0.03]]);
  const rest = chain(back[0].end_s, [
    ["output", "gemm", 0.06 * work],
    ["gate", "gemm", 0.1],
    ["up", "gemm", 0.1],
    ["down", "gemm", 0.1],
  ]);
  const weights = chain(begin + 0.01, [
    ["gather the next layer", "parameters", 0.09],
  ]);
  return {
    begin_s: begin,
    end_s: rest[3].end_s,
    streams: [
      { name: "compute", spans: [...projections, ...attention, ...rest] },
      { name: "ulysses", spans: [...sent, ...back] },
      { name: "parameters", spans: weights },
    ],
  };
}

function ring_phase(begin, steps) {
  const blocks = chain(
    begin,
    Array.from({ length: steps }, (_, i) => [`block ${i}`, "attention", 0.15]),
  );
  const sends = chain(
    begin,
    Array.from({ length: steps - 1 }, (_, i) => [
      `step ${i + 1}`,
      "ring",
      0.15 - 0.02 * (i % 3),
    ]),
  );
  return {
    begin_s: begin,
    end_s: blocks[steps - 1].end_s,
    omitted_spans: 3,
    streams: [
      { name: "compute", spans: blocks },
      { name: "ring", spans: sends },
    ],
  };
}

const kinds = ["weights", "checkpoints", "activations", "logits"];

function memory_by_kind(step) {
  const times = Array.from({ length: 60 }, (_, i) => (step * i) / 60);
  return {
    kinds,
    times_s: times,
    gib: times.map((_, i) => [
      1.9,
      0.05 * Math.min(i, 60 - i),
      6 + 9 * ((i % 7) / 7),
      i === 30 ? 11 : 0,
    ]),
  };
}

function plan(name, step, more = {}) {
  const curve = memory_by_kind(step);
  return {
    name,
    feasible: true,
    fits: true,
    fit: "yes",
    reasons: [],
    infeasible: [],
    suggestions: [],
    global_batch: 1,
    options: {
      tensor: "1",
      ulysses: name.includes("ulysses") ? "8" : "1",
      ring: "4",
      zero: "3",
      recompute: "full",
    },
    step_time_s: step,
    step_time_s_low: step * 0.93,
    step_time_s_high: step * 1.08,
    tokens_per_step: 1048576,
    tokens_per_s_per_gpu: 1048576 / step / 32,
    mfu: 29 / step,
    model_tflops_per_gpu: 380,
    hardware_tflops_per_gpu: 570,
    lower_bound_s: step * 0.95,
    peak_gpu_memory_gib: 31.2,
    peak_gpu_allocated_gib: 27,
    peak_gpu_reserved_gib: 28.5,
    gpu_memory_capacity_gib: 79.1,
    peak_host_memory_gib_per_node: 386,
    host_memory_capacity_gib_per_node: 1984,
    host_memory: {
      parts: { optimizer_states: 280, checkpoints: 96, pinned_buffers: 10 },
    },
    total_days: null,
    total_gpu_hours: null,
    total_cost: null,
    memory: {
      weights: 1.9,
      gradients: 0.7,
      optimizer_states: 0,
      checkpoints: 1.5,
      activations: 15,
      logits: 7.8,
      fragmentation: 1.6,
      nccl: 1.95,
      context: 0.75,
    },
    communication: {
      all_to_all: use(56, 1.2, 1.1),
      all_gather: use(29, 0.9, 0.02),
      send_recv: use(73, 1.9, 0.18),
    },
    communication_by_purpose: {
      ulysses: use(56, 1.2, 1.1),
      parameters: use(29, 0.9, 0.02),
      ring: use(73, 1.9, 0.18),
    },
    breakdown: {
      attention: step * 0.8,
      gemm: step * 0.1,
      memory_bound: step * 0.03,
      host_issue: step * 0.005,
      exposed_communication: step * 0.03,
      exposed_offload: step * 0.01,
      optimizer: step * 0.025,
      bubble: 0,
      other: 0,
    },
    bottleneck: "attention kernels (80% of the step)",
    peak_tensors: [],
    memory_curve: curve.times_s.map((time_s, i) => ({
      time_s,
      allocated_gib: curve.gib[i].reduce((a, b) => a + b, 0),
    })),
    memory_by_kind: curve,
    links: [
      {
        name: "node0.gpu0.nvlink.up",
        kind: "nvlink",
        links: 64,
        capacity_gb_s: 450,
        carried_bytes: 1.4e11,
        utilization: 0.043,
      },
      {
        name: "node0.nic0.up",
        kind: "nic",
        links: 64,
        capacity_gb_s: 50,
        carried_bytes: 8.9e10,
        utilization: 0.24,
      },
      {
        name: "rail0.up",
        kind: "fabric",
        links: 16,
        capacity_gb_s: 200,
        carried_bytes: 2.9e11,
        utilization: 0.02,
      },
    ],
    layer_timeline: {
      layer: 15,
      forward: ulysses_phase(40, 1),
      backward: ulysses_phase(80, 2.5),
    },
    ...more,
  };
}

/** What a plan that cannot run has instead of figures. */
function cannot_run(name, reason, suggestion) {
  const figures = [
    "step_time_s",
    "tokens_per_step",
    "tokens_per_s_per_gpu",
    "mfu",
    "peak_gpu_memory_gib",
    "gpu_memory_capacity_gib",
    "memory",
    "peak_host_memory_gib_per_node",
    "host_memory_capacity_gib_per_node",
    "communication",
    "communication_by_purpose",
    "breakdown",
    "bottleneck",
    "peak_tensors",
    "memory_curve",
    "links",
  ];
  return {
    name,
    feasible: false,
    fits: null,
    fit: null,
    reasons: [reason],
    infeasible: [{ reason, numbers: {}, suggestion }],
    suggestions: [suggestion],
    global_batch: 1,
    options: {},
    ...Object.fromEntries(figures.map((key) => [key, null])),
  };
}

/** Two nodes of four GPUs, two rails and a spine. */
function topology() {
  const vertices = [];
  const links = [];
  const vertex = (name, kind, node) =>
    vertices.push({
      id: vertices.length,
      name,
      kind,
      ...(node === undefined ? {} : { node }),
    }) - 1;
  const join = (a, b, name, kind, capacity_gb_s) => {
    links.push(
      { from: a, to: b, class: name, kind, capacity_gb_s },
      { from: b, to: a, class: name, kind, capacity_gb_s },
    );
  };
  const rails = [0, 1].map((rail) => vertex(`rail ${rail}`, "network_switch"));
  const spine = vertex("spine", "network_switch");
  for (const rail of rails) {
    join(rail, spine, "rail0.up", "fabric", 200);
  }
  for (const node of [0, 1]) {
    const inner = vertex("NVSwitch", "nvlink_switch", node);
    const host = vertex("host", "host", node);
    join(
      host,
      vertex("memory", "memory", node),
      "node0.memory",
      "host_memory",
      480,
    );
    for (const index of [0, 1, 2, 3]) {
      const gpu = vertex(`gpu ${index}`, "gpu", node);
      const pcie = vertex(`PCIe ${index}`, "pcie_switch", node);
      join(gpu, inner, "node0.gpu0.nvlink.up", "nvlink", 450);
      join(gpu, pcie, "node0.gpu0.pcie.up", "pcie", 55.6);
      join(pcie, host, "node0.pcie0.up", "pcie", 55.6);
      join(pcie, rails[index % 2], "node0.nic0.up", "nic", 50);
    }
  }
  return { vertices, links, omitted_nodes: 2 };
}

const parameters = [
  {
    name: "gpu.h100-sxm.memory",
    value: "84932978278B",
    kind: "published",
    spread: 0.005,
    source: "out-of-memory messages of the H100 80GB HBM3",
  },
  {
    name: "gpu.h100-sxm.bf16",
    value: "989TFLOP/s",
    kind: "datasheet",
    spread: null,
    source: "NVIDIA H100 SXM data sheet, dense",
  },
  {
    name: "kernel.attention.efficiency",
    value: "0.71",
    kind: "assumed",
    spread: 0.1,
    source: "an estimate",
  },
];

export function study(name = "fixture-1m-32xh100") {
  return {
    ...head("study"),
    scenario: scenario(name),
    model: { name: "llama-3.1-8b" },
    winner: "ulysses=8,ring=4",
    plans: [
      plan("ulysses=8,ring=4", 74),
      plan("ring=32", 78.3, {
        layer_timeline: {
          layer: 15,
          forward: ring_phase(40, 8),
          backward: ring_phase(90, 8),
        },
      }),
      plan("tensor=8,ulysses=4", 77.4, {
        fits: false,
        fit: "no",
        peak_gpu_memory_gib: 92.1,
        reasons: ["does not fit: 92.1 of 79.1 GiB; logits 17.2 GiB"],
        suggestions: ["tiled_loss: true"],
      }),
      cannot_run(
        "ulysses=64",
        "32 heads do not spread over Ulysses 64",
        "ulysses=32",
      ),
    ],
    warnings: [
      "1,048,576 tokens are beyond the 131,072 positions that llama-3.1-8b was made for",
    ],
    parameters,
    topology: topology(),
  };
}

export function longest() {
  const limit = (name, tokens, lifted) =>
    plan(name, 900, {
      fit: "risky",
      max_sequence_length: tokens,
      limit: "gpu-memory",
      next_sequence_length: tokens + 8192,
      limit_reasons: ["does not fit: 79.3 of 79.1 GiB; activations 62.8 GiB"],
      lifts:
        lifted === null
          ? []
          : [
              {
                option: "optimizer: {offload: cpu}",
                max_sequence_length: lifted,
                step_time_s: 1200,
              },
            ],
    });
  return {
    ...study("fixture-longest"),
    winner: "ring=32",
    plans: [
      limit("ulysses=32", 11403264, 11960320),
      limit("ring=32", 12713984, 13336576),
      limit("tensor=8,ulysses=4", 8454144, null),
    ],
  };
}

export function search() {
  const best = Array.from({ length: 24 }, (_, i) =>
    plan(`ulysses=${2 ** (i % 5)},zero=${i % 4}`, 70 + ((i * 37) % 60), {
      peak_gpu_memory_gib: 78 - ((i * 37) % 60) * 0.8 + ((i * 11) % 17) - 8,
    }),
  ).sort((a, b) => b.tokens_per_s_per_gpu - a.tokens_per_s_per_gpu);
  return {
    ...head("plan"),
    scenario: scenario("fixture-search"),
    candidates: 4812,
    evaluated: 311,
    best,
    parameters,
  };
}
