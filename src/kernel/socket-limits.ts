const KiB = 1024
const MiB = 1024 * KiB

/** The limits of WebSockets, a part of `limits`. */
export const socketLimits = {
  /** The handshake upstream. Beyond it: 504. */
  socketHandshakeMs: 10_000,
  /** A message, which waits until it is whole and judged. Beyond it the socket closes (1009). */
  socketMessageBytesMax: 64 * MiB,
  /** Bytes and messages that are read ahead while a message is judged. Beyond either limit the client waits. */
  socketAheadBytesMax: MiB,
  socketAheadMessagesMax: 64,
  /** Turns under way on one socket. Beyond it: `too_many_calls`. */
  turnsPerSocketMax: 64,
  /** Models that updates of a session name for one thing; each is priced with every hold, in 6 µs. Beyond it: `bad_request`. */
  modelsPerSessionMax: 16,
  /** How long until a silent turn that seems to have ended counts as ended, and one that has not begun is waited for no more. */
  silentTurnMs: 10_000,
  /** How often the keys of open sockets are looked at, and how many at once. */
  socketKeyLookMs: 2_000,
  socketKeysAtOnce: 16,
  /** How long a close may take. Then the connection is cut. */
  socketCloseMs: 2_000,

  /** Requests up to this size are kept while their turn lasts, for a count of tokens; larger ones are counted by their length. */
  turnKeptBytesMax: 64 * KiB,
  /** Turns of a socket that were answered with an error and may begin after all. Beyond it the oldest is settled. */
  rejectedTurnsMax: 8,
  /** Lanes of a socket in which nothing runs. Beyond it the oldest is forgotten, unless its last response may be steered. */
  idleLanesMax: 4,
  /** Bytes of an unsolicited response kept until admission. Beyond it: the socket closes (1013); Live omits events between. */
  unsolicitedBytesMax: MiB,
  /** Responses of a socket that have ended, by their ids. Beyond it the oldest is forgotten, and would be taken for a new one. */
  endedIdsMax: 256,
  /** Live sessions whose seconds are known. Beyond it the oldest that no socket meters is forgotten. */
  liveSessionsMax: 10_000,
  /** Messages of a client by the ids that it gave them. Beyond it an error that names one may be about any of them. */
  clientIdsMax: 4_096,
} as const
