import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { readConfig } from '../../src/config/read-config.ts'
import { SETTING_NAMES, VARIABLES } from '../../src/config/schema.ts'
import { root } from '../style/source-tree.ts'
import { test } from '../support/suite.ts'
import { configurationFiles, DESCRIPTIONS } from './configuration-page.ts'

const textOf = (name: string) => readFileSync(join(root, name), 'utf8')

test('the tables of docs/CONFIGURATION.md, the example file and its schema are up to date', () => {
  for (const [name, text] of Object.entries(configurationFiles()))
    assert.equal(textOf(name), text, `run \`node test/docs/configuration-page.ts\` and commit ${name}`)
})

test('exactly the existing variables and settings are described', () => {
  assert.deepEqual(Object.keys(DESCRIPTIONS).sort(), [...Object.keys(VARIABLES), ...SETTING_NAMES].sort())
})

test('the example file changes no default, and its comments are skipped', () => {
  const config = readConfig({ TOLLGATE_CONFIG: 'tollgate.example.json' }, root)
  assert.deepEqual(config, readConfig({}, root))
})

test('the schema for editors accepts the example file and reports wrong settings', () => {
  const check = new Ajv2020({ strict: false }).compile(JSON.parse(textOf('tollgate.schema.json')))
  const example = JSON.parse(textOf('tollgate.example.json'))
  assert.ok(check(example), JSON.stringify(check.errors))
  assert.equal(check({ budgets: { mod: 'exact' } }), false)
  assert.equal(check({ budgets: { wait_seconds: '30' } }), false)
})
