// Bounds of what the simulator stores and waits for.

const mebibyte = 1024 * 1024

/** Request bodies, before and after decoding. */
export const bodyBytesMax = 128 * mebibyte
export const headBytesMax = 64 * 1024
export const answerTokensMax = 400_000
export const waitMsMax = 600_000
export const promptCacheEntriesMax = 10_000
/** Automatic prompt caching checks this many prefixes of a prompt at most. */
export const promptCacheStepsMax = 256
/** Objects of one kind: files, responses, batches. The oldest are dropped. */
export const storedObjectsMax = 1_000
export const batchRequestsMax = 10_000
/** Responses that wait or are being written on one socket. */
export const socketTurnsMax = 128
export const choicesMax = 128
export const schemaDepthMax = 8
