// The answer first: who wins and why, what holds back the others, and what would help.
import { h } from "../dom";
import { count, figure, gib, percent, seconds, words } from "../format";
import { view, type View } from "../figure";
import type { Plan, StudyResult } from "../result";
import { part_name, time_parts } from "./breakdown";

/** Closer than this no plan is called faster: predictions are not that sure. */
const kLevel = 1.005;

const speed = (plan: Plan): number => plan.tokens_per_s_per_gpu ?? 0;

export function is_longest(study: StudyResult): boolean {
  return study.plans.some((plan) => plan.max_sequence_length !== undefined);
}

function fitting(study: StudyResult): Plan[] {
  return study.plans.filter((plan) => plan.fits === true);
}

export function winner(study: StudyResult): Plan | undefined {
  return study.plans.find((plan) => plan.name === study.winner);
}

/** Where `second` loses most against `best`, and how much, in seconds of the step of `best`; ["", 0] when nowhere. */
function loss(best: Plan, second: Plan): [string, number] {
  const tokens = best.tokens_per_step ?? 1;
  const scale = tokens / (second.tokens_per_step ?? tokens);
  const own = time_parts(best);
  let most: [string, number] = ["", 0];
  for (const [key, time] of time_parts(second)) {
    const gain = time * scale - (own.get(key) ?? 0);
    if (gain > most[1]) {
      most = [key, gain];
    }
  }
  return most[0] === "" ? most : [part_name(most[0]), most[1]];
}

function nothing_fits(study: StudyResult): [string, string] {
  const overfull = (plan: Plan): number =>
    Math.max(
      (plan.peak_gpu_memory_gib ?? Infinity) / (plan.gpu_memory_capacity_gib ?? 1),
      (plan.peak_host_memory_gib_per_node ?? 0) / (plan.host_memory_capacity_gib_per_node ?? Infinity),
    );
  const nearest = study.plans.filter((plan) => plan.feasible).sort((a, b) => overfull(a) - overfull(b))[0];
  if (nearest === undefined) {
    return ["No plan can run", study.plans[0]?.reasons[0] ?? ""];
  }
  return [
    study.plans.length === 1 ? "It does not fit" : "No plan fits",
    `${nearest.name} is nearest: ${nearest.reasons[0] ?? ""}`,
  ];
}

/** Headline and the sentence below it. */
function answer(study: StudyResult): [string, string] {
  const best = winner(study);
  if (best === undefined) {
    return nothing_fits(study);
  }
  if (is_longest(study)) {
    return [
      `${best.name} trains the longest sequence: ${count(best.max_sequence_length)} tokens`,
      `${seconds(best.step_time_s)} a step; then ${words(best.limit ?? "")
        .replace("gpu-memory", "GPU memory")
        .replace("host-memory", "host memory")} stops it.`,
    ];
  }
  const others = fitting(study)
    .filter((plan) => plan !== best)
    .sort((a, b) => speed(b) - speed(a));
  const second = others[0];
  const tight = best.fit === "risky" ? " Its memory is tight." : "";
  if (second === undefined) {
    return [study.plans.length === 1 ? `${best.name} fits` : `${best.name} is the only plan that fits`, tight.trim()];
  }
  const ratio = speed(best) / speed(second);
  if (ratio < kLevel) {
    return [`${best.name} is first, level with ${second.name}`, `The two are within ${percent(kLevel - 1)}.${tight}`];
  }
  const [name, time] = loss(best, second);
  const why = name === "" ? "" : `, mostly by ${seconds(time)} less ${name}`;
  return [`${best.name} wins`, `${figure(ratio)}× as fast as ${second.name}${why}.${tight}`];
}

function card(value: string, label: string): HTMLElement {
  return h("div", { class: "card" }, h("b", {}, value), h("span", {}, label));
}

/** The few figures that people ask for first. */
export function cards(plan: Plan): HTMLElement {
  return h(
    "div",
    { class: "cards" },
    card(seconds(plan.step_time_s), "a step"),
    card(figure(plan.tokens_per_s_per_gpu), "tokens/s/GPU"),
    card(percent(plan.mfu), "model FLOPs utilisation"),
    card(gib(plan.peak_gpu_memory_gib), `GPU memory of ${gib(plan.gpu_memory_capacity_gib)}`),
    typeof plan.total_days === "number" && card(figure(plan.total_days), "days for the whole run"),
    typeof plan.total_cost === "number" && card(count(plan.total_cost), "cost of the whole run"),
  );
}

export type State = "best" | "fits" | "risky" | "no" | "cannot";

/** A single plan is the best of nothing. */
function leads(study: StudyResult, plan: Plan): boolean {
  return study.plans.length > 1 && plan === winner(study);
}

/** How a plan fares, and the same with its sign. */
export function state_of(study: StudyResult, plan: Plan): [State, string] {
  if (!plan.feasible) {
    return ["cannot", "✕ cannot run"];
  }
  if (plan.fits !== true) {
    return ["no", "✕ does not fit"];
  }
  if (leads(study, plan)) {
    return ["best", "★ best"];
  }
  return plan.fit === "risky" ? ["risky", "△ tight"] : ["fits", "✓ fits"];
}

/** How far a plan that fits is behind the best, and where it loses. */
function behind(best: Plan, plan: Plan): string {
  const ratio = speed(best) / speed(plan);
  if (ratio < kLevel) {
    return `Level with ${best.name}`;
  }
  const [name, time] = loss(best, plan);
  return `${figure(ratio)}× slower than ${best.name}${name === "" ? "" : `: ${seconds(time)} more ${name}`}`;
}

/** What is in the way of a plan, and what would help. */
function binding(study: StudyResult, plan: Plan): HTMLElement {
  const best = winner(study);
  const [state, fits] = state_of(study, plan);
  const text =
    is_longest(study) && plan.fits === true
      ? `${state === "best" ? "★ " : ""}${count(plan.max_sequence_length)} tokens`
      : fits;
  const compares = best !== undefined && plan !== best && plan.fits === true && !is_longest(study) && speed(plan) > 0;
  const lines = [
    compares ? behind(best, plan) : "",
    ...(is_longest(study)
      ? (plan.limit_reasons ?? []).map((why) => `At ${count(plan.next_sequence_length)} tokens it ${why}`)
      : plan.reasons),
    plan.bottleneck ? `Bound by ${plan.bottleneck}` : "",
  ].filter((line) => line !== "");
  return h(
    "li",
    {},
    h(
      "div",
      { class: "plan-head" },
      h("b", {}, plan.name),
      h("span", { class: `state ${is_longest(study) && state === "risky" ? "fits" : state}` }, text),
    ),
    ...lines.map((line) => h("p", {}, line)),
    ...plan.suggestions.map((fix) => h("p", { class: "fix" }, h("b", {}, "Try: "), fix)),
  );
}

export function verdict(study: StudyResult): View {
  const [headline, why] = answer(study);
  const best = winner(study);
  const { scenario } = study;
  const tokens = is_longest(study) ? "" : `${count(scenario.sequence_length)} tokens, `;
  return view(
    "verdict",
    "Verdict",
    `${scenario.model}, ${tokens}${count(scenario.gpus)} × ${scenario.gpu} (${count(scenario.nodes)} × ${scenario.node})`,
    h("p", { class: `headline ${best === undefined ? "bad" : "good"}` }, headline),
    why !== "" && h("p", { class: "why" }, why),
    best !== undefined && cards(best),
    h("ul", { class: "bindings" }, ...study.plans.map((plan) => binding(study, plan))),
    ...study.warnings.map((warning) => h("p", { class: "warning" }, h("b", {}, "Note: "), warning)),
  );
}
