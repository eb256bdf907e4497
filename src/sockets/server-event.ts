import type { ReplyDocument } from '../metering/json-shape.ts'

/** The lane of events and messages that name none. */
export const NO_LANE = ''

/** The tag of a turn that adds input to a running response. All waiting steers of a lane become one successor. */
export const STEER = 'response.steer'

/** An event of upstream, as far as it concerns turns. */
export interface ServerEvent {
  readonly kind: 'began' | 'part' | 'ended' | 'failed' | 'transcribed' | 'other'
  readonly lane: string
  readonly responseId: string | null
  /** The client message that an error names; null if it names none. */
  readonly tag: string | null
  /** The HTTP status that an error states. */
  readonly status: number
  readonly usage: unknown
  readonly stopReason: string | null
  readonly itemId: string | null
  /** The event, if its turn reads the usage in it. */
  readonly document: ReplyDocument | null
}

export const OTHER_EVENT: ServerEvent = {
  kind: 'other',
  lane: NO_LANE,
  responseId: null,
  tag: null,
  status: 400,
  usage: null,
  stopReason: null,
  itemId: null,
  document: null,
}
