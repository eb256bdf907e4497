/**
 * The limits that a client or operator can meet. docs/CONFIGURATION.md says what happens at each. Some are defaults of
 * a setting. Other constants are where they are used.
 */

const KiB = 1024
const MiB = 1024 * KiB

export const limits = {
  headBytesMax: 64 * KiB,
  headLinesMax: 1_000,
  headTimeoutMs: 10_000,
  tlsHandshakeTimeoutMs: 10_000,
  bodyIdleTimeoutMs: 60_000,
  bodyBytesPerSecondMin: KiB,
  keepAliveTimeoutMs: 75_000,
  connectionsMax: 20_000,
  connectionsPerAddressMax: 4_000,
  bodyBytesAheadMax: 64 * KiB,
  callsInFlightMax: 10_000,
  callsInFlightPerKeyMax: 1_000,
  callsWaitingMax: 10_000,
  callsQueuedPerLimitMax: 2_000,
  budgetWaitMs: 30_000,
  allowedModelsMax: 200,
  batchModelsMax: 200,
  creditBackCallsMax: 1_000,
  onceMs: 24 * 60 * 60 * 1000,
  sessionMs: 12 * 60 * 60 * 1000,
  preflightsInFlightMax: 200,
  bodyBytesMax: 256 * MiB,
  bodiesMemoryBytesMax: 512 * MiB,
  decodedBodyBytesMax: 256 * MiB,
  decodedRatioMax: 200,
  bodiesDecodingMax: 8,
  ownBodyBytesMax: 64 * KiB,
  earlyAnswerDrainMs: 5_000,
  heldReplyBytesMax: 64 * MiB,
  readOnMs: 5_000,
  finishMs: 600_000,
  settleOnStopMs: 10_000,
  requestWaitMs: 30_000,
  replyStallTimeoutMs: 600_000,
  upstreamHeadBytesMax: 64 * KiB,
  upstreamConnectTimeoutMs: 10_000,
  recordedCharsMax: 1_024,
  loggedBodyBytesMax: MiB,
  loggedBodiesBytesMax: 10 * 1024 * MiB,
  refusedCallsMax: 100_000,
  refusedCallsMs: 30 * 24 * 60 * 60 * 1000,
  storeQueueMax: 20_000,
  readQueueMax: 1_000,
  webhooksMax: 50,
  webhookPendingMax: 10_000,
  webhookClaimMs: 30_000,
  unpricedModelsMax: 100,
  webhookFailingMs: 5 * 24 * 60 * 60 * 1000,
  deliveryRetentionMs: 30 * 24 * 60 * 60 * 1000,
  eventRetentionMs: 400 * 24 * 60 * 60 * 1000,
  budgetThresholdsMax: 20,
  webhookTryMs: 15_000,
  webhookOldSecretMs: 24 * 60 * 60_000,
  socketHandshakeMs: 10_000,
  socketMessageBytesMax: 64 * MiB,
  turnsPerSocketMax: 64,
  drainMs: 30_000,
} as const

/** Default of `webhooks.thresholds_percent`. */
export const DEFAULT_THRESHOLDS: readonly number[] = [50, 80, 90]

export type Limits = { readonly [K in keyof typeof limits]: number }
