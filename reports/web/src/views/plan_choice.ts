// Views of one plan: which one is shown.
import { choice } from "../dom";
import type { Plan, StudyResult } from "../result";

export class PlanChoice {
  private index: number;

  /** `plans` is not empty; the winner is shown first where it is among them. */
  constructor(
    study: StudyResult,
    private readonly plans: readonly Plan[],
  ) {
    this.index = Math.max(
      0,
      plans.findIndex((plan) => plan.name === study.winner),
    );
  }

  get plan(): Plan {
    const plan = this.plans[this.index] ?? this.plans[0];
    if (plan === undefined) {
      throw new Error("a choice among no plans");
    }
    return plan;
  }

  /** null where there is nothing to choose. */
  control(changed: () => void): HTMLElement | null {
    const names = this.plans.map((plan) => plan.name);
    return names.length < 2
      ? null
      : choice("Plan", names, this.index, (index) => {
          this.index = index;
          changed();
        });
  }
}
