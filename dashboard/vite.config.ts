import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { defineConfig, type Plugin } from 'vite'

const OUT_DIR = '../dist/dashboard'

/** What never changes is compressed once, as well as it can be, and not at every request. */
function precompress(): Plugin {
  return {
    name: 'precompress',
    writeBundle({ dir = OUT_DIR }) {
      for (const name of readdirSync(dir, { recursive: true, encoding: 'utf8' })) {
        if (!/\.(?:html|js|css|svg)$/.test(name)) continue
        const text = readFileSync(join(dir, name))
        const params = { [constants.BROTLI_PARAM_SIZE_HINT]: text.length }
        writeFileSync(join(dir, `${name}.br`), brotliCompressSync(text, { params }))
        writeFileSync(join(dir, `${name}.gz`), gzipSync(text, { level: 9 }))
      }
    },
  }
}

// biome-ignore lint/style/noDefaultExport: Vite reads its configuration from the default export.
export default defineConfig({
  base: '/dashboard/',
  root: import.meta.dirname,
  publicDir: false,
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: OUT_DIR,
    emptyOutDir: true,
    target: 'es2023',
    // light-dark() and @property as they are written: browsers of the last two years have them.
    cssTarget: ['chrome125', 'firefox129', 'safari18'],
    // A file that is inlined as data: would need an exception in the Content-Security-Policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  plugins: [precompress()],
  server: {
    proxy: {
      '/gateway': 'http://127.0.0.1:8787',
      '/v1': 'http://127.0.0.1:8787',
    },
  },
})
