import eslint from "@eslint/js";
import { fileURLToPath } from "node:url";
import tseslint from "typescript-eslint";

const htmlFromText = "Names come from files: insert them as text nodes (see src/dom.ts), never as HTML.";

export default tseslint.config(
  { ignores: ["node_modules", "dist"] },
  eslint.configs.recommended,
  {
    files: ["src/**/*.ts"],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: {
      parserOptions: { project: "./tsconfig.json", tsconfigRootDir: fileURLToPath(new URL(".", import.meta.url)) },
    },
    rules: {
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      eqeqeq: "error",
      "no-restricted-properties": [
        "error",
        { property: "innerHTML", message: htmlFromText },
        { property: "outerHTML", message: htmlFromText },
        { property: "insertAdjacentHTML", message: htmlFromText },
        { object: "document", property: "write", message: htmlFromText },
      ],
    },
  },
  {
    files: ["*.mjs", "*.js"],
    languageOptions: { globals: { process: "readonly", console: "readonly", URL: "readonly" } },
  },
);
