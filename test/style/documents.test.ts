import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ENVIRONMENT_HELP } from '../../src/cli/command.ts'
import { CLIENT_VARIABLES, ConfigError, readConfig } from '../../src/config/read-config.ts'
import { test } from '../support/suite.ts'
import { root } from './source-tree.ts'

const documents = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', ...globSync('docs/*.md', { cwd: root })]
const textOf = (path: string) => readFileSync(join(root, path), 'utf8')
/** The variables of the gateway, without those that clients of the examples export. */
const variablesIn = (text: string) =>
  new Set(text.match(/\bTOLLGATE_[A-Z_]+\b/g)?.filter((name) => !CLIENT_VARIABLES.includes(name)))

test('every variable named in a document or in the help exists and is named in both', () => {
  const inPage = variablesIn(textOf('docs/CONFIGURATION.md'))
  const inHelp = variablesIn(ENVIRONMENT_HELP)
  for (const path of documents) {
    for (const name of variablesIn(textOf(path)))
      assert.ok(inHelp.has(name), `${path} names ${name}, the help does not`)
  }
  for (const name of inHelp) assert.ok(inPage.has(name), `the help names ${name}, CONFIGURATION.md does not`)
  for (const name of inHelp) {
    // An unknown name is refused with these words; a known one may be refused for its value.
    try {
      readConfig({ [name]: '%' }, '/nonexistent')
    } catch (error) {
      assert.ok(error instanceof ConfigError)
      assert.ok(!error.problems.some((problem) => problem.includes('is not a variable')), name)
    }
  }
})

test('every file and heading that a document links to exists', () => {
  for (const path of documents) {
    for (const [, target = '', anchor] of textOf(path).matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)/g)) {
      const file = target === '' ? path : join(dirname(path), target)
      assert.ok(existsSync(join(root, file)), `${path} links to ${target}`)
      if (anchor !== undefined)
        assert.ok(anchorsOf(textOf(file)).includes(anchor), `${path} links to ${target}#${anchor}`)
    }
  }
})

test('every picture of the docs is shown in a document, because the package contains them all', () => {
  const texts = documents.map(textOf).join('\n')
  for (const file of globSync('docs/**/*.{png,svg}', { cwd: root }))
    assert.ok(texts.includes(file.replace(/^docs\//, '')), `no document shows ${file}`)
})

/** As GitHub derives them: lower case, spaces to hyphens, only letters, digits and hyphens. */
function anchorsOf(text: string): string[] {
  const outside = text.replaceAll(/^```[\s\S]*?^```$/gm, '')
  return Array.from(outside.matchAll(/^#+ (.+)$/gm), ([, title = '']) =>
    title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  )
}

test('every file that a document names exists, except for the example surface', () => {
  const named = /`((?:[\w-]+\/)+[\w.-]+\.(?:tsx?|json))`/g
  for (const path of documents) {
    for (const [, file = ''] of textOf(path).matchAll(named)) {
      // Some pages omit the leading src.
      const isThere = ['', 'src'].some((folder) => existsSync(join(root, folder, file)))
      if (!file.includes('/gemini/')) assert.ok(isThere, `${path} names ${file}`)
    }
  }
})
