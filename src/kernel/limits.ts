/**
 * The limits that a client or an operator can meet, each with what happens when it is reached. Other constants are where
 * they are used. A limit that a deployment may want to change is also a setting; these are the defaults.
 */

const KiB = 1024
const MiB = 1024 * KiB

export const limits = {
  /** Request heads. Beyond either one: 431 and the connection closes. */
  headBytesMax: 64 * KiB,
  headLinesMax: 1_000,

  /**
   * A head that takes longer to arrive: 408 and the connection closes (checked every second). A new connection on which not a
   * byte has come closes without a word.
   */
  headTimeoutMs: 10_000,

  /** From a connection's acceptance to the end of its TLS handshake. Beyond it the connection closes (checked every second). */
  tlsHandshakeTimeoutMs: 10_000,

  /** A request body that sends nothing for this long: 408 and the connection closes. */
  bodyIdleTimeoutMs: 60_000,

  /**
   * A request body that brings less than this in a stretch as long as its silence may last, our own waits left out: 408 and
   * the connection closes. One byte in 40 s is no silence, and kept a connection for ever.
   */
  bodyBytesPerSecondMin: KiB,

  /** A keep-alive connection without a request closes. Above the 60 s of common load balancers. */
  keepAliveTimeoutMs: 75_000,

  /** Open client connections. Beyond it the kernel's accepted socket is closed at once. */
  connectionsMax: 20_000,

  /**
   * Open client connections from one address, or from one /64 of IPv6. Beyond it the accepted socket is closed at
   * once, and the log says so. Connections from `trusted_proxies` are not counted.
   */
  connectionsPerAddressMax: 4_000,

  /**
   * Requests that a client sends ahead on one connection, and bytes of a body that are taken in before it is asked for.
   * Beyond the first the connection ends with the last request that was taken; beyond the second the client waits.
   */
  bodyBytesAheadMax: 64 * KiB,

  /** Calls in flight upstream. Beyond it: 503 `no_memory`, nothing is sent. */
  callsInFlightMax: 10_000,

  /** Calls of one key on this node, from its head to its end, waiting ones included. Beyond it: 429 `too_many_calls`. */
  callsInFlightPerKeyMax: 1_000,

  /** Calls that wait for room, in all and for one cap or credit. Beyond either they are refused as after the wait. */
  callsWaitingMax: 10_000,
  callsQueuedPerLimitMax: 2_000,

  /** How long a call waits for room, unless `budgets.wait_seconds` says otherwise. Then: 429 `budget_held`. */
  budgetWaitMs: 30_000,

  /** Models on one allowlist. Beyond it: 400. */
  allowedModelsMax: 200,

  /** Different models in one batch. Beyond it a key with an allowlist is refused. */
  batchModelsMax: 200,

  /** Calls that one command credits back: some 50 ms in which the store does nothing else. Beyond it: 400. */
  creditBackCallsMax: 1_000,

  /** How long a repeated `Idempotency-Key` is recognised. */
  onceMs: 24 * 60 * 60 * 1000,

  /** Sessions of the dashboard: how long one lasts, and how many an admin key may have. Beyond that the oldest end. */
  sessionMs: 12 * 60 * 60 * 1000,

  /** Preflights in flight upstream; they carry no key. Beyond it: 503 `no_memory`. */
  preflightsInFlightMax: 200,

  /** A request body that waits for admission. Beyond it: 413. */
  bodyBytesMax: 256 * MiB,

  /** All waiting bodies together, by their bytes. Beyond it: 503 `no_memory`, except for bodies up to 1 MiB. */
  bodiesMemoryBytesMax: 512 * MiB,

  /** The size that the decoded copy of a compressed request body may grow to. Beyond it: unreadable. */
  decodedBodyBytesMax: 256 * MiB,

  /**
   * How many times its length a compressed request body may decode to; up to the second size it may be any number.
   * Beyond it: 413. JSON shrinks to a twentieth, rarely to a hundredth; 438 bytes of brotli can become 512 MiB.
   */
  decodedRatioMax: 200,

  /** Compressed request bodies that are decoded at once, in all and of one key. The others wait, and keys take turns. */
  bodiesDecodingMax: 8,
  bodiesDecodingPerKeyMax: 2,

  /** The body of a request to our own endpoints. Beyond it: 413. */
  ownBodyBytesMax: 64 * KiB,

  /** After we answered while the client was still uploading, its bytes are read and thrown away this long. */
  earlyAnswerDrainMs: 5_000,

  /** A JSON reply is held back until it is whole, so that its cost is a header. Beyond either size it streams. */
  heldReplyBytesMax: 64 * MiB,

  /** After the client left and the last content has come, upstream is read on this long for the usage. */
  readOnMs: 5_000,

  /** A call whose usage cannot be derived from the delivered output is read on for this long after its client left. */
  finishMs: 600_000,

  /**
   * How long a stop waits for settlements that the store has not taken yet. Then they stay in the spool for the next
   * start, or, where the store is on the same disk and there is no spool, their calls are interrupted.
   */
  settleOnStopMs: 10_000,

  /** How long `GET /gateway/v1/requests/{id}` waits for a call in flight. Then it answers without figures. */
  requestWaitMs: 30_000,

  /**
   * Pairs of an endpoint and a model for which a key learns the size of holds in a month. Beyond it: one size for all
   * further pairs of that key.
   */
  holdFloorsMax: 100,

  /** A client that does not read what waits for it for this long is cut off. */
  replyStallTimeoutMs: 600_000,

  /** Response heads of upstream. Beyond it: 502. */
  upstreamHeadBytesMax: 64 * KiB,

  /** Establishing a connection to upstream. Beyond it: 502, nothing was sent. */
  upstreamConnectTimeoutMs: 10_000,

  /** Characters of a path or a user agent that are kept in the record of a call. */
  recordedCharsMax: 1_024,

  /** Bytes of a logged body that are kept. */
  loggedBodyBytesMax: MiB,

  /** Logged bodies together, unless `requests.bodies_bytes_max` says otherwise. Beyond it the oldest are deleted. */
  loggedBodiesBytesMax: 10 * 1024 * MiB,
  /** Records of refused calls: how many of an account, for how long. Beyond either the oldest are deleted. */
  refusedCallsMax: 100_000,
  refusedCallsMs: 30 * 24 * 60 * 60 * 1000,

  /** Store operations that wait for their turn. Beyond it: 503 `store_unavailable`. */
  storeQueueMax: 20_000,
  /** Reads beside the hot path that wait for their turn: lists, usage, exports. Beyond it: 503 `store_unavailable`. */
  readQueueMax: 1_000,

  /** Webhook endpoints of an account. Beyond it: 409. */
  webhooksMax: 50,
  /** How long a node that fell silent keeps others from the deliveries it has claimed; longer than an attempt takes. */
  webhookClaimMs: 30_000,
  /** Models that `call.unpriced` reports in a day: their names are the clients' own. Beyond it the others are not reported. */
  unpricedModelsMax: 100,
  /** Nothing but failures for so long: the endpoint is disabled. */
  webhookFailingMs: 5 * 24 * 60 * 60 * 1000,
  /** Deliveries, and events, are deleted after this. */
  deliveryKeptMs: 30 * 24 * 60 * 60 * 1000,
  eventKeptMs: 400 * 24 * 60 * 60 * 1000,
  /** Percentages of `webhooks.thresholds_percent`. Beyond it the configuration is refused. */
  budgetThresholdsMax: 20,
  /** An attempt at a delivery. Beyond it the attempt has failed. */
  webhookTryMs: 15_000,
  /** How long a secret signs on that `rotate-secret` has replaced. A third rotation in this time: 409. */
  webhookOldSecretMs: 24 * 60 * 60_000,

  /** The handshake of a WebSocket upstream. Beyond it: 504. */
  socketHandshakeMs: 10_000,
  /** A message of a WebSocket, which waits until it is whole and judged. Beyond it the socket closes (1009). */
  socketMessageBytesMax: 64 * MiB,
  /** Turns under way on one socket. Beyond it: `too_many_calls`. */
  turnsPerSocketMax: 64,

  /** How long running streams may go on after SIGTERM. Then they are cut. */
  drainMs: 30_000,
} as const

/** The percentages of a cap at which an event is emitted where `webhooks.thresholds_percent` sets no others. */
export const DEFAULT_THRESHOLDS: readonly number[] = [50, 80, 90]

export type Limits = { readonly [K in keyof typeof limits]: number }
