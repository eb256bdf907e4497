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

/** The suffixes that names of samples have behind the name of their family, by type. */
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

/** Reads the OpenMetrics text format by its rules, and fails on any line that breaks one. Families by name. */
export function readOpenMetrics(text: string): ReadonlyMap<string, Family> {
  assert.ok(text.endsWith('\n# EOF\n'), 'it ends with # EOF')
  const families = new Map<string, { name: string; type: string; help: string; samples: Sample[] }>()
  let current = { name: '', type: '', help: '', samples: [] as Sample[] }
  for (const line of text.slice(0, -'# EOF\n'.length).split('\n').slice(0, -1)) {
    const [, word, name = '', rest = ''] = new RegExp(`^# (HELP|TYPE|UNIT) (${NAME}) (.*)$`).exec(line) ?? []
    if (word !== undefined) {
      if (current.name !== name) {
        assert.ok(!families.has(name), `${name} is there twice, or apart`)
        current = { name, type: 'unknown', help: '', samples: [] }
        families.set(name, current)
      }
      assert.equal(current.samples.length, 0, `${line} stands behind samples`)
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
  for (const [name, family] of families) checkFamily(name, family)
  return families
}

function readLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {}
  for (const [, name = '', value = ''] of text.matchAll(/([a-zA-Z0-9_]+)="((?:[^"\\]|\\.)*)"/g)) {
    assert.ok(!(name in labels), `the label ${name} is there twice`)
    labels[name] = value.replace(/\\(.)/g, (_, c: string) => (c === 'n' ? '\n' : c))
  }
  return labels
}

function checkFamily(name: string, { type, samples }: Family): void {
  const seen = new Set<string>()
  for (const sample of samples) {
    const identity = JSON.stringify([sample.name, Object.entries(sample.labels).sort()])
    assert.ok(!seen.has(identity), `the same sample twice: ${identity}`)
    seen.add(identity)
    if (type === 'counter') assert.ok(sample.value >= 0, `${identity} is ${sample.value}`)
  }
  if (type === 'histogram') checkHistogram(name, samples)
}

/** Buckets rise and end with +Inf, which equals the count. */
function checkHistogram(name: string, samples: readonly Sample[]): void {
  const without = ({ le: _, ...labels }: Readonly<Record<string, string>>) => JSON.stringify(labels)
  for (const [labels, group] of Map.groupBy(samples, (sample) => without(sample.labels))) {
    const buckets = group.filter((sample) => sample.name === `${name}_bucket`)
    const bounds = buckets.map((bucket) => Number((bucket.labels['le'] ?? '').replace('Inf', 'Infinity')))
    assert.equal(bounds.at(-1), Infinity, `${name}${labels} ends with +Inf`)
    assert.ok(
      bounds.every((bound, i) => i === 0 || bound > (bounds[i - 1] ?? 0)),
      `${name}${labels} rises`,
    )
    const counts = buckets.map(({ value }) => value)
    assert.ok(
      counts.every((count, i) => i === 0 || count >= (counts[i - 1] ?? 0)),
      `${name}${labels} adds up`,
    )
    const one = (suffix: string) => group.filter((sample) => sample.name === name + suffix)
    assert.equal(one('_count').length, 1)
    assert.equal(one('_sum').length, 1)
    assert.equal(one('_count')[0]?.value, counts.at(-1))
  }
}

/** The sum of all samples of that name that have these labels. */
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
