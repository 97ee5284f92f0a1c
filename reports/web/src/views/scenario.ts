// What was asked: the scenario as text to copy, and the options of each plan.
import { download, h } from "../dom";
import { view, type View } from "../figure";
import type { Plan, Scenario } from "../result";
import { table } from "../table";

/** The clipboard where the browser gives it to this page, else the old way by a selection. */
async function copy(text: string, shown: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection()?.selectAllChildren(shown);
    // eslint-disable-next-line @typescript-eslint/no-deprecated -- there is no other way without the clipboard's permission
    return document.execCommand("copy");
  }
}

function text_block(name: string, text: string): HTMLElement {
  const shown = h("pre", { class: "scenario", tabindex: "0", "aria-label": "Scenario as YAML" }, text);
  const said = h("span", { role: "status" });
  const button = h(
    "button",
    {
      type: "button",
      on: {
        click: () => {
          void copy(text, shown).then((done) => {
            said.textContent = done ? "Copied." : "Select the text and copy it.";
          });
        },
      },
    },
    "Copy scenario",
  );
  const save = h(
    "button",
    {
      type: "button",
      on: {
        click: () => {
          download(`${name}.yaml`, "application/yaml", text);
        },
      },
    },
    "Download YAML",
  );
  return h("div", {}, h("div", { class: "controls" }, button, save, said), shown);
}

/** Keys of which the plans have different values. */
function differing(plans: readonly Plan[]): string[] {
  const keys = [...new Set(plans.flatMap((plan) => Object.keys(plan.options ?? {})))];
  const known = (key: string): string[] => plans.flatMap((plan) => plan.options?.[key] ?? []);
  return keys.filter((key) => new Set(known(key)).size > 1);
}

interface OptionRow {
  key: string;
  differs: boolean;
}

function options_table(plans: readonly Plan[]): HTMLElement | null {
  const differ = differing(plans);
  const keys = [...new Set(plans.flatMap((plan) => Object.keys(plan.options ?? {})))];
  if (keys.length === 0) {
    return null;
  }
  // What differs stands first.
  const rows: OptionRow[] = [...differ, ...keys.filter((key) => !differ.includes(key))].map((key) => ({
    key,
    differs: differ.includes(key),
  }));
  return table({
    caption: "Options of the plans",
    file: "options",
    columns: [
      { title: "option", key: "option", value: (row) => row.key },
      ...(plans.length > 1
        ? [
            {
              title: "differs",
              key: "differs",
              value: (row: OptionRow) => (row.differs ? "yes" : ""),
              text: (row: OptionRow) => (row.differs ? "≠" : ""),
            },
          ]
        : []),
      ...plans.map((plan) => ({
        title: plan.name,
        key: plan.name,
        value: (row: OptionRow) => plan.options?.[row.key],
      })),
    ],
    rows,
  });
}

export function scenario_view(scenario: Scenario, plans: readonly Plan[]): View | null {
  const options = options_table(plans);
  if (scenario.text === undefined && options === null) {
    return null;
  }
  return view(
    "scenario",
    "The scenario",
    "",
    scenario.text !== undefined && text_block(scenario.name, scenario.text),
    options !== null && h("h3", {}, "Options in force"),
    options,
  );
}
