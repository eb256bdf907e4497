import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { SETTING_NAMES, SETTINGS_SCHEMA, VARIABLES } from '../../src/config/schema.ts'

/** Run as a program, it writes the tables of docs/CONFIGURATION.md, the example file and its schema. */

const pathOf = (name: string) => fileURLToPath(new URL(`../../${name}`, import.meta.url))
const textOf = (name: string) => readFileSync(pathOf(name), 'utf8')

interface Description {
  readonly meaning: string
  readonly change: string
  readonly example?: unknown
}
export const DESCRIPTIONS = JSON.parse(textOf('src/config/descriptions.json')) as Readonly<
  Record<string, Description>
>

type Json = Readonly<Record<string, unknown>>
const schemaOf = (schema: z.ZodType) =>
  z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Json

const members = (schema: Json) => (schema['properties'] ?? {}) as Readonly<Record<string, Json>>

function typeOf(schema: Json): string {
  const among = schema['anyOf'] as readonly Json[] | undefined
  if (among !== undefined) return among.map(typeOf).join(' or ')
  const choices = schema['enum'] as readonly string[] | undefined
  if (choices !== undefined) return choices.map((choice) => `\`"${choice}"\``).join(', ')
  const { type, minimum, maximum, items, minLength } = schema
  if (type === 'array') return `list of ${String((items as Json)['type'])}s`
  if (typeof minLength === 'number' && minLength > 1) return `string, ${minLength} characters or more`
  if (typeof minimum !== 'number') return [type].flat().join(' or ')
  return maximum === Number.MAX_SAFE_INTEGER
    ? `${String(type)}, from ${minimum}`
    : `${String(type)}, ${minimum} to ${Number(maximum).toLocaleString('en-US')}`
}

const shown = (value: unknown) =>
  value === undefined || value === null ? '' : `\`${JSON.stringify(value).replaceAll('|', '\\|')}\``

/** A variable is written without the quotes of JSON. */
const shownVariable = (value: unknown) => (value === undefined ? '' : `\`${String(value)}\``)

function describe(name: string): Description {
  const description = DESCRIPTIONS[name]
  if (description === undefined) throw new Error(`src/config/descriptions.json does not describe ${name}`)
  return description
}

function variableTable(): string {
  const rows = Object.entries(VARIABLES).map(([name, schema]) => {
    const { meaning, change, example } = describe(name)
    const fallback = schema instanceof z.ZodDefault ? schema.def.defaultValue : undefined
    const type =
      name === 'TOLLGATE_PORT' ? 'integer, 0 to 65,535' : typeOf(schemaOf(schema)).replaceAll(/`"|"`/g, '`')
    return `| \`${name}\` | ${type} | ${shownVariable(fallback)} | ${shownVariable(example)} | ${meaning} ${change} |`
  })
  return [
    '| Variable | Type | Default | Example | Meaning, and when to set it |',
    '|---|---|---|---|---|',
    ...rows,
  ].join('\n')
}

const file = schemaOf(SETTINGS_SCHEMA)
function settingOf(name: string): Json {
  const found = name
    .split('.')
    .reduce<Json | undefined>((within, part) => within && members(within)[part], file)
  if (found === undefined) throw new Error(`${name} is not in the schema`)
  return found
}

function settingTable(): string {
  const rows = SETTING_NAMES.map((name) => {
    const { meaning, change, example } = describe(name)
    const setting = settingOf(name)
    return `| \`${name}\` | ${typeOf(setting)} | ${shown(setting['default'])} | ${shown(example)} | ${meaning} ${change} |`
  })
  return [
    '| Setting | Type | Default | Example | Meaning, and when to change it |',
    '|---|---|---|---|---|',
    ...rows,
  ].join('\n')
}

function page(): string {
  const tables: Readonly<Record<string, string>> = { variables: variableTable(), settings: settingTable() }
  return textOf('docs/CONFIGURATION.md').replaceAll(
    /(<!-- (variables|settings): [^\n]*-->\n\n)(?:\|[^\n]*\n)*\n?/g,
    (_, head: string, name: string) => `${head}${tables[name] ?? ''}\n\n`,
  )
}

function exampleFile(): string {
  const example: Record<string, unknown> = { $schema: './tollgate.schema.json' }
  for (const [name, schema] of Object.entries(members(file))) {
    const inner = Object.keys(members(schema))
    if (inner.length === 0) Object.assign(example, commented(name, name))
    else example[name] = Object.assign({}, ...inner.map((key) => commented(key, `${name}.${key}`)))
  }
  return `${JSON.stringify(example, null, 2)}\n`
}

function commented(key: string, name: string): Json {
  const { meaning, change, example } = describe(name)
  const shownExample = example === undefined ? '' : ` Example: ${JSON.stringify(example)}`
  return { [`// ${key}`]: `${meaning} ${change}${shownExample}`, [key]: settingOf(name)['default'] }
}

/** The schema for editors: descriptions, and the comments that the loader drops. */
function schemaFile(): string {
  const comments = { '^//': { type: 'string' } }
  const properties = Object.entries(members(file)).map(([name, schema]) => {
    const inner = members(schema)
    if (Object.keys(inner).length === 0) return [name, described(name, schema)]
    const settings = Object.entries(inner).map(([key, each]) => [key, described(`${name}.${key}`, each)])
    return [name, { ...schema, properties: Object.fromEntries(settings), patternProperties: comments }]
  })
  const whole = {
    ...file,
    title: 'tollgate.json, the configuration file of Tollgate',
    properties: { $schema: { type: 'string' }, ...Object.fromEntries(properties) },
    patternProperties: comments,
  }
  return `${JSON.stringify(whole, null, 2)}\n`
}

function described(name: string, schema: Json): Json {
  const { meaning, change, example } = describe(name)
  return {
    description: `${meaning} ${change}`,
    ...schema,
    ...(example === undefined ? {} : { examples: [example] }),
  }
}

export function configurationFiles(): Readonly<Record<string, string>> {
  return {
    'docs/CONFIGURATION.md': page(),
    'tollgate.example.json': exampleFile(),
    'tollgate.schema.json': schemaFile(),
  }
}

if (import.meta.main)
  for (const [name, text] of Object.entries(configurationFiles())) writeFileSync(pathOf(name), text)
