import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { VERSION } from '../../src/kernel/runtime.ts'
import { routes } from '../../src/management/endpoints.ts'
import { openApiDocument } from '../../src/management/openapi.ts'
import { root } from '../style/source-tree.ts'
import { breakingChanges } from './breaking-changes.ts'

/** `node test/docs/openapi-document.ts` writes docs/openapi.json, unless the changelog keeps quiet about what breaks clients. */

const FILE = join(root, 'docs/openapi.json')
export const current = `${JSON.stringify(openApiDocument(routes, { version: VERSION, servicePrefix: 'svc' }), null, 1)}\n`
export const committed = readFileSync(FILE, 'utf8')

/** Breaking changes that CHANGELOG.md does not name. Before the first release, nobody depends on the API. */
export function unannounced(): readonly string[] {
  const changelog = readFileSync(join(root, 'CHANGELOG.md'), 'utf8')
  if (!/^## \d+\.\d+\.\d+ \(\d{4}/m.test(changelog)) return []
  return breakingChanges(JSON.parse(committed), JSON.parse(current)).filter(
    (change) => !changelog.includes(change),
  )
}

if (import.meta.main) {
  const missing = unannounced()
  if (missing.length === 0) writeFileSync(FILE, current)
  else {
    process.stderr.write(
      `These changes break clients. Name them in CHANGELOG.md:\n- ${missing.join('\n- ')}\n`,
    )
    process.exitCode = 1
  }
}
