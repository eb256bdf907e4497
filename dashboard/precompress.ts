import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

/**
 * Puts a `.br` and a `.gz` beside every file of the build that gets smaller by it. The gateway sends these files as they
 * are: the best compression takes a second, which at build time takes no CPU from calls.
 */

const built = join(import.meta.dirname, '../dist/dashboard')
const COMPRESSIBLE = /\.(?:html|js|css|svg|json)$/

for (const name of readdirSync(built, { recursive: true, encoding: 'utf8' })) {
  const path = join(built, name)
  if (!COMPRESSIBLE.test(name) || !statSync(path).isFile()) continue
  const plain = readFileSync(path)
  const brotli = brotliCompressSync(plain, {
    params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: plain.length },
  })
  const gzip = gzipSync(plain, { level: 9 })
  for (const [ending, bytes] of [['.br', brotli] as const, ['.gz', gzip] as const]) {
    if (bytes.length < plain.length) writeFileSync(path + ending, bytes)
  }
}
