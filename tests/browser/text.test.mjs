// Do numbers read as people write them, and do CSV cells survive spreadsheets? Without a browser.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";

import { require_there, web } from "./support.mjs";

/** A module of the page, for node. */
async function module_of(name) {
  const { outputFiles } = require_there("esbuild").buildSync({
    entryPoints: [join(web, "src", name)],
    bundle: true,
    format: "esm",
    write: false,
  });
  return import(
    `data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`
  );
}

const format = await module_of("format.ts");
const { csv } = await module_of("csv.ts");

function reads(convert, cases) {
  for (const [value, text] of cases) {
    assert.equal(convert(value), text, `of ${value}`);
  }
}

test("figures have three significant digits below a thousand, commas above", () => {
  reads(format.figure, [
    [0, "0"],
    [0.0123, "0.0123"],
    [1.5, "1.50"],
    [45.64, "45.6"],
    [999.4, "999"],
    [999.6, "1,000"],
    [-1234567, "-1,234,567"],
    [2e-7, "2.00e-7"],
  ]);
});

test("what is missing is a dash in every format", () => {
  for (const convert of [
    format.figure,
    format.count,
    format.seconds,
    format.gib,
    format.bytes,
    format.percent,
  ]) {
    reads(convert, [
      [null, "–"],
      [undefined, "–"],
      [NaN, "–"],
    ]);
  }
});

test("times take the unit in which they are at least one, also after rounding", () => {
  reads(format.seconds, [
    [0, "0 s"],
    [297.8, "298 s"],
    [1, "1.00 s"],
    [0.9999, "1.00 s"],
    [0.066, "66.0 ms"],
    [12.3e-6, "12.3 µs"],
    [5e-10, "0.500 ns"],
  ]);
});

test("memory is binary, volumes are decimal", () => {
  reads(format.gib, [
    [0, "0 GiB"],
    [30.94, "30.9 GiB"],
    [1126.4, "1.10 TiB"],
    [0.125, "128 MiB"],
  ]);
  reads(format.bytes, [
    [225485783040, "225 GB"],
    [1e12, "1.00 TB"],
    [999.9e9, "1.00 TB"],
  ]);
  reads(format.short_bytes, [
    [5e11, "500 GB"],
    [1.5e12, "1.5 TB"],
  ]);
});

test("shares", () => {
  reads(format.percent, [
    [0.387, "38.7%"],
    [0.0027, "0.27%"],
    [0, "0.0%"],
    [-0.05, "-5.0%"],
  ]);
});

test("lengths on axes: whole binary multiples as such, else decimal", () => {
  reads(format.short_count, [
    [131072, "128Ki"],
    [1048576, "1Mi"],
    [1179648, "1.125Mi"],
    [3121152, "3.12M"],
    [1e6, "1M"],
    [500, "500"],
    [5e11, "500G"],
  ]);
  reads(format.short_value, [
    ["1048576", "1Mi"],
    ["64", "64"],
    ["400Gb/s", "400Gb/s"],
  ]);
});

test("CSV: RFC 4180 quoting and line ends", () => {
  assert.equal(
    csv(
      ["a", 'b "x"'],
      [
        ["1,2", "two\nlines"],
        [3.5, null],
      ],
    ),
    'a,"b ""x"""\r\n"1,2","two\nlines"\r\n3.5,\r\n',
  );
});

test("CSV: text that a spreadsheet would run gets an apostrophe; numbers stay numbers", () => {
  assert.equal(
    csv(["=cmd()"], [["+1"], ["-x"], ["@a"], ["\tb"], [-1], ["a=b"]]),
    "'=cmd()\r\n'+1\r\n'-x\r\n'@a\r\n'\tb\r\n-1\r\na=b\r\n",
  );
});
