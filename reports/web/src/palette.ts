// Colours that stay apart for colour-blind readers: Okabe and Ito, "Color Universal Design" (2008), a little lighter on
// dark ground. Where a colour tells what something is, a pattern, a letter or a label tells it too.
import { theme } from "./theme";

export interface Palette {
  ground: string;
  text: string;
  muted: string;
  line: string;
  good: string;
  warning: string;
  bad: string;
  /** Where there is nothing to compare: a cell in which no plan fits. */
  empty: string;
  series: readonly string[];
}

const kLight: Palette = {
  ground: "#ffffff",
  text: "#1b1f24",
  muted: "#57606a",
  line: "#d0d7de",
  good: "#007a59",
  warning: "#8a5a00",
  bad: "#b3400e",
  empty: "#e6e9ed",
  series: ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#7a7f87"],
};

const kDark: Palette = {
  ground: "#14181d",
  text: "#e6e9ed",
  muted: "#a3adb8",
  line: "#3a424b",
  good: "#3ecf9f",
  warning: "#f0b83c",
  bad: "#ff8c57",
  empty: "#2a3037",
  series: ["#3f9bd6", "#efb036", "#2bbd90", "#dc95bd", "#8accf2", "#ec7f3c", "#efe66b", "#9aa1a9"],
};

export function palette(): Palette {
  return theme() === "dark" ? kDark : kLight;
}

function channels(colour: string): number[] {
  return [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
}

/** Half way from one colour to another. */
function mixed(one: string, other: string): string {
  const ends = channels(other);
  return `#${channels(one)
    .map((from, at) =>
      Math.round((from + (ends[at] ?? from)) / 2)
        .toString(16)
        .padStart(2, "0"),
    )
    .join("")}`;
}

/** The colour of the n-th of several things that have no colour of their own. When the colours are used up they come
 * again, nearer to that of the text. */
export function series_colour(index: number): string {
  const { series, text, muted } = palette();
  const colour = series[index % series.length] ?? muted;
  return index < series.length ? colour : mixed(colour, text);
}

/** Diagonal lines: the GPU waits. Also tells the second round of colours from the first. */
export function hatch(ground: string): object {
  return {
    symbol: "rect",
    color: ground,
    dashArrayX: [1, 0],
    dashArrayY: [2, 4],
    rotation: -Math.PI / 4,
  };
}

/** White or near-black, whichever reads better on a filled cell (relative luminance, WCAG 2). */
export function text_on(colour: string): string {
  const [r = 0, g = 0, b = 0] = channels(colour)
    .map((value) => value / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.2 ? "#14181d" : "#ffffff";
}
