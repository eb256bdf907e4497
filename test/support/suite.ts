import * as nodeTest from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'

/** Top-level hooks would apply to the whole process; here they are declared in a suite of their file. */

let recorded: (() => void)[] | null = null

/** Imports a test file, runs its tests as one suite and resolves when they have ended. */
export async function runFile(name: string, url: string): Promise<void> {
  await awaitNextDay()
  const declarations: (() => void)[] = []
  recorded = declarations
  try {
    await import(url)
  } catch (error) {
    declarations.push(() =>
      nodeTest.test('the file loads', () => {
        throw error
      }),
    )
  }
  recorded = null
  await nodeTest.describe(name, () => {
    for (const declare of declarations) declare()
  })
}

/** Daily and monthly sums change at midnight UTC: no file starts in the last two minutes before it. */
async function awaitNextDay(): Promise<void> {
  const leftMs = DAY_MS - (Date.now() % DAY_MS)
  if (leftMs < 120_000) await sleep(leftMs)
}

const DAY_MS = 86_400_000

const ends: (() => Promise<unknown>)[] = []

/** Runs after all files of the process, for what several of them share. The last registered runs first. */
export function atEnd(end: () => Promise<unknown>): void {
  ends.unshift(end)
}

export async function runEnds(): Promise<void> {
  for (const end of ends) await end()
}

function record<Declare extends (...args: never[]) => unknown>(declare: Declare): Declare {
  const recording = (...args: Parameters<Declare>) => {
    if (recorded === null) return declare(...args)
    recorded.push(() => declare(...args))
    return undefined
  }
  return recording as Declare
}

export const test = record(nodeTest.test)
export const describe = record(nodeTest.describe)
export const before = record(nodeTest.before)
export const after = record(nodeTest.after)
export const beforeEach = record(nodeTest.beforeEach)
export const afterEach = record(nodeTest.afterEach)

interface Closable {
  close(): unknown
}

/** Closes these, in this order, when the tests of the file have ended. */
export function closeAfter(...parts: readonly Closable[]): void {
  after(async () => {
    for (const part of parts) await part.close()
  })
}
