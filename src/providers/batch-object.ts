import { NO_USAGE } from '../kernel/usage.ts'
import { glances, objectShape } from '../metering/json-shape.ts'
import {
  NOTHING_SHOWN,
  type Reading,
  type ReplyDocument,
  type ReplyLayout,
  type ReplyReader,
} from '../metering/meter.ts'
import { isObject, nameAt } from './usage/reading.ts'

const BATCH = objectShape(glances('id status processing_status output_file_id endpoint'))
const LAYOUT: ReplyLayout = { body: BATCH, event: BATCH, dullEvents: [] }

/** Reads the object of a batch, of either surface: its status and where its results are. The usage stands in the results. */
export class BatchReader implements ReplyReader {
  readonly layout = LAYOUT
  readonly stage = 'over'
  readonly shown = NOTHING_SHOWN
  #batch: Readonly<Record<string, unknown>> = {}

  readEvent(): void {}

  readDone(): void {}

  readBody({ value }: ReplyDocument): void {
    if (isObject(value)) this.#batch = value
  }

  reading(): Reading {
    const stopReason = nameAt(this.#batch['processing_status']) ?? nameAt(this.#batch['status'])
    return {
      usage: { ...NO_USAGE, stopReason },
      inputKnown: false,
      outputKnown: false,
      outputTokensSeen: 0,
      error: null,
      objectId: nameAt(this.#batch['id']),
      imagesBegun: 0,
      reasoningTokens: null,
      containerIds: [],
      resultsFile: nameAt(this.#batch['output_file_id']),
      requestsFor: nameAt(this.#batch['endpoint']),
    }
  }
}
