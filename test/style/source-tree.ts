import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../../', import.meta.url))

export interface SourceFile {
  readonly path: string
  readonly text: string
  /** Our files that the file imports, as repository paths; type-only imports count too. */
  readonly imports: readonly string[]
  readonly packages: readonly string[]
}

export function readSourceTree(...folders: string[]): SourceFile[] {
  return folders.flatMap((folder) => {
    const names = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    return names.filter((name) => /\.tsx?$/.test(name)).map((name) => readSource(join(folder, name)))
  })
}

function readSource(path: string): SourceFile {
  const text = readFileSync(join(root, path), 'utf8')
  const imports: string[] = []
  const packages: string[] = []
  const statements = /^(?:import|export)\b[^'"]*?from\s+['"]([^'"]+)['"]|import\(\s*['"]([^'"]+)['"]\s*\)/gm
  for (const [, fixed, dynamic] of text.matchAll(statements)) {
    const specifier = fixed ?? dynamic ?? ''
    if (specifier.startsWith('.')) imports.push(relative(root, resolve(root, dirname(path), specifier)))
    else packages.push(specifier)
  }
  return { path, text, imports, packages }
}
