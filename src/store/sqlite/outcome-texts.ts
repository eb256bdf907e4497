import type { Recognition } from '../../keys/identity.ts'
import type { Admission, Settled } from '../../ledger/call.ts'
import type { Command } from './operations.ts'
import type { Outcome } from './outcome.ts'

/**
 * The way back of call-texts.ts: if a batch has come to nothing but the usual answers to those commands, they cross as
 * one text.
 */
export type OutcomesMessage = string | readonly Outcome[]

export function writeOutcomes(commands: readonly Command[], outcomes: readonly Outcome[]): OutcomesMessage {
  const lists: OutcomeList[] = []
  for (const [i, outcome] of outcomes.entries()) {
    const list = outcome.ok ? outcomeList(commands[i]?.[0], outcome.value) : null
    if (list === null) return outcomes
    lists.push(list)
  }
  return JSON.stringify(lists)
}

export function readOutcomes(message: OutcomesMessage): readonly Outcome[] {
  return typeof message === 'string' ? (JSON.parse(message) as OutcomeList[]).map(outcomeOf) : message
}

/** Nobody else writes these texts, so what is read is what was written. */
type OutcomeList =
  | readonly ['a', keyId: string, accountId: string, logRequests: boolean, balanceNanos: string]
  | readonly ['s', balanceNanos: string, booked: boolean]
  | readonly ['r', Exclude<Recognition, { kind: 'api_key' }>]
  | readonly [
      'k',
      keyId: string,
      accountId: string,
      capNanos: string | null,
      spentNanos: string,
      heldNanos: string,
      creditEnforced: boolean,
      balanceNanos: string,
    ]

/** Null: it is not one of the usual answers. */
function outcomeList(name: Command[0] | undefined, value: unknown): OutcomeList | null {
  if (name === 'settle') {
    const { balanceNanos, booked } = value as Settled
    return ['s', String(balanceNanos), booked]
  }
  if (name === 'recognise') return recognitionList(value as Recognition)
  const admission = name === 'admit' ? (value as Admission) : null
  if (admission?.kind !== 'admitted') return null
  const { keyId, accountId, logRequests, balanceNanos } = admission
  return ['a', keyId, accountId, logRequests, String(balanceNanos)]
}

function recognitionList(recognition: Recognition): OutcomeList {
  if (recognition.kind !== 'api_key') return ['r', recognition]
  const { keyId, accountId, means } = recognition
  const { capNanos, spentNanos, heldNanos, creditEnforced, balanceNanos } = means
  const cap = capNanos === null ? null : String(capNanos)
  return [
    'k',
    keyId,
    accountId,
    cap,
    String(spentNanos),
    String(heldNanos),
    creditEnforced,
    String(balanceNanos),
  ]
}

function outcomeOf(list: OutcomeList): Outcome {
  return { ok: true, value: answerOf(list) }
}

function answerOf(list: OutcomeList): Admission | Settled | Recognition {
  if (list[0] === 'r') return list[1]
  if (list[0] === 'k') {
    const [, keyId, accountId, cap, spent, held, creditEnforced, balance] = list
    const means = {
      capNanos: cap === null ? null : BigInt(cap),
      spentNanos: BigInt(spent),
      heldNanos: BigInt(held),
      creditEnforced,
      balanceNanos: BigInt(balance),
    }
    return { kind: 'api_key', keyId, accountId, means }
  }
  if (list[0] === 's') return { balanceNanos: BigInt(list[1]), booked: list[2] }
  const [, keyId, accountId, logRequests, balanceNanos] = list
  return { kind: 'admitted', keyId, accountId, logRequests, balanceNanos: BigInt(balanceNanos) }
}
