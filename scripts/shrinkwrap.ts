import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Writes npm-shrinkwrap.json beside package.json: package-lock.json without what only developers install, so that
 * the package says which dependencies it has, with their checksums.
 */
interface Lock {
  readonly packages: Readonly<Record<string, { readonly dev?: true; readonly devDependencies?: object }>>
}

const root = join(import.meta.dirname, '..')
const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as Lock
const { devDependencies: _, ...own } = lock.packages[''] ?? {}
const installed = Object.entries(lock.packages).filter(([path, { dev }]) => path !== '' && dev !== true)
const packages = { '': own, ...Object.fromEntries(installed) }
writeFileSync(join(root, 'npm-shrinkwrap.json'), `${JSON.stringify({ ...lock, packages }, null, 2)}\n`)
