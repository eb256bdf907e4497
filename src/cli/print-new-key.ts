import type { KeyAnswer } from './key-answer.ts'
import { print } from './print.ts'
import { Failure } from './run-command.ts'
import { shownText } from './shown-text.ts'

/** The secret alone goes to standard output, so that `KEY=$(…)` takes it and nothing else. */
export async function printNewKey({ key, id, name }: KeyAnswer, what: string): Promise<void> {
  const which = `${id} (${shownText(name, 120)})`
  if (key === undefined) {
    throw new Failure(
      `This command was done before, and made ${which}. Its key was shown then and is not shown again. If nobody has ` +
        `it, revoke it with \`tollgate keys revoke ${id}\` and create another one under another --idempotency-key.`,
    )
  }
  process.stderr.write(`${what} ${which}. The key is shown this once:\n`)
  await print(`${key}\n`)
}
