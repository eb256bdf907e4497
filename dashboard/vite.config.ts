import { basename } from 'node:path'
import { defineConfig } from 'vite'

// The default export is where Vite looks for its configuration; biome.json allows it here.
export default defineConfig({
  base: '/dashboard/',
  root: import.meta.dirname,
  publicDir: false,
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  // Names that a person can read in the browser's tools, and that tests can use: `table_figure`.
  css: {
    modules: {
      generateScopedName: (name, file) => `${basename(file.split('?')[0] ?? '', '.module.css')}_${name}`,
    },
  },
  build: {
    outDir: '../dist/dashboard',
    emptyOutDir: true,
    target: 'es2023',
    // light-dark() and @property stay as they are written: browsers of the last two years have them.
    cssTarget: ['chrome125', 'firefox129', 'safari18'],
    // A file that is inlined as data: would need an exception in the Content-Security-Policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: {
    proxy: {
      '/gateway': 'http://127.0.0.1:8787',
      '/v1': 'http://127.0.0.1:8787',
    },
  },
})
