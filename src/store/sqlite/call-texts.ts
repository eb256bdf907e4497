import type { CallClosing, CallOpening, Hold, NamedModels } from '../../ledger/call.ts'
import type { Command } from './operations.ts'

/**
 * How the commands that come with every call cross between the threads: a whole batch as one JSON text of arrays, with
 * amounts and bytes as text. Objects with their names took twice as long on both sides, and cloning them three times
 * as long as that. A batch with anything else in it is rare, and crosses as the objects it is made of.
 */
export type BatchMessage = string | readonly Command[]

export function writeBatch(commands: readonly Command[]): BatchMessage {
  const lists: CommandList[] = []
  for (const command of commands) {
    if (command[0] === 'admit') lists.push(openingList(command[1]))
    else if (command[0] === 'settle') lists.push(closingList(command[1]))
    else if (command[0] === 'recognise') lists.push(['r', bytesText(command[1]), command[2]])
    else return commands
  }
  return JSON.stringify(lists)
}

export function readBatch(message: BatchMessage): readonly Command[] {
  return typeof message === 'string' ? (JSON.parse(message) as CommandList[]).map(commandOf) : message
}

/** Nobody else writes these texts, so what is read is what was written. */
type CommandList = OpeningList | ClosingList | readonly ['r', digest: string, atMs: number]

type OpeningList = readonly [
  'a',
  requestId: string,
  digest: string,
  atMs: number,
  method: string,
  path: string,
  surface: CallOpening['surface'],
  modelAsked: string | null,
  clientIp: string,
  userAgent: string | null,
  holdKind: Hold['kind'],
  holdNanos: string,
  holdListNanos: string,
  modelNames: NamedModels['names'],
  modelsUnknown: string | null,
  batchFile: string | null,
  ambiguity: string | null,
  priceVersion: string,
  rating: string,
  unratable: CallOpening['unratable'],
  heldCounts: boolean,
  aheadKey: boolean,
  aheadAccounts: readonly string[],
  askedBefore: boolean,
  endpoint: string,
]

type ClosingList = readonly [
  's',
  requestId: string,
  state: CallClosing['state'],
  atMs: number,
  status: number | null,
  modelServed: string | null,
  stopReason: string | null,
  streamed: boolean,
  estimated: boolean,
  unpriced: boolean,
  pricedAsRequested: boolean,
  usage: string | null,
  inputTokens: number,
  outputTokens: number,
  cacheReadTokens: number,
  cacheWriteTokens: number,
  costNanos: string,
  listNanos: string,
  upstreamMs: number | null,
  overheadMs: number,
  upstreamRequestId: string | null,
  bytesIn: number,
  bytesOut: number,
]

function openingList(opening: CallOpening): OpeningList {
  const { hold, models, ahead } = opening
  return [
    'a',
    opening.requestId,
    bytesText(opening.digest),
    opening.atMs,
    opening.method,
    opening.path,
    opening.surface,
    opening.modelAsked,
    opening.clientIp,
    opening.userAgent,
    hold.kind,
    hold.kind === 'bound' ? String(hold.nanos) : '',
    hold.kind === 'bound' ? String(hold.listNanos) : '',
    models.names,
    models.unknown,
    models.batchFile,
    opening.ambiguity,
    opening.priceVersion,
    opening.rating,
    opening.unratable,
    opening.heldCounts,
    ahead.key,
    ahead.accounts,
    opening.askedBefore,
    opening.endpoint,
  ]
}

function closingList(closing: CallClosing): ClosingList {
  const { tokens } = closing
  return [
    's',
    closing.requestId,
    closing.state,
    closing.atMs,
    closing.status,
    closing.modelServed,
    closing.stopReason,
    closing.streamed,
    closing.estimated,
    closing.unpriced,
    closing.pricedAsRequested,
    closing.usage,
    tokens.input,
    tokens.output,
    tokens.cacheRead,
    tokens.cacheWrite,
    String(closing.costNanos),
    String(closing.listNanos),
    closing.upstreamMs,
    closing.overheadMs,
    closing.upstreamRequestId,
    closing.bytesIn,
    closing.bytesOut,
  ]
}

function commandOf(list: CommandList): Command {
  if (list[0] === 'a') return ['admit', openingOf(list)]
  return list[0] === 's' ? ['settle', closingOf(list)] : ['recognise', bytesOf(list[1]), list[2]]
}

function openingOf(list: OpeningList): CallOpening {
  return {
    requestId: list[1],
    digest: bytesOf(list[2]),
    atMs: list[3],
    method: list[4],
    path: list[5],
    surface: list[6],
    modelAsked: list[7],
    clientIp: list[8],
    userAgent: list[9],
    hold:
      list[10] === 'bound'
        ? { kind: 'bound', nanos: BigInt(list[11]), listNanos: BigInt(list[12]) }
        : { kind: list[10] },
    models: { names: list[13], unknown: list[14], batchFile: list[15] },
    ambiguity: list[16],
    priceVersion: list[17],
    rating: list[18],
    unratable: list[19],
    heldCounts: list[20],
    ahead: { key: list[21], accounts: list[22] },
    askedBefore: list[23],
    endpoint: list[24],
  }
}

function closingOf(list: ClosingList): CallClosing {
  return {
    requestId: list[1],
    state: list[2],
    atMs: list[3],
    status: list[4],
    modelServed: list[5],
    stopReason: list[6],
    streamed: list[7],
    estimated: list[8],
    unpriced: list[9],
    pricedAsRequested: list[10],
    usage: list[11],
    tokens: { input: list[12], output: list[13], cacheRead: list[14], cacheWrite: list[15] },
    costNanos: BigInt(list[16]),
    listNanos: BigInt(list[17]),
    upstreamMs: list[18],
    overheadMs: list[19],
    upstreamRequestId: list[20],
    bytesIn: list[21],
    bytesOut: list[22],
  }
}

function bytesText(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1')
}

function bytesOf(text: string): Uint8Array {
  return Buffer.from(text, 'latin1')
}
