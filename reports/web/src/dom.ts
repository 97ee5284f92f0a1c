// The only way elements are made. Text becomes text nodes, so that no name from a file is ever read as HTML.

export type Child = Node | string | null | undefined | false;

export interface Attributes {
  on?: Partial<{ [K in keyof HTMLElementEventMap]: (event: HTMLElementEventMap[K]) => void }>;
  [attribute: string]: unknown;
}

function set_attribute(element: Element, name: string, value: unknown): void {
  if (value === true) {
    element.setAttribute(name, "");
  } else if (typeof value === "string" || typeof value === "number") {
    element.setAttribute(name, String(value));
  }
}

/** An element with attributes, listeners (`on`) and children; undefined, null and false are left out. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name !== "on") {
      set_attribute(element, name, value);
    }
  }
  for (const [event, listener] of Object.entries(attributes.on ?? {})) {
    element.addEventListener(event, listener as EventListener);
  }
  for (const child of children) {
    if (child !== null && child !== undefined && child !== false) {
      element.append(child);
    }
  }
  return element;
}

/** Starts the download of a text as a file. */
export function download(name: string, type: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = h("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  // The browser has taken the blob by the time of the next task.
  setTimeout(() => {
    URL.revokeObjectURL(url);
  });
}

/** A labelled choice of one of several; `choose` gets the index. */
export function choice(
  label: string,
  options: readonly string[],
  chosen: number,
  choose: (index: number) => void,
): HTMLElement {
  const select = h("select", {
    on: {
      change: () => {
        choose(select.selectedIndex);
      },
    },
  });
  options.forEach((option, index) => {
    select.append(h("option", { value: index, selected: index === chosen }, option));
  });
  return h("label", { class: "choice" }, h("span", {}, label), select);
}
