import type { Admission, CallClosing, CallOpening, Hold, Settled } from '../../ledger/call.ts'
import type { Command } from './operations.ts'
import type { Outcome } from './outcome.ts'

/**
 * How the two commands that come with every call, and their usual answers, cross between the threads: as JSON, with
 * amounts and bytes as text. Cloning the same objects took three times as long, on both sides. Everything else is
 * rare, and crosses as the object it is.
 */

export type CommandMessage = Command | string
export type OutcomeMessage = Outcome | string

export function writeCommand(command: Command): CommandMessage {
  if (command[0] === 'admit') return ADMIT + writeOpening(command[1])
  return command[0] === 'settle' ? SETTLE + writeClosing(command[1]) : command
}

export function readCommand(message: CommandMessage): Command {
  if (typeof message !== 'string') return message
  const text = message.slice(1)
  return message[0] === ADMIT ? ['admit', readOpening(text)] : ['settle', readClosing(text)]
}

export function writeOutcome([name]: Command, outcome: Outcome): OutcomeMessage {
  if (!outcome.ok) return outcome
  if (name === 'settle') return SETTLE + writeBalance(outcome.value as Settled)
  const admission = name === 'admit' ? (outcome.value as Admission) : null
  return admission?.kind === 'admitted' ? ADMIT + writeBalance(admission) : outcome
}

export function readOutcome(message: OutcomeMessage | undefined): Outcome | undefined {
  return typeof message === 'string' ? { ok: true, value: readBalance(message.slice(1)) } : message
}

const ADMIT = 'a'
const SETTLE = 's'

/** Nobody else writes these texts, so what is read is what was written. */
type Opening = Omit<CallOpening, 'digest' | 'hold'> & { digest: string; hold: HoldText }
type HoldText = Exclude<Hold, { kind: 'bound' }> | { kind: 'bound'; nanos: string; listNanos: string }
type Closing = Omit<CallClosing, 'costNanos' | 'listNanos'> & { costNanos: string; listNanos: string }

function writeOpening(opening: CallOpening): string {
  const { digest, hold } = opening
  const text: Opening = {
    ...opening,
    digest: Buffer.from(digest.buffer, digest.byteOffset, digest.length).toString('latin1'),
    hold:
      hold.kind === 'bound'
        ? { kind: 'bound', nanos: String(hold.nanos), listNanos: String(hold.listNanos) }
        : hold,
  }
  return JSON.stringify(text)
}

function readOpening(text: string): CallOpening {
  const opening = JSON.parse(text) as Opening
  const { digest, hold } = opening
  return {
    ...opening,
    digest: Buffer.from(digest, 'latin1'),
    hold:
      hold.kind === 'bound'
        ? { kind: 'bound', nanos: BigInt(hold.nanos), listNanos: BigInt(hold.listNanos) }
        : hold,
  }
}

function writeClosing(closing: CallClosing): string {
  const { costNanos, listNanos } = closing
  const text: Closing = { ...closing, costNanos: String(costNanos), listNanos: String(listNanos) }
  return JSON.stringify(text)
}

function readClosing(text: string): CallClosing {
  const closing = JSON.parse(text) as Closing
  return { ...closing, costNanos: BigInt(closing.costNanos), listNanos: BigInt(closing.listNanos) }
}

function writeBalance(value: Settled | (Admission & { kind: 'admitted' })): string {
  return JSON.stringify({ ...value, balanceNanos: String(value.balanceNanos) })
}

function readBalance(text: string): unknown {
  const value = JSON.parse(text) as { readonly balanceNanos: string }
  return { ...value, balanceNanos: BigInt(value.balanceNanos) }
}
