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
  /** How long until a silent turn that seems to have ended counts as ended, and one that has not begun is waited for no more. */
  silentTurnMs: 10_000,
  /** How often the keys of open sockets are looked at, and how many at once. */
  socketKeyLookMs: 2_000,
  socketKeysAtOnce: 16,
  /** How long a close may take. Then the connection is cut. */
  socketCloseMs: 2_000,

  /** Requests up to this size are kept while their turn lasts, for a count of tokens; larger ones are counted by their length. */
  turnKeptBytesMax: 64 * KiB,
  /** Responses and transcripts of a socket that are billed, by their ids. Beyond it the oldest is forgotten. */
  endedIdsMax: 256,
} as const
