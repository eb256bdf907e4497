import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** `node scripts/release-notes.ts v0.1.0` prints the section of the changelog, if this version can be released. */
const [, , tag = ''] = process.argv
const root = join(import.meta.dirname, '..')
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
const sections = readFileSync(join(root, 'CHANGELOG.md'), 'utf8').split(/^## /m)
const [title = '', ...lines] = sections.find((text) => text.startsWith(`${version} `))?.split('\n') ?? []

const problem =
  tag !== `v${version}`
    ? `The tag ${tag} is not v${version}, the version of package.json. Tag the commit that sets the version.`
    : !/ \(\d{4}-\d\d-\d\d\)$/.test(title)
      ? `CHANGELOG.md has no section "${version} (YYYY-MM-DD)". Write the date of the release into its title.`
      : null
if (problem === null) process.stdout.write(`${lines.join('\n').trim()}\n`)
else {
  process.stderr.write(`${problem}\n`)
  process.exitCode = 1
}
