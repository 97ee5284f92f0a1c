// The result as `ulysim` writes it ("format": "ulysim-result", "version": 1). Times in seconds, memory in GiB, null where
// not applicable. Optional keys are younger than the format: a view without its data is not shown.

export interface Scenario {
  name: string;
  model: string;
  node: string;
  gpu: string;
  nodes: number;
  gpus: number;
  topology: string;
  sequence_length: number;
  total_tokens: number | null;
  price_per_gpu_hour: number | null;
  /** The resolved scenario as YAML. */
  text?: string;
}

export interface Communication {
  bytes_per_gpu: number;
  seconds: number;
  exposed_seconds: number;
}

export interface LinkLoad {
  /** Of one link of the class: "node0.gpu3.nvlink.up". */
  name: string;
  kind: string;
  /** How many links are alike. */
  links: number;
  capacity_gb_s: number;
  carried_bytes: number;
  utilization: number;
}

export interface TimelineSpan {
  name: string;
  purpose: string;
  begin_s: number;
  end_s: number;
}

export interface TimelineStream {
  name: string;
  spans: TimelineSpan[];
}

export interface TimelinePhase {
  begin_s: number;
  end_s: number;
  streams: TimelineStream[];
  omitted_spans?: number;
}

export interface LayerTimeline {
  layer: number;
  forward?: TimelinePhase | null;
  backward?: TimelinePhase | null;
}

export interface MemoryByKind {
  kinds: string[];
  times_s: number[];
  /** One row per time, one figure per kind. */
  gib: number[][];
}

export interface PeakTensor {
  name: string;
  kind: string;
  gib: number;
  count: number;
}

export interface Lift {
  option: string;
  max_sequence_length: number;
  step_time_s: number;
}

export interface Plan {
  name: string;
  feasible: boolean;
  fits: boolean | null;
  fit: "yes" | "risky" | "no" | null;
  reasons: string[];
  suggestions: string[];
  global_batch?: number;
  options?: Record<string, string>;
  step_time_s: number | null;
  step_time_s_low?: number | null;
  step_time_s_high?: number | null;
  tokens_per_step?: number | null;
  tokens_per_s_per_gpu: number | null;
  tokens_per_s_per_gpu_low?: number | null;
  tokens_per_s_per_gpu_high?: number | null;
  mfu: number | null;
  model_tflops_per_gpu?: number | null;
  hardware_tflops_per_gpu?: number | null;
  lower_bound_s?: number | null;
  peak_gpu_memory_gib: number | null;
  peak_gpu_memory_gib_low?: number | null;
  peak_gpu_memory_gib_high?: number | null;
  peak_gpu_allocated_gib?: number | null;
  peak_gpu_reserved_gib?: number | null;
  gpu_memory_capacity_gib?: number | null;
  peak_host_memory_gib_per_node?: number | null;
  host_memory_capacity_gib_per_node?: number | null;
  total_days?: number | null;
  total_gpu_hours?: number | null;
  total_cost?: number | null;
  memory?: Record<string, number> | null;
  host_memory?: { parts: Record<string, number> } | null;
  communication?: Record<string, Communication> | null;
  communication_by_purpose?: Record<string, Communication> | null;
  breakdown?: Record<string, number> | null;
  bottleneck?: string | null;
  peak_tensors?: PeakTensor[] | null;
  memory_curve?: { time_s: number; allocated_gib: number }[] | null;
  memory_by_kind?: MemoryByKind | null;
  links?: LinkLoad[] | null;
  /** For each link of the topology the place of its load in `links`; null: not loaded. */
  topology_links?: (number | null)[] | null;
  layer_timeline?: LayerTimeline | null;
  max_sequence_length?: number | null;
  limit?: string;
  next_sequence_length?: number | null;
  limit_reasons?: string[];
  lifts?: Lift[];
}

export interface Parameter {
  name: string;
  value: string;
  kind: string;
  spread: number | null;
  source: string;
}

export interface Vertex {
  id: number;
  name: string;
  kind: string;
  node?: number | null;
}

export interface TopologyLink {
  from: number;
  to: number;
  /** The name of its load among the first plan's links. */
  class: string;
  kind: string;
  capacity_gb_s: number;
}

export interface Topology {
  vertices: Vertex[];
  links: TopologyLink[];
  omitted_nodes?: number;
}

export interface StudyResult {
  kind: "study";
  scenario: Scenario;
  model: { name: string };
  winner: string | null;
  plans: Plan[];
  warnings: string[];
  parameters: Parameter[];
  topology?: Topology;
}

/** `ulysim plan`: what a search found, best first. */
export interface PlanResult {
  kind: "plan";
  scenario: Scenario;
  candidates: number;
  evaluated: number;
  best: Plan[];
  warnings?: string[];
  parameters?: Parameter[];
}

export interface SweepPlan {
  name: string;
  feasible: boolean;
  fits: boolean | null;
  fit: "yes" | "risky" | "no" | null;
  step_time_s: number | null;
  tokens_per_s_per_gpu: number | null;
  mfu: number | null;
  peak_gpu_memory_gib: number | null;
  peak_host_memory_gib_per_node: number | null;
  exposed_communication_s: number | null;
  bottleneck: string | null;
  reason: string | null;
}

export interface SweepPoint {
  /** Index of each axis' value. */
  at: number[];
  /** Index into `plans`. */
  winner: number | null;
  plans: SweepPlan[];
}

export interface SweepResult {
  kind: "sweep";
  name: string;
  axes: { key: string; values: string[] }[];
  plans: string[];
  points: SweepPoint[];
}

export interface ValidationRow {
  source: string;
  id: string;
  metric: string;
  measured: number;
  predicted: number | null;
  low: number | null;
  high: number | null;
  note: string;
}

export interface ValidationSummary {
  metric: string;
  rows: number;
  skipped: number;
  outcomes: number;
  wrong_outcomes: number;
  median_error: number;
  p90_error: number;
  worst_error: number;
  median_ratio: number;
}

export interface ValidationResult {
  kind: "validation";
  summary: ValidationSummary[];
  rows: ValidationRow[];
}

export interface FitResult {
  kind: "fit";
  name?: string;
  parameters: { name: string; value: string | number; unit: string; source: string; kind: string }[];
  groups: {
    name: string;
    points: number;
    median_error: number;
    p90_error: number;
    worst_error: number;
    cross_validated_median: number | null;
  }[];
  residuals: { group: string; label: string; measured: number; fitted: number; unit: string }[];
}

export type Result = StudyResult | PlanResult | SweepResult | ValidationResult | FitResult;

/** The result that the writer put into the page. Throws Error when it is none that this page can show. */
export function read_result(): Result {
  const text = document.getElementById("ulysim-result")?.textContent ?? "";
  const value = JSON.parse(text) as { format?: unknown; kind?: unknown };
  const kinds: unknown[] = ["study", "plan", "sweep", "validation", "fit"];
  if (value.format !== "ulysim-result" || !kinds.includes(value.kind)) {
    throw new Error(`this page cannot show a result of kind ${JSON.stringify(value.kind)}`);
  }
  return value as Result;
}
