import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import type { SyntaxNode } from '@lezer/common'
import { parser } from '@prometheus-io/lezer-promql'
import { parse } from 'yaml'
import { ERRORS } from '../../src/kernel/errors.ts'
import { SURFACE_NAMES } from '../../src/kernel/vocabulary.ts'
import { STATUS_CLASSES } from '../../src/telemetry/call-counts.ts'
import { startBillingBench } from '../billing/bench-of-one.ts'
import { readOpenMetrics } from '../support/open-metrics.ts'
import { closeAfter, test } from '../support/suite.ts'

const bench = await startBillingBench()
closeAfter(bench)
const { gateway } = bench
const hello = { messages: [{ role: 'user', content: 'Hi' }], max_tokens: 5 }
await bench.call('/v1/messages', { ...hello, model: 'claude-haiku-5-5' })
await bench.call('/v1/chat/completions', { ...hello, model: 'gpt-6-luna' }, { surface: 'chat' })
const scraped = await fetch(`${gateway.url}/metrics`, {
  headers: { authorization: `Bearer ${gateway.adminKey}` },
})
const families = readOpenMetrics(await scraped.text())

/** The labels of each series by name, with those that Prometheus adds. */
const series = new Map<string, Set<string>>([['up', new Set(['job', 'instance'])]])
for (const { samples } of families.values()) {
  for (const { name, labels } of samples) {
    const known = series.get(name) ?? new Set(['job', 'instance'])
    for (const label of Object.keys(labels)) known.add(label)
    series.set(name, known)
  }
}

/** The possible values of labels other than free text. */
const VALUES: Readonly<Record<string, readonly string[]>> = {
  surface: SURFACE_NAMES,
  status_class: STATUS_CLASSES,
  code: Object.keys(ERRORS),
  kind: ['input', 'output', 'cache_read', 'cache_write'],
  state: ['busy', 'idle'],
}

function problemsOf(expression: string): string[] {
  const text = expression.replaceAll('$__rate_interval', '5m').replaceAll('$instance', '.*')
  const problems: string[] = []
  const at = ({ from, to }: { readonly from: number; readonly to: number }) => text.slice(from, to)
  parser.parse(text).iterate({
    enter(node) {
      if (node.type.isError) problems.push(`syntax at ${node.from}: ${text.slice(node.from)}`)
      if (node.name === 'VectorSelector') problems.push(...problemsOfSelector(node.node, at))
      if (node.name === 'GroupingLabels') {
        const known = selectorsIn(node.node, at).flatMap((name) => [...(series.get(name) ?? [])])
        for (const label of node.node.getChildren('LabelName'))
          if (!known.includes(at(label))) problems.push(`nothing has the label ${at(label)}`)
      }
    },
  })
  return problems
}

type Text = (place: { readonly from: number; readonly to: number }) => string

/** The series that `by (…)` groups, which follow it and whose labels it may name. */
function selectorsIn(grouping: SyntaxNode, at: Text): string[] {
  const found: string[] = []
  grouping.parent?.parent?.cursor().iterate((node) => {
    if (node.name === 'VectorSelector') found.push(at(node.node.getChild('Identifier') ?? node))
  })
  return found
}

function problemsOfSelector(selector: SyntaxNode, at: Text): string[] {
  const identifier = selector.getChild('Identifier')
  const name = identifier === null ? '' : at(identifier)
  const labels = series.get(name)
  if (labels === undefined) return [`there is no metric ${name}`]
  const matchers = selector.getChild('LabelMatchers')?.getChildren('UnquotedLabelMatcher') ?? []
  return matchers.flatMap((matcher) => {
    const label = at(matcher.getChild('LabelName') ?? matcher)
    if (!labels.has(label)) return [`${name} has no label ${label}`]
    const values = at(matcher.getChild('StringLiteral') ?? matcher)
      .slice(1, -1)
      .split('|')
    const odd = values.filter((value) => !(VALUES[label]?.includes(value) ?? true))
    return odd.map((value) => `${label} is never ${value}`)
  })
}

const read = (path: string) => readFileSync(new URL(`../../deploy/${path}`, import.meta.url), 'utf8')

test('the check notices a misspelt metric, label or value, and invalid syntax', () => {
  for (const [expression, problem] of [
    ['sum(rate(tollgate_call_total[5m]))', /no metric tollgate_call_total/],
    ['tollgate_calls_total{statusclass="2xx"}', /no label statusclass/],
    ['tollgate_calls_total{status_class=~"none|5XX"}', /never 5XX/],
    ['tollgate_refusals_total{code="budget_exeeded"}', /never budget_exeeded/],
    ['sum by (modell) (tollgate_cost_usd_total)', /label modell/],
    ['sum(rate(tollgate_calls_total[5m])', /syntax/],
    ['tollgate_overhead_seconds > 1', /no metric tollgate_overhead_seconds/],
  ] as const) {
    assert.match(problemsOf(expression).join('\n'), problem, expression)
  }
  assert.deepEqual(problemsOf('sum by (surface, le) (rate(tollgate_overhead_seconds_bucket[5m]))'), [])
})

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

test('every alert has an expression of existing metrics, a severity and two sentences', () => {
  const { groups } = parse(read('prometheus/alerts.yml')) as { groups: { rules: Rule[] }[] }
  const rules = groups.flatMap((group) => group.rules)
  assert.ok(rules.length >= 10)
  for (const { alert, expr, labels, annotations } of rules) {
    assert.deepEqual(problemsOf(expr), [], alert)
    assert.match(labels['severity'] ?? '', /^(?:warning|critical)$/, alert)
    assert.deepEqual(Object.keys(annotations), ['summary', 'description'], alert)
    // A label that the expression has aggregated away would be empty.
    for (const [, label = ''] of Object.values(annotations)
      .join()
      .matchAll(/\$labels\.(\w+)/g))
      assert.ok(/\bby\b/.test(expr) ? expr.includes(label) : label === 'instance', `${alert} shows ${label}`)
  }
  assert.equal(new Set(rules.map(({ alert }) => alert)).size, rules.length)
  for (const subject of ['cost_usd', 'refusals', 'unpriced', 'store_commit', 'webhook_failures', 'overhead'])
    assert.ok(
      rules.some(({ expr }) => expr.includes(`tollgate_${subject}`)),
      subject,
    )
})

interface Panel {
  readonly id: number
  readonly title: string
  readonly type: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[]
}

test('every panel of the board queries existing metrics, and there are at most 12', () => {
  const text = read('grafana/tollgate.json')
  const board = JSON.parse(text) as { panels: Panel[]; templating: unknown; uid: string }
  const asked = board.panels.flatMap(({ title, targets = [] }) =>
    targets.map((target) => ({ title, ...target })),
  )
  for (const { title, expr, legendFormat } of asked) {
    assert.deepEqual(problemsOf(expr), [], `${title}: ${expr}`)
    for (const [, label = ''] of legendFormat.matchAll(/\{\{(\w+)\}\}/g))
      assert.ok(expr.includes(label) || label === 'instance', `${title} shows ${label}`)
  }
  assert.ok(board.panels.length <= 12)
  assert.match(JSON.stringify(board.templating), /label_values\(tollgate_build_info, instance\)/)
  assert.equal(new Set(board.panels.map(({ id }) => id)).size, board.panels.length)
  assert.ok(board.panels.every(({ gridPos: { x, w } }) => x + w <= 24))
  // On import the board asks for a data source, and includes none.
  assert.doesNotMatch(text, /"uid": "(?!tollgate"|\$\{datasource\}")/)
})
