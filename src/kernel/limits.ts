import { socketLimits } from './socket-limits.ts'

/**
 * Every limit of the service in one place, each with what happens when it is reached.
 * A limit that a deployment may want to change is also a key of the configuration file; these are the defaults.
 */

const KiB = 1024
const MiB = 1024 * KiB

export const limits = {
  /** Request heads. Beyond either one: 431 and the connection closes. */
  headBytesMax: 64 * KiB,
  headLinesMax: 1_000,

  /**
   * A path that is in no table, in characters: the endpoint that it may be another spelling of is looked for, which
   * took 60 ms for a path of 30,000 segments and needs no key in force. Beyond it: `endpoint_not_metered`.
   */
  unknownPathCharsMax: 8_192,

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
   * Compressed bytes of a WebSocket that have not been inflated yet. Beyond the first the peer waits; beyond the
   * second, which a peer that is made to wait does not reach, no compressed message of that direction is read any more.
   */
  inflateAheadBytes: MiB,
  inflateAheadBytesMax: 64 * MiB,

  /** Addresses that are looked at, from the last on, in the `X-Forwarded-For` of a trusted proxy. Then the last seen counts. */
  forwardedAddressesMax: 32,

  /**
   * Requests that a client sends ahead on one connection, and bytes of a body that are taken in before it is asked for.
   * Beyond the first the connection ends with the last request that was taken; beyond the second the client waits.
   */
  requestsAheadMax: 16,
  bodyBytesAheadMax: 64 * KiB,

  /**
   * Connections that wait to be accepted. Beyond it the kernel resets them: with Node's 511, 100 of 2,000 streams that were
   * opened within five seconds on a busy core. The kernel's own limit (`net.core.somaxconn`) may be lower.
   */
  connectionsWaitingMax: 4_096,

  /** Calls in flight upstream. Beyond it: 503 `no_memory`, nothing is sent. */
  callsInFlightMax: 10_000,

  /** Calls of one key on this node, from its head to its end, waiting ones included. Beyond it: 429 `too_many_calls`. */
  callsInFlightPerKeyMax: 1_000,

  /** Calls that wait for room, in all and for one cap or credit. Beyond either they are refused as after the wait. */
  callsWaitingMax: 10_000,
  callsQueuedPerLimitMax: 2_000,

  /** How long a call waits for room, unless `budgets.wait_seconds` says otherwise. Then: 429 `budget_held`. */
  budgetWaitMs: 30_000,

  /** Room may come from another node or the command line, of which this node is not told: the first in line asks this often. */
  lineLookAgainMs: 1_000,

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
  sessionsPerAdminKeyMax: 1_000,

  /** An overview is given to others so long, longer where it took longer to make. Further names of a kind are counted only. */
  overviewFreshMs: 1_000,
  overviewNamedMax: 20,

  /** Preflights in flight upstream; they carry no key. Beyond it: 503 `no_memory`. */
  preflightsInFlightMax: 200,

  /** A request body that waits for admission. Beyond it: 413. */
  bodyBytesMax: 256 * MiB,

  /** All waiting bodies together, by their bytes. Beyond it: 503 `no_memory`, except for bodies up to 1 MiB. */
  bodiesMemoryBytesMax: 512 * MiB,

  /**
   * The part of the memory that other keys leave free which the waiting bodies of one key may take. Beyond it: 503
   * `no_memory`. The same part holds for replies that are held back; beyond it they stream.
   */
  bodiesPartPerKeyMax: 0.5,

  /** The size that the decoded copy of a compressed request body may grow to. Beyond it: unreadable. */
  decodedBodyBytesMax: 256 * MiB,

  /**
   * How many times its length a compressed request body may decode to; up to the second size it may be any number.
   * Beyond it: 413. JSON shrinks to a twentieth, rarely to a hundredth; 438 bytes of brotli can become 512 MiB.
   */
  decodedRatioMax: 200,
  decodedBytesOfAnyRatio: MiB,

  /** Compressed request bodies that are decoded at once, in all and of one key. The others wait, and keys take turns. */
  bodiesDecodingMax: 8,
  bodiesDecodingPerKeyMax: 2,

  /**
   * The size that the decoded copy of a compressed reply may grow to. Beyond it the reply passes on, but is not read
   * any more: the usage read until then counts, and the rest of the usage is estimated.
   */
  decodedReplyBytesMax: 1024 * MiB,

  /**
   * How far, in compressed bytes, the decoded copy may fall behind a reply that is held back, behind one that streams,
   * and behind a request. Beyond it the sender waits until half of that is decoded.
   */
  heldObserverBacklogBytesMax: 256 * KiB,
  observerBacklogBytesMax: 16 * MiB,
  requestBacklogBytesMax: 64 * KiB,

  /**
   * Frames of zstd in one body that follow another in the same chunk; each takes 50 to 150 µs. Beyond it the body counts
   * as corrupt.
   */
  codedFramesMax: 20_000,

  /**
   * Bodies up to this size are received before the store is asked about the key; larger and compressed ones after.
   * The store is also asked when a body is not whole after this long: most clients send head and body as two packets,
   * and need not be asked about twice.
   */
  bodyBytesBeforeKeyCheck: 64 * KiB,
  bodyMsBeforeKeyCheck: 100,

  /** The body of a request to our own endpoints. Beyond it: 413. */
  ownBodyBytesMax: 64 * KiB,

  /** After we answered while the client was still uploading, its bytes are read and thrown away this long. */
  earlyAnswerDrainMs: 5_000,

  /** A JSON reply is held back until it is whole, so that its cost is a header. Beyond either size it streams. */
  heldReplyBytesMax: 64 * MiB,
  heldRepliesBytesMax: 512 * MiB,

  /** The last event of a stream waits this long for the figures, to leave with them; a longer event does not wait. */
  lastEventWaitMs: 1_000,
  lastEventBytesMax: 64 * KiB,

  /** After the client left and the last content has come, upstream is read on this long for the usage. */
  readOnMs: 5_000,

  /** A call whose usage cannot be told from the delivered output is read to its end though its client left. Then it is cut. */
  finishMs: 600_000,

  /** How long upstream may take to tell the usage of a stored response. Then the usage is estimated. */
  storedAnswerMs: 5_000,

  /**
   * How long a stop waits for settlements that the store has not taken yet. Then they stay in the spool for the next
   * start, or, where the store is on the same disk and there is no spool, their calls are interrupted.
   */
  settleOnStopMs: 10_000,

  /** How long an answer waits for a settlement that the store cannot take. Then it leaves without the figures. */
  settleWaitMs: 2_000,

  /** How long `GET /gateway/v1/requests/{id}` waits for a call in flight. Then it answers without figures. */
  requestWaitMs: 30_000,

  /** Records that one look at the request log goes through. Then the next look goes on, and others come in between. */
  logLookRecordsMax: 10_000,

  /** Looks for one page of the request log. Then the page has the records found so far and says where to go on. */
  logPageLooksMax: 20,

  /** Calls that an export has in memory at once. Writing these down takes 0.4 ms, for which streams wait. */
  exportPageCallsMax: 25,

  /**
   * Pairs of an endpoint and a model for which a key learns the size of holds in a month. Beyond it: one size for all
   * further pairs of that key.
   */
  holdFloorsMax: 100,

  /** Settlements that wait for the store to come back. Beyond it no new call is admitted. */
  settlementsWaitingMax: 20_000,

  /** Settlements of an earlier life that are sent to the store at once. The others wait for their turn. */
  settlementsReplayedAtOnce: 200,

  /** Settlements in the spool, in bytes. Beyond it they wait in memory alone, and no new call is admitted. */
  spoolBytesMax: 64 * MiB,

  /** How long an answer waits for the disk of the spool. Then it leaves, and no new call is admitted meanwhile. */
  spoolWriteMs: 5_000,

  /** A client that does not read what waits for it for this long is cut off. */
  replyStallTimeoutMs: 600_000,

  /** Response heads of upstream. Beyond it: 502. */
  upstreamHeadBytesMax: 64 * KiB,

  /** Establishing a connection to upstream. Beyond it: 502, nothing was sent. */
  upstreamConnectTimeoutMs: 10_000,

  /** Connections to one upstream that are kept though nothing is on them. Beyond it they close after their reply. */
  upstreamIdleConnectionsMax: 1_000,

  /** Characters of a path or a user agent that are kept in the record of a call. */
  recordedCharsMax: 1_024,

  /** Bytes of a logged body that are kept. */
  loggedBodyBytesMax: MiB,

  /** Logged bodies are deleted after `requests.retention_days`: how soon after the start, how often, how many at once. */
  retentionFirstMs: 60_000,
  retentionEveryMs: 60 * 60 * 1000,
  bodiesDeletedAtOnce: 200,
  /** Logged bodies together, unless `requests.bodies_bytes_max` says otherwise. Beyond it the oldest are deleted. */
  loggedBodiesBytesMax: 10 * 1024 * MiB,
  /** Records of refused calls: how many of an account, for how long. Beyond either the oldest are deleted. */
  refusedCallsMax: 100_000,
  refusedCallsMs: 30 * 24 * 60 * 60 * 1000,
  /**
   * Refused calls on their way into the log: how many may wait, how many go at once, how long the first waits for others.
   * Beyond the first they are not kept, and the log says so.
   */
  refusedCallsWaitingMax: 10_000,
  refusedCallsAtOnce: 200,
  refusedCallsEveryMs: 250,
  /** Bodies of calls on their way into the log. Beyond it they are not kept, and the log says so. */
  bodiesBeingLoggedMax: 200,

  /** Megabytes for young objects of a thread beside the main one. V8 would take 48 in time, and nothing is faster for it. */
  threadYoungMegabytes: 12,

  /**
   * Pages of 4 kB in SQLite's log, beyond which the store pauses and folds them back. A page is folded back once, however often
   * it was changed: with 8,000 instead of 2,000 a call takes 2 to 4 % less where each comes with another key, and the same where
   * all come with one. The pause is 8 ms instead of 5, a quarter as often; at worst, with a thousand keys in use that are spread
   * over a million, 43 instead of 17.
   */
  storeLogPages: 8_000,

  /**
   * Kilobytes of the database that the store keeps in memory, beyond which pages are read again. With SQLite's 2,000 the pages
   * of a hundred keys among a million push each other out: a call takes 50 µs more than among a thousand keys, with 8,000 it
   * takes 22. With 24,000 everything is slower: a commit that has moved pages walks through all that is kept.
   */
  storeCacheKilobytes: 8_000,

  /**
   * Room on the disk that is kept for settling calls in flight when it is full: how much, how soon after the start it is
   * written, and how often it is tried again while there is no room.
   */

  /** A write that was tried for `GET /readyz` counts this long for other requests. */
  readyProbeMs: 1_000,

  /** Store operations that wait for their turn. Beyond it: 503 `store_unavailable`. */
  storeQueueMax: 20_000,
  /** Reads beside the hot path that wait for their turn: lists, usage, exports. Beyond it: 503 `store_unavailable`. */
  readQueueMax: 1_000,
  /** How long a scrape of the metrics waits for figures that only the store knows. Then the answer leaves without them. */
  scrapeStoreMs: 2_000,
  /** How long a stop waits for the last traces to be sent. Then they are lost. */
  tracesFlushMs: 3_000,
  /** A look for work of webhooks or deferred calls that was woken while it ran is followed by another look so soon. */
  wokenLookMs: 50,

  /** Results of a batch that bring nothing so long are read again later. Replies up to this length have addresses rewritten. */
  resultsIdleMs: 60_000,
  batchListBytesMax: 4 * MiB,

  /** Webhook endpoints of an account. Beyond it: 409. */
  webhooksMax: 50,
  /** The text of one event. A key with the longest allowlist stays below it; a larger event is given up, and the log says so. */
  webhookPayloadBytesMax: MiB,
  /** How long a node that fell silent keeps others from its work. A delivery under way takes longer: its lease is kept. */
  webhookLeaseMs: 10_000,
  /** Events relayed, deliveries of one endpoint claimed, and keys looked at for their expiry, at once. The others come next. */
  webhookRelayMax: 100,
  webhookClaimMax: 20,
  webhookSweptMax: 500,
  /** Models that `call.unpriced` is told of in a day: their names are the clients' own. Beyond it the others are not told. */
  webhookUnpricedModelsMax: 100,
  /** Nothing but failures for so long: the endpoint is disabled. */
  webhookFailingMs: 5 * 24 * 60 * 60 * 1000,
  /** Events and deliveries are deleted after this, so many rows at once; older events while all nodes were off are not told. */
  webhookKeptMs: 30 * 24 * 60 * 60 * 1000,
  webhooksDeletedAtOnce: 1_000,
  /** Percentages of `webhooks.thresholds_percent`. Beyond it the configuration is refused. */
  budgetThresholdsMax: 20,
  /** A try of a webhook: beyond the first it has failed; beyond the second its connection closes, and the status counts. */
  webhookTryMs: 15_000,
  webhookAnswerBytesMax: 64 * KiB,
  /** The reason of a failed try, in the `error` of its delivery. Beyond it the text is cut. */
  webhookErrorCharsMax: 200,
  /** The look-up of a webhook's host name when it is created. A name that is not found by then is accepted. */
  webhookLookupMs: 3_000,
  /** Deliveries of one endpoint under way at once on a node. Further ones wait for their turn. */
  webhookTriesMax: 4,
  /** An endpoint at which all of `webhookClaimMax` tries have failed is left alone so long before the next of them. */
  webhookFailingPauseMs: 1_000,
  /**
   * How often a node looks for events and deliveries: for work that settlements, other nodes and commands have left,
   * and for endpoints while there are none. Changes by its own management API wake it.
   */
  webhookLookMs: 1_000,
  webhookIdleLookMs: 5_000,
  /** How often keys that expire and a balance that is low are looked for. */
  webhookSweepMs: 5_000,
  /** How long a stop waits for deliveries that are under way. Then they are left to be tried again. */
  webhookStopMs: 2_000,
  /** How long a secret signs on that `rotate-secret` has replaced. A third rotation in this time: 409. */
  webhookOldSecretMs: 24 * 60 * 60_000,

  ...socketLimits,

  /** How long running streams may go on after SIGTERM. Then they are cut. */
  drainMs: 30_000,

  /** Log lines that wait for a slow log reader, in bytes. Beyond it lines are dropped, never requests. */
  logBufferBytesMax: 8 * MiB,
} as const

/** The percentages of a cap that are told where `webhooks.thresholds_percent` sets no others. */
export const DEFAULT_THRESHOLDS: readonly number[] = [50, 80, 90]

export type Limits = { readonly [K in keyof typeof limits]: number }
