// The columns of every table whose rows are plans.
import { count, figure, gib, percent, seconds } from "../format";
import { h } from "../dom";
import type { Plan, StudyResult } from "../result";
import type { Column } from "../rows";
import { state_of } from "./verdict";

export function exposed_share(plan: Plan): number | null {
  const exposed = plan.breakdown?.exposed_communication;
  return exposed !== undefined && plan.step_time_s ? exposed / plan.step_time_s : null;
}

export function figure_columns(): Column<Plan>[] {
  return [
    { title: "step", key: "step_time_s", value: (p) => p.step_time_s, text: (p) => seconds(p.step_time_s) },
    {
      title: "tokens/s/GPU",
      key: "tokens_per_s_per_gpu",
      value: (p) => p.tokens_per_s_per_gpu,
      text: (p) => figure(p.tokens_per_s_per_gpu),
    },
    { title: "MFU", key: "mfu", value: (p) => p.mfu, text: (p) => percent(p.mfu) },
    { title: "exposed comm.", key: "exposed_share", value: exposed_share, text: (p) => percent(exposed_share(p)) },
    {
      title: "GPU memory",
      key: "peak_gpu_memory_gib",
      value: (p) => p.peak_gpu_memory_gib,
      text: (p) => gib(p.peak_gpu_memory_gib),
    },
    {
      title: "host/node",
      key: "peak_host_memory_gib_per_node",
      value: (p) => p.peak_host_memory_gib_per_node,
      text: (p) => gib(p.peak_host_memory_gib_per_node),
    },
    { title: "batch", key: "global_batch", value: (p) => p.global_batch, text: (p) => count(p.global_batch) },
  ];
}

export function plan_columns(study: StudyResult): Column<Plan>[] {
  return [
    { title: "plan", key: "plan", value: (p) => p.name },
    {
      title: "fits",
      key: "fit",
      value: (p) => p.fit ?? "cannot run",
      node: (p) => {
        const [state, text] = state_of(study, p);
        return h("span", { class: `state ${state}` }, text);
      },
    },
    ...figure_columns(),
    { title: "bound by", key: "bottleneck", value: (p) => p.bottleneck ?? p.reasons[0] ?? "", wide: true },
  ];
}
