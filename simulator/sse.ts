/** One event of a stream, or one piece of a sound. `tokens` is what it costs in time; deltas are what the model wrote. */
export interface Frame {
  readonly text: string | Buffer
  readonly tokens: number
  readonly isDelta: boolean
}

export function namedFrame(event: string, data: object, tokens = 0, isDelta = false): Frame {
  return { text: `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`, tokens, isDelta }
}

export function dataFrame(data: object, tokens = 0, isDelta = false): Frame {
  return { text: `data: ${JSON.stringify(data)}\n\n`, tokens, isDelta }
}

export const doneFrame: Frame = { text: 'data: [DONE]\n\n', tokens: 0, isDelta: false }
