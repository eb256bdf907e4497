import assert from 'node:assert/strict'

export interface Family {
  readonly type: string
  readonly help: string
  readonly samples: readonly Sample[]
}

export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** The suffixes that sample names add to the name of their family, by type. */
const SUFFIXES: Readonly<Record<string, readonly string[]>> = {
  gauge: [''],
  counter: ['_total'],
  histogram: ['_bucket', '_sum', '_count'],
  summary: ['', '_sum', '_count'],
}

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*'
const LABEL = '[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\\\\n]|\\\\[\\\\"n])*"'
const SAMPLE = new RegExp(`^(${NAME})(?:\\{(${LABEL}(?:,${LABEL})*)?\\})? (\\S+)$`)
const NUMBER = /^(?:[+-]?\d+(?:\.\d*)?(?:e[+-]?\d+)?|[+-]Inf|NaN)$/

/** Parses the OpenMetrics text format, and fails on any line that breaks its rules. Families by name. */
export function readOpenMetrics(text: string): ReadonlyMap<string, Family> {
  assert.ok(text.endsWith('\n# EOF\n'), 'it ends with # EOF')
  const families = new Map<string, { name: string; type: string; help: string; samples: Sample[] }>()
  let current = { name: '', type: '', help: '', samples: [] as Sample[] }
  for (const line of text.slice(0, -'# EOF\n'.length).split('\n').slice(0, -1)) {
    const [, word, name = '', rest = ''] = new RegExp(`^# (HELP|TYPE|UNIT) (${NAME}) (.*)$`).exec(line) ?? []
    if (word !== undefined) {
      if (current.name !== name) {
        assert.ok(!families.has(name), `${name} is duplicated, or not next to its samples`)
        current = { name, type: 'unknown', help: '', samples: [] }
        families.set(name, current)
      }
      assert.equal(current.samples.length, 0, `${line} comes after samples`)
      if (word === 'TYPE') current.type = rest
      if (word === 'HELP') current.help = rest
      continue
    }
    assert.ok(!line.startsWith('#'), `not a line of metadata: ${line}`)
    const [, sampleName = '', labels = '', value = ''] = SAMPLE.exec(line) ?? []
    assert.notEqual(sampleName, '', `not a sample: ${line}`)
    assert.match(value, NUMBER, line)
    const suffixes = SUFFIXES[current.type]
    assert.ok(suffixes !== undefined, `${current.name} has the type ${current.type}`)
    const { name: family } = current
    assert.ok(
      suffixes.some((suffix) => sampleName === family + suffix),
      `${sampleName} is no sample of ${family}, a ${current.type}`,
    )
    current.samples.push({
      name: sampleName,
      labels: readLabels(labels),
      value: Number(value.replace('Inf', 'Infinity')),
    })
  }
  return families
}

function readLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {}
  for (const [, name = '', value = ''] of text.matchAll(/([a-zA-Z0-9_]+)="((?:[^"\\]|\\.)*)"/g)) {
    assert.ok(!(name in labels), `the label ${name} is given twice`)
    labels[name] = value.replace(/\\(.)/g, (_, c: string) => (c === 'n' ? '\n' : c))
  }
  return labels
}

export function sumOf(
  families: ReadonlyMap<string, Family>,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number {
  const samples = [...families.values()].flatMap((family) => family.samples)
  return samples
    .filter((sample) => sample.name === name)
    .filter((sample) => Object.entries(labels).every(([label, value]) => sample.labels[label] === value))
    .reduce((sum, { value }) => sum + value, 0)
}
