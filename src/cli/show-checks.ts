import type { Check } from '../doctor/check.ts'
import type { Look, Style } from './look.ts'
import { shownText } from './shown-text.ts'

type State = Check['state']

const MARKS: Readonly<Record<State, string>> = { ok: '✓', warning: '!', problem: '✗', skipped: '-' }
const STYLES: Readonly<Record<State, Style>> = {
  ok: 'green',
  warning: 'yellow',
  problem: 'red',
  skipped: 'dim',
}
const STATE_WIDTH = 9
const NAME_WIDTH = 19
const TEXT_WIDTH_MAX = 2_000

/** Marks are for people; a program that reads the lines gets words. */
export function showCheck(check: Check, look: Look): string {
  const state = look.isTerminal ? `${MARKS[check.state]} ` : check.state.padEnd(STATE_WIDTH)
  const name = check.name.replaceAll('_', ' ').padEnd(NAME_WIDTH)
  const first = `${look.paint(STYLES[check.state], state)}${name}${shown(check.found)}\n`
  if (check.todo === null) return first
  const indent = ' '.repeat(state.length + NAME_WIDTH)
  return `${first}${indent}${look.isTerminal ? '→' : 'to do:'} ${shown(check.todo)}\n`
}

export function showSummary(checks: readonly Check[], look: Look): string {
  const counted = (['problem', 'warning'] as const)
    .map((state) => ({ state, count: checks.filter((check) => check.state === state).length }))
    .filter(({ count }) => count > 0)
  if (counted.length === 0) return `\n${look.paint('green', 'Nothing to mend.')}\n`
  const text = counted.map(({ state, count }) => `${count} ${state}${count === 1 ? '' : 's'}`).join(', ')
  return `\n${look.paint(STYLES[counted[0]?.state ?? 'ok'], `${text}.`)}\n`
}

export function checksAsJson(checks: readonly Check[]): string {
  const plain = checks.map(({ name, state, found, todo }) => ({
    name,
    state,
    found: shown(found),
    todo: todo === null ? null : shown(todo),
  }))
  return `${JSON.stringify({ object: 'doctor', ok: !hasProblem(checks), checks: plain }, null, 2)}\n`
}

export function hasProblem(checks: readonly Check[]): boolean {
  return checks.some(({ state }) => state === 'problem')
}

function shown(text: string): string {
  return shownText(text, TEXT_WIDTH_MAX)
}
