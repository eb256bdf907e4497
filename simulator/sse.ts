/** One event of a stream, or one piece of a sound. `tokens` paces the frame; a delta carries output of the model. */
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
