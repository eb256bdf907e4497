// Everything the simulator keeps or waits for is bounded here, so that a hostile or broken client
// can make it refuse, never grow.

const mebibyte = 1024 * 1024

/** The Messages API's own documented limit for a request body. */
export const messagesBodyBytesMax = 32 * mebibyte
export const chatBodyBytesMax = 64 * mebibyte
/** Upstream takes files of 512 MB; the simulator keeps files in memory and takes smaller ones only. */
export const uploadBodyBytesMax = 64 * mebibyte
/** A compressed request body may not grow beyond this when it is decoded. */
export const decodedBodyBytesMax = 64 * mebibyte
/** All request bodies being read or answered at this moment. Beyond this limit new uploads are refused as overload. */
export const bodyBytesInFlightMax = 512 * mebibyte

export const headBytesMax = 64 * 1024
export const connectionsMax = 20_000
export const behaviourCharactersMax = 8_192

export const answerTokensMax = 400_000
export const waitMsMax = 600_000

export const promptCacheEntriesMax = 10_000
/** Automatic prompt caching remembers a prompt at this many places at most. */
export const promptCacheStepsMax = 256

export const storedResponsesMax = 1_000
export const storedResponsesBytesMax = 64 * mebibyte
export const storedFilesMax = 1_000
export const storedFilesBytesMax = 256 * mebibyte

/** Upstream takes batches of 100,000 requests; the simulator takes fewer, as it works a batch off in one go. */
export const batchRequestsMax = 10_000
export const storedBatchesMax = 1_000
/** The limit for the requests of all batches, and again for their answers. */
export const storedBatchesBytesMax = 64 * mebibyte
/** Requests of a batch that would answer more than this together expire. */
export const batchAnswersBytesMax = 32 * mebibyte

/** A sound may claim any length; a longer sound is taken for this long. */
export const audioSecondsMax = 86_400

export const socketMessageBytesMax = 64 * mebibyte
/** Responses that wait or are being written on one socket. */
export const socketTurnsMax = 128

export const choicesMax = 128
export const embeddingInputsMax = 2_048
export const schemaDepthMax = 8
export const schemaNodesMax = 500
