import type { Check } from '../doctor/check.ts'

/** How a report looks: marks and colours are for people, words for programs that read lines. */
export interface Look {
  readonly marks: boolean
  readonly colour: boolean
}

const MARKS: Readonly<Record<Check['state'], string>> = { ok: '✓', warning: '!', problem: '✗', skipped: '-' }
const COLOURS: Readonly<Record<Check['state'], number>> = { ok: 32, warning: 33, problem: 31, skipped: 2 }
const STATE_WIDTH = 9
const NAME_WIDTH = 19
const CHARS_MAX = 4_000

export function showCheck(check: Check, look: Look): string {
  const state = look.marks ? `${MARKS[check.state]} ` : check.state.padEnd(STATE_WIDTH)
  const name = check.name.replaceAll('_', ' ').padEnd(NAME_WIDTH)
  const lines = [`${look.colour ? coloured(state, COLOURS[check.state]) : state}${name}${plain(check.found)}`]
  if (check.todo !== null) {
    const indent = ' '.repeat(state.length + NAME_WIDTH)
    lines.push(`${indent}${look.marks ? '→' : 'to do:'} ${plain(check.todo)}`)
  }
  return `${lines.join('\n')}\n`
}

export function showSummary(checks: readonly Check[], look: Look): string {
  const count = (state: Check['state']): number => checks.filter((check) => check.state === state).length
  const counts = [
    [count('problem'), 'problem'],
    [count('warning'), 'warning'],
  ] as const
  const parts = counts
    .filter(([amount]) => amount > 0)
    .map(([amount, noun]) => `${amount} ${noun}${amount === 1 ? '' : 's'}`)
  const text = parts.length === 0 ? 'Nothing to mend.' : `${parts.join(', ')}.`
  const worst = count('problem') > 0 ? 'problem' : count('warning') > 0 ? 'warning' : 'ok'
  return `\n${look.colour ? coloured(text, COLOURS[worst]) : text}\n`
}

export function checksAsJson(checks: readonly Check[]): string {
  const shown = checks.map(({ name, state, found, todo }) => ({
    name,
    state,
    found: plain(found),
    todo: todo === null ? null : plain(todo),
  }))
  return `${JSON.stringify({ object: 'doctor', ok: !hasProblem(checks), checks: shown }, null, 2)}\n`
}

export function hasProblem(checks: readonly Check[]): boolean {
  return checks.some(({ state }) => state === 'problem')
}

function coloured(text: string, code: number): string {
  return `\x1b[${code}m${text}\x1b[0m`
}

/** Upstream's words and names of files are shown: none of them may draw on the terminal or begin a line. */
function plain(text: string): string {
  const safe = text.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, '?')
  return safe.length <= CHARS_MAX ? safe : `${safe.slice(0, CHARS_MAX - 3)}...`
}
